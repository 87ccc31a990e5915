"""Runs a case of the onnx package's backend suite through frontend and interpreter.

In: an ``onnx.backend.test.case.test_case.TestCase``. Out: an ``Outcome``. Not done here: choosing cases (``test_nodes_by_interpreter``).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase

from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.ir.errors import IngotError, UnsupportedError
from ingot_compiler.ir.graph import Graph, Names
from ingot_compiler.ir.interpret import interpret
from ingot_compiler.ir.verify import verify

Array = npt.NDArray[Any]


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
    imported, names = import_model(model.SerializeToString(), no_external, store.write, {}, [])
    graph = infer_types(imported, store.read)
    verify(graph)
    return graph, names


def run_case(case: TestCase) -> Outcome:
    """Translate and interpret every data set of a case, compare with its expected outputs and tolerances."""
    store = MemoryStore()
    assert case.model is not None
    assert case.data_sets is not None
    try:
        graph, _ = translate(case.model, store)
    except UnsupportedError as error:
        return Outcome("unsupported", error.why.strip())
    except IngotError as error:
        return Outcome("fails", str(error))
    for inputs, expected in case.data_sets:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = interpret(graph, [stored(array) for array in inputs], store.read)
        except IngotError as error:
            return Outcome("fails", str(error))
        detail = _difference(results, expected, case.rtol, case.atol)
        if detail:
            return Outcome("differs", detail)
    return Outcome("agrees")


def stored(array: object) -> Array:
    """An input as the interpreter wants it: bf16 as bit patterns."""
    values = _array(array)
    return values.view(np.uint16) if values.dtype.name == "bfloat16" else values


def _array(value: object) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _difference(results: Sequence[Array], expected: Sequence[object], rtol: float, atol: float) -> str:
    """What differs. Half types get a tolerance of one unit in the last place, since the interpreter rounds once only."""
    for position, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        want = _array(wanted)
        if want.dtype.name == "bfloat16":
            got = (result.astype(np.uint32) << 16).view(np.float32)
            want = want.astype(np.float32)
            rtol, atol = max(rtol, 1 / 64), max(atol, 1 / 256)
        else:
            got = result
            rtol, atol = (max(rtol, 1 / 512), max(atol, 1e-3)) if want.dtype == np.float16 else (rtol, atol)
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {position}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        close = (
            np.allclose(got, want, rtol, atol, equal_nan=True) if want.dtype.kind == "f" else np.array_equal(got, want)
        )
        if not close:
            return f"output {position}: largest difference {np.abs(got.astype(float) - want.astype(float)).max()}"
    return ""
