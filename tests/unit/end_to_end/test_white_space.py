"""Characters of one to three bytes between which ``StringSplit`` takes words apart, others whose
bytes begin alike, as Python's ``str.split``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import ingot
import ingot_runtime

_ALIKE = "\x08\x0e\x1b!\u0084\u0086\u00a1\u1681\u200b\u2027\u202a\u2030\u205e\u2060\u3001\u00e9x"


def test_words(tmp_path: Path) -> None:
    """Every white space alone, with its neighbours, and at random."""
    spaces = [chr(code) for code in range(0x3001) if chr(code).isspace()]
    numbers = np.random.default_rng(0)
    texts = [f"a{space}b{space}{space}\u00e9{space}" for space in spaces]
    texts += ["".join(spaces), "", _ALIKE, " ".join(_ALIKE)]
    texts += ["".join(numbers.choice([*spaces, *_ALIKE], 12)) for _ in range(100)]
    strings = [helper.make_tensor_value_info("x", TensorProto.STRING, ["count"])]
    results = [
        helper.make_tensor_value_info("words", TensorProto.STRING, None),
        helper.make_tensor_value_info("counts", TensorProto.INT64, None),
    ]
    split = helper.make_node("StringSplit", ["x"], ["words", "counts"])
    graph = helper.make_graph([split], "split", strings, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    ingot.compile(model).save(str(tmp_path / "split.ingot"))
    found = ingot_runtime.load(str(tmp_path / "split.ingot")).run({"x": np.array(texts, object)})
    words = zip(found["words"].tolist(), found["counts"].tolist(), strict=True)
    assert [row[:count] for row, count in words] == [text.split() for text in texts]
