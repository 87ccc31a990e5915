"""A model as WebAssembly: in node every bit is that of machine code for the processor that its
loops are cut for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from tests.unit.end_to_end.test_models import STATIC, Cases
from tests.unit.tools.test_c_source import DATA_DEPENDENT, bundle_run, save
from tests.wasm_model import export, run

QUICK = ("lstm",)


@pytest.mark.parametrize(
    "model",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in STATIC
        if name not in DATA_DEPENDENT
    ],
)
def test_architectures(model: str, tmp_path: Path) -> None:
    """Each small architecture gives the same bits."""
    cases = Cases(model, dynamic=False)
    script = export(cases.path, tmp_path / "w", "--name", model)
    for given in cases.feeds:
        expected = bundle_run(cases.path, "x86-64-v2", given, tmp_path)
        result = run(script, given)
        assert isinstance(result, dict), result
        assert list(result) == list(expected)
        for name, array in expected.items():
            assert array.tobytes() == result[name].tobytes()


def test_inputs_by_name(tmp_path: Path) -> None:
    """A wrong name, type or length is refused in words; hostile names are names."""
    names = ('a"`${1}\\', "__proto__x", "</script>")
    nodes = [helper.make_node("Sum", list(names), ["constructor"])]
    path = save(tmp_path, nodes, {name: [2] for name in names})
    script = export(path, tmp_path / "w")
    given = {name: np.array([number, 1], np.float32) for number, name in enumerate(names)}
    result = run(script, given)
    assert isinstance(result, dict)
    assert result["constructor"].view(np.float32).tolist() == [3.0, 3.0]
    wanted = "TypeError: input </script>: expected Float32Array of 2 numbers, f32[2]"
    assert run(script, {**given, names[2]: np.zeros(2)}) == f"{wanted}, got Float64Array"
    assert run(script, {**given, names[2]: np.zeros(3, np.float32)}) == f"{wanted}, got 3"
    assert str(run(script, {**given, "other": np.zeros(2)})).startswith("TypeError: no input other")


@pytest.mark.broad
def test_same_bytes(tmp_path: Path) -> None:
    """Two exports write the same files."""
    path = save(tmp_path, [helper.make_node("Erf", ["x"], ["y"])], {"x": [2, 5]})
    for name, cache in (("a", "one"), ("b", "two")):
        export(path, tmp_path / name, "--cache", str(tmp_path / cache))
    files = [{path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in "ab"]
    assert files[0] == files[1]
    assert sorted(files[0]) == ["m.d.mts", "m.mjs", "m.wasm"]
