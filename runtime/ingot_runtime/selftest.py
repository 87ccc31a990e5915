"""The proof on the device: the calls that a bundle holds give what they must.

In: a session. Out: ``Proof``. Not done here: the section (``format.selftest``), the command.
"""

import numpy as np

from .errors import InputError
from .executor.numpy_dtypes import bits_of, dtype_of
from .executor.session import Session
from .format import header as head
from .format.dtypes import DTYPE_NAMES
from .format.selftest import Case, decode_case

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Numbers = np.ndarray[Any, np.dtype[np.float64]]

_FLOATS = {"f64": "f8", "f32": "f4", "f16": "f2"}


class Proof:
    """``count`` of calls; ``error``: the largest of an output, by its largest expected magnitude;
    ``failures``: a line for each output that is wrong."""

    __slots__ = ("count", "error", "failures")

    def __init__(self) -> None:
        self.count = 0
        self.error = 0.0
        self.failures: list[str] = []


def prove(session: Session) -> Proof:
    """Make the calls that the bundle holds, and compare.

    Raises:
        InputError: it holds none. BundleError: a call failed, or a section is damaged.
    """
    source, proof = session.loaded.source, Proof()
    for row in source.sections:
        if row.kind == head.SELFTEST:
            case = decode_case(source.section(head.SELFTEST, row.id), session.loaded.plan, row.name)
            _call(session, case, row.id, proof)
    if not proof.count:
        do = "`ingot compile MODEL --selftest N` keeps some in it"
        raise InputError("the bundle holds no selftest", source.name, "no such section", do)
    return proof


def _call(session: Session, case: Case, number: int, proof: Proof) -> None:
    plan, inputs = session.loaded.plan, dict[str, np.ndarray]()
    for tensor, (shape, data) in zip(plan.inputs, case.inputs, strict=True):
        inputs[tensor.name] = np.frombuffer(data, dtype_of(tensor.dtype)).reshape(shape)
    # Of a bundle with values, too: the section holds the tensors that they are made of.
    outputs = Session.run(session, inputs)
    proof.count += 1
    for at, tensor in enumerate(plan.outputs):
        shape, data = case.outputs[at]
        got, where = outputs[tensor.name], f"call {number}, output {tensor.name!r}"
        if got.shape != shape:
            proof.failures.append(f"{where}: shape {got.shape}, expected {shape}")
            continue
        expected = np.frombuffer(data, bits_of(tensor.dtype)).reshape(shape)
        error = compare(got, expected, DTYPE_NAMES[tensor.dtype], case.limits[at])
        proof.error = max(proof.error, abs(error))
        if error < 0:
            proof.failures.append(f"{where}: error {-error:.3g}, allowed {case.limits[at][0]:.3g}")


def compare(
    got: "np.ndarray", expected: "np.ndarray", dtype: str, limits: "tuple[float, float]"
) -> float:
    """Return the largest error by the largest expected magnitude, negative if it is too large."""
    if got.size == 0 or got.tobytes() == expected.tobytes():
        return 0.0
    with np.errstate(invalid="ignore"):
        left, right = (_numbers(array, expected.dtype, dtype) for array in (got, expected))
        errors = np.abs(left - right)
    errors[(left == right) | (np.isnan(left) & np.isnan(right))] = 0.0
    errors[np.isnan(errors)] = np.inf
    scale = float(np.max(np.abs(right), where=np.isfinite(right), initial=0.0)) or 1.0
    tolerance, share = limits
    apart = int(np.count_nonzero(errors > tolerance * scale))
    worst = float(np.max(errors)) / scale
    return worst if apart <= share * errors.size else -worst


def _numbers(array: "np.ndarray", bits: "np.dtype[Any]", dtype: str) -> "Numbers":
    raw = np.ascontiguousarray(array).view(bits)
    if dtype == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return raw.view(_FLOATS.get(dtype, bits)).astype(np.float64)
