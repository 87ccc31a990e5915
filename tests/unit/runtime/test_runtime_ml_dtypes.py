"""Element types that numpy does not have: arrays of the ``ml_dtypes`` package where it is installed,
their bits as integers where not."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from tests.unit.runtime.test_runtime_vm import build, copy_program

import ingot_runtime
from ingot_runtime.executor import numpy_dtypes
from ingot_runtime.format.dtypes import DTYPE_NAMES, ML_DTYPES
from ingot_runtime.npz import read_npz, write_npz

NUMBERS = np.array([1, -2, 0.5], ml_dtypes.bfloat16)
BITS = NUMBERS.view(np.uint16)
LARGE = 50_000


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of any number of bf16."""
    path = tmp_path_factory.mktemp("bf16") / "m.ingot"
    return build(path, copy_program(("n",), 2), [("x", "bf16", ("n",))], [("y", "bf16", ("n",))])


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no ``ml_dtypes``."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(numpy_dtypes, "_found", {})


def ran(bundle: Path, x: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """What a session gives, twice: the second call of a shape goes another way."""
    with ingot_runtime.load(bundle) as session:
        first, second = session.run({"x": x})["y"], session.run({"x": x})["y"]
    assert first.dtype == second.dtype
    assert first.tobytes() == second.tobytes() == x.tobytes()
    return first


def test_the_package_has_every_such_type() -> None:
    """The names are those of the package, and of types that bundles have."""
    assert set(ML_DTYPES) <= set(DTYPE_NAMES)
    assert all(hasattr(ml_dtypes, name) for name in ML_DTYPES.values())


@pytest.mark.parametrize("count", [3, LARGE])
def test_arrays_of_the_package(bundle: Path, count: int) -> None:
    """Outputs are of its type; inputs may be, or be their bits, or what a .npz file made of them."""
    numbers = np.resize(NUMBERS, count)
    for x in (numbers, numbers.view(np.uint16), numbers.view("V2")):
        y = ran(bundle, x)
        assert y.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(y, numbers)
    with ingot_runtime.load(bundle) as session:
        assert [spec.dtype for spec in (*session.inputs, *session.outputs)] == ["bfloat16"] * 2
        assert session.inputs[0].element == "bf16"


@pytest.mark.usefixtures("not_installed")
@pytest.mark.parametrize("count", [3, LARGE])
def test_bits_without_the_package(bundle: Path, count: int) -> None:
    """The same bits as uint16; arrays of the package can still come from elsewhere."""
    numbers = np.resize(NUMBERS, count)
    for x in (numbers.view(np.uint16), numbers):
        y = ran(bundle, x)
        assert y.dtype == np.uint16
    with ingot_runtime.load(bundle) as session:
        assert session.outputs[0].dtype == "uint16"


def test_another_type_is_refused(bundle: Path) -> None:
    """Even of the same size; numbers are converted, not taken for bits."""
    for x in (np.zeros(3, np.float16), np.zeros(3, np.int16), np.zeros(3, "V4")):
        with (
            ingot_runtime.load(bundle) as session,
            pytest.raises(ingot_runtime.InputError) as caught,
        ):
            session.run({"x": x})
        assert caught.value.why == f"expected bfloat16[n], got {x.dtype}[3]"
        assert caught.value.do == "convert it: x.astype('bfloat16')"


@pytest.mark.usefixtures("not_installed")
def test_another_type_is_refused_without_the_package(bundle: Path) -> None:
    """Not by advice that would turn numbers into bits."""
    with ingot_runtime.load(bundle) as session, pytest.raises(ingot_runtime.InputError) as caught:
        session.run({"x": np.zeros(3, np.float32)})
    assert caught.value.why == "expected uint16[n], got float32[3]"
    assert caught.value.do == "give the bits of bf16, or install ml_dtypes"


def test_bound_arrays(tmp_path: Path) -> None:
    """Those that are made have the package's type; those that are given stay what they are."""
    program, dims = copy_program((3,), 2), (3,)
    path = build(tmp_path / "m.ingot", program, [("x", "bf16", dims)], [("y", "bf16", dims)])
    with ingot_runtime.load(path) as session:
        made = session.bind()
        made.inputs["x"][...] = NUMBERS
        made.run()
        np.testing.assert_array_equal(made.outputs["y"], NUMBERS)
        given = session.bind({"x": np.zeros(3, np.uint16)}, {"y": np.zeros(3, np.uint16)})
        given.inputs["x"][...] = BITS
        given.run()
        np.testing.assert_array_equal(given.outputs["y"], BITS)


def test_files_have_the_bits(tmp_path: Path) -> None:
    """A .npz file cannot name such a type."""
    file = io.BytesIO()
    write_npz(file, {"x": NUMBERS})
    (tmp_path / "x.npz").write_bytes(file.getvalue())
    np.testing.assert_array_equal(read_npz(str(tmp_path / "x.npz"))["x"], BITS)


def test_the_package_is_not_imported_without_need(bundle: Path, tmp_path: Path) -> None:
    """Not for a bundle of other types, and numpy not before arrays are needed."""
    other = build(
        tmp_path / "m.ingot", copy_program((3,), 4), [("x", "f32", (3,))], [("y", "f32", (3,))]
    )
    code = f"""if True:
        import sys
        import ingot_runtime
        session = ingot_runtime.load({str(bundle)!r})
        assert str(session.inputs[0]) == "x: bf16[n]"
        assert "numpy" not in sys.modules
        import numpy
        ingot_runtime.load({str(other)!r}).run({{"x": numpy.zeros(3, numpy.float32)}})
        assert "ml_dtypes" not in sys.modules
        assert session.inputs[0].dtype == "bfloat16"
        assert "ml_dtypes" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
