"""Kernels compute under the default floating-point environment, whatever the calling thread has
set, and give it back."""

import ctypes
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal

import ingot
import ingot_runtime
from ingot_runtime.loader.area import Area
from ingot_runtime.loader.image import map_code

_DEFAULT, _MASK = 0x1F80, 0xFFC0
# ldmxcsr [rdi]; ret, and at 16: stmxcsr [rdi]; ret.
_CODE = bytes.fromhex("0fae17c3").ljust(16, b"\xcc") + bytes.fromhex("0fae1fc3")
SETTINGS = {
    "flush to zero": 0x9FC0,
    "upwards": 0x5F80,
    "towards zero": 0x7F80,
    "division by zero traps": 0x1D80,
}


@contextmanager
def control_register(value: int) -> Generator[tuple[Area, "ctypes.c_uint32"]]:
    """Set MXCSR of this thread, and bring the old one back."""
    code = map_code(_CODE)
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    load, store = signature(code.address), signature(code.address + 16)
    old, new = ctypes.c_uint32(), ctypes.c_uint32(value)
    store(ctypes.addressof(old))
    load(ctypes.addressof(new))
    try:
        yield code, new
        store(ctypes.addressof(new))
    finally:
        load(ctypes.addressof(old))


@pytest.mark.sweep(60)
@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("setting", SETTINGS)
def test_results_do_not_depend_on_the_caller(
    setting: str, threads: int, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same bits, subnormal numbers among them; afterwards the caller's own setting is there
    again."""
    monkeypatch.setattr("ingot_runtime.load_bundle.usable_threads", int)
    nodes = [node("MatMul", "x w", "m"), node("Mul", "m tiny", "s"), node("Div", "s three", "y")]
    constants = {
        "w": normal(0, 64, 64),
        "tiny": np.full(1, 1e-39, np.float32),
        "three": np.full(1, 3, np.float32),
    }
    model = make_model(nodes, [tensor("x", ["n", 64])], [tensor("y", ["n", 64])], constants)
    session = ingot_runtime.load(
        ingot.compile(model).to_bytes(), threads=threads, executor=executor
    )
    x = normal(1, 2000, 64)
    expected = session.run({"x": x})["y"]
    assert (np.abs(expected[expected != 0]) < np.finfo(np.float32).tiny).any()
    bound = session.bind({"x": x})
    with control_register(SETTINGS[setting]) as (_, after):
        bound.run()
    assert after.value & _MASK == SETTINGS[setting] & _MASK
    assert (bound.outputs["y"] == expected).all()


def test_the_default_is_left_alone() -> None:
    """A thread with the default setting has it afterwards."""
    with control_register(_DEFAULT) as (_, after):
        pass
    assert after.value & _MASK == _DEFAULT
