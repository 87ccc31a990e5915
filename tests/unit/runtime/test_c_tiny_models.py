"""Models for microcontrollers as C: the RAM that is told before anything is flashed is the RAM that
a program has, and the RAM that a call uses."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from tests.c_source import Array, CModel, compile_c, export
from tests.object_sizes import writable_bytes
from tests.tiny_models import TINY
from tests.unit.end_to_end.test_microcontroller import make_person
from tests.unit.tools.test_c_source import bundle_run

PERSON, QUICK = "person", "autoencoder"
TOLERANCE = 0.05  # of what is told
_CORTEX_M4 = (
    "-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4", "-std=c99", "-Os", "-g0",
    "-fno-sanitize=all",
)  # fmt: skip
_PLACE = '#include "m.c.text"\nvoid *place(void);\nvoid *place(void) { return workspace; }\n'


def make_model(name: str, folder: Path) -> Path:
    """Write one of MLPerf Tiny's four."""
    if name == PERSON:
        return make_person(folder)
    path = folder / f"{name}.onnx"
    path.write_bytes(TINY[name]().SerializeToString())
    return path


def with_place(header: Path) -> CModel:
    """The model, and a function ``place`` that tells where its RAM is."""
    (header.parent / "m.c").rename(header.parent / "m.c.text")
    (header.parent / "place.c").write_text(_PLACE)
    made = CModel(header)
    made.library.place.restype = ctypes.c_void_p
    return made


@pytest.mark.broad
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == QUICK else pytest.mark.slow) for n in (*TINY, PERSON)],
)
def test_ram_is_as_told(name: str, tmp_path: Path) -> None:
    """By the objects for a Cortex-M4, and by the words that a call has written to."""
    path = make_model(name, tmp_path)
    header = export(path, tmp_path / "c", "--name", "m")
    for source in ("m", "m_weights"):
        line = (*_CORTEX_M4, "-c", f"{source}.c", "-o", f"{source}.o")
        assert compile_c(header.parent, *line) == ""
    objects = sum(writable_bytes(object_) for object_ in header.parent.glob("*.o"))
    made = with_place(header)
    told = made.facts["ram_bytes"]
    assert objects == pytest.approx(told, rel=TOLERANCE)
    words = (ctypes.c_uint32 * (told // 4)).from_address(made.library.place())
    ram, random = np.frombuffer(words, np.uint32), np.random.default_rng(0)
    paint = random.integers(1, 2**32, len(ram), np.uint32)
    ram[:] = paint
    (spec,) = made.facts["inputs"]
    shape: list[int] = spec["shape"]
    given: dict[str, Array] = {spec["name"]: random.standard_normal(shape).astype(np.float32)}
    result = made.run(given)
    assert 4 * np.count_nonzero(ram != paint) == pytest.approx(told, rel=TOLERANCE)
    expected = bundle_run(path, "x86-64-v2", given, tmp_path)
    assert {n: a.tobytes() for n, a in result.items()} == {
        n: a.tobytes() for n, a in expected.items()
    }
