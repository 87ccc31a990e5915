"""Runs ONNX models through frontend and interpreter alone, as they are and with sizes unknown.

In: models, inputs, expected outputs. Out: an ``Outcome``. Not done here: machine code
(``tests/conformance``).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, numpy_helper
from tests.harness.values_harness import interpret_values
from tests.stage_checks import check_imported

from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import TypedModel, infer_types
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import Graph, Names
from ingot_compiler.ir.verify import verify
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.format.dtypes import ML_DTYPES
from ingot_runtime.ingot_error import IngotError

Array = npt.NDArray[Any]
_BF16_RELATIVE = 2.0**-6  # at least, as in the onnx package's own runner


@dataclass(frozen=True, slots=True)
class Outcome:
    """``kind``: "agrees", "differs", "unsupported" or "fails"; ``detail`` says what and why."""

    kind: str
    detail: str = ""


@dataclass(slots=True)
class MemoryStore:
    """Constants by digest, in memory."""

    constants: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def write(self, data: memoryview) -> str:
        """Keep ``data``, return its digest."""
        digest = hashlib.sha256(data).hexdigest()
        self.constants[digest] = bytes(data)
        return digest

    def read(self, digest: str) -> memoryview:
        """The bytes of a constant."""
        return memoryview(self.constants[digest])


def no_external(location: str, offset_bytes: int, size_bytes: int | None) -> memoryview:
    """A reader for models without external data."""
    raise AssertionError(location)


def translate(model: ModelProto, store: MemoryStore) -> tuple[Graph, Names]:
    """Import, infer types, verify."""
    imported, names = import_model(model.SerializeToString(), no_external, store.write, [], [])
    check_imported(imported)
    graph = infer_types(imported, store.read).graph
    verify(graph)
    return graph, names


def symbolic(model: ModelProto) -> ModelProto:
    """The same model with every input dimension unknown, each under a name of its own; outputs
    undeclared."""
    changed = ModelProto()
    changed.CopyFrom(model)
    for value in changed.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{axis}"
    for value in changed.graph.output:
        value.type.tensor_type.ClearField("shape")
    return changed


def fixed(model: ModelProto, inputs: Sequence[Any]) -> tuple[ModelProto, list[Any]]:
    """The same model with its small integer inputs as initializers, and the inputs that are
    left."""
    changed = ModelProto()
    changed.CopyFrom(model)
    left: list[Any] = []
    del changed.graph.input[:]
    for value, data in zip(model.graph.input, inputs, strict=True):
        array = None if isinstance(data, list) or data is None else as_array(data)
        if array is not None and array.dtype.kind in "iub" and array.size <= 64:
            changed.graph.initializer.append(numpy_helper.from_array(array, value.name))
        else:
            changed.graph.input.append(value)
            left.append(data)
    return changed, left


def run_model(
    model: ModelProto,
    inputs: Sequence[object],
    expected: Sequence[object],
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> Outcome:
    """Translate and interpret a model, compare with what is expected."""
    store = MemoryStore()
    try:
        imported, names = import_model(model.SerializeToString(), no_external, store.write, [], [])
        check_imported(imported)
        typed = infer_types(imported, store.read)
        verify(typed.graph)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = _results(typed, names, inputs, store)
    except UnsupportedError as error:
        return Outcome("unsupported", error.why.strip())
    except IngotError as error:
        return Outcome("fails", str(error))
    detail = _difference(results, expected, rtol, atol)
    return Outcome("differs", detail) if detail else Outcome("agrees")


def _results(
    typed: TypedModel, names: Names, inputs: Sequence[object], store: MemoryStore
) -> Sequence[Any]:
    """What the interpreter gives."""
    if typed.forms:
        return interpret_values(typed, names, list(map(_value, inputs)), store.read)
    # Random ops have made an input of their own, the seed.
    seed = [np.array(0, np.int64)] * (len(typed.graph.inputs) - len(inputs))
    return interpret(typed.graph, [*(_stored(data) for data in inputs), *seed], store.read)


def _value(value: object) -> Any:
    if value is None or isinstance(value, list):
        return cast("list[object] | None", value)
    return as_array(value)


def as_array(value: object) -> Array:
    """What a test case gives as a tensor."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _stored(value: object) -> Array:
    """An input as the interpreter wants it: types of ``ml_dtypes`` as bit patterns."""
    array = as_array(value)
    is_foreign = array.dtype.name in ML_DTYPES.values()
    return array.view(f"u{array.itemsize}") if is_foreign else array


def _items(value: object) -> list[object] | None:
    """Those of a sequence; None of anything else."""
    return cast("list[object]", value) if isinstance(value, list) else None


def _difference(
    results: Sequence[Any], expected: Sequence[object], rtol: float, atol: float
) -> str:
    for position, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        items, wanted_items = _items(result), _items(wanted)
        if items is not None and wanted_items is not None and len(items) == len(wanted_items):
            detail = _difference(items, wanted_items, rtol, atol)
            if detail:
                return f"output {position}: {detail}"
            continue
        if result is None and wanted is None:
            continue
        assert result is not None, f"output {position}: nothing, expected {wanted}"
        want, got = as_array(wanted), result
        relative = rtol
        if want.dtype.name == "bfloat16":
            relative = max(rtol, _BF16_RELATIVE)
            got, want = (got.astype(np.uint32) << 16).view(np.float32), want.astype(np.float32)
        elif want.dtype.name in ML_DTYPES.values():
            want = want.view(np.uint8)
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {position}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        close = (
            np.allclose(got, want, relative, atol, equal_nan=True)
            if want.dtype.kind == "f"
            else np.array_equal(got, want)
        )
        if not close:
            return f"output {position}: {got.ravel()[:4]}, expected {want.ravel()[:4]}"
    return ""
