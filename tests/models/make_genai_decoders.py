"""Small decoders in the form of ONNX Runtime GenAI, and what ONNX Runtime answers:
``tests/unit/artifacts/test_decoders.py``.

In: a folder, names as ``llama.genai`` (all without one); onnxruntime, which the tests never need.
Out: per name ``NAME.onnx`` and ``NAME.npz``: inputs at ten lengths and the answers. Not done here:
the graphs (``genai_decoder.py``), exports of PyTorch (``make_decoders.py``).

    pip install onnxruntime==1.32.0 onnx
    python tests/models/make_genai_decoders.py FOLDER [NAME ...]

The one that is kept in ``decoders`` is ``qwen3.genai``.
"""

# onnxruntime is not in the environment of the checks.
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportArgumentType=false

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from genai_decoder import GenaiSizes, genai_decoder

# New tokens, those before them, the batch: ONNX Runtime takes several new tokens behind others of
# one sequence only.
LENGTHS = (
    (1, 0, 1), (1, 1, 2), (1, 7, 1), (1, 8, 2), (1, 20, 1),
    (5, 0, 2), (3, 5, 1), (8, 1, 1), (17, 0, 1), (2, 18, 1),
)  # fmt: skip
ARCHITECTURES = {
    "llama": GenaiSizes(),
    "qwen2": GenaiSizes(bias=True),
    "qwen3": GenaiSizes(norms=True),
    "mistral": GenaiSizes(window=8, packed=True),
    "phi3": GenaiSizes(groups=4, packed=True, window=8),
    "gemma2": GenaiSizes(groups=1, softcap=50.0, gate="gelu"),
    "smollm3": GenaiSizes(rotary=False),
}
"""What tells the builder's graphs of these architectures apart, as far as caches go."""


def make(folder: Path, name: str) -> None:
    """One model and its cases."""
    sizes = ARCHITECTURES[name.removesuffix(".genai")]
    path = folder / f"{name}.onnx"
    onnx.save(genai_decoder(sizes), path)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    for number, (new, past, batch) in enumerate(LENGTHS):
        cache = batch, sizes.groups, past, sizes.depth
        feed = {
            "input_ids": rng.integers(3, sizes.tokens, (batch, new)),
            "attention_mask": np.ones((batch, past + new), np.int64),
        }
        for item in session.get_inputs()[2:]:
            feed[item.name] = rng.standard_normal(cache).astype(np.float32)
        outputs = [item.name for item in session.get_outputs()]
        named = dict(zip(outputs, session.run(outputs, feed), strict=True))
        for side, tensors in (("in", feed), ("out", named)):
            arrays |= {f"{number}/{side}/{key}": array for key, array in tensors.items()}
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    print(name)


if __name__ == "__main__":
    for wanted in sys.argv[2:] or [f"{name}.genai" for name in ARCHITECTURES]:
        make(Path(sys.argv[1]), wanted)
