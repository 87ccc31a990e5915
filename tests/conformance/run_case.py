"""Runs one backend case the way a user would: compiled to a saved bundle, run by the loader,
compared.

In: a ``Case``. Out: an ``Outcome``. Not done here: choosing cases (``cases``), surviving crashes
(``workers``).

What depends on the target alone (support code, the digest functions) is made once per process
instead of once per case: the bytes are the same.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from unittest import mock

import ml_dtypes
import numpy as np
import numpy.typing as npt
from onnx import ModelProto
from tests.c_loader import CBundle
from tests.conformance.cases import RANDOM, Case

import ingot_runtime
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import CompiledModel, compile_model
from ingot_compiler.backends.host.support import host
from ingot_compiler.backends.host.support.host import HostDigests
from ingot_compiler.codegen import object as code_objects
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import Graph, Names
from ingot_compiler.ir.verify import verify
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.format.dtypes import ML_DTYPES
from ingot_runtime.ingot_error import IngotError

Array = npt.NDArray[Any]
CATEGORIES = ("pass", "refused", "wrong", "crash", "error")
SAME_IN_C = "the same bits by the loader in C"
_BF16_RELATIVE = 2.0**-6  # at least, as in the onnx package's own runner


@dataclass(frozen=True, slots=True)
class Outcome:
    """``category``: one of ``CATEGORIES``; ``detail`` says what and why."""

    category: str
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
    graph = infer_types(imported, store.read).graph
    verify(graph)
    return graph, names


@functools.cache
def _shared() -> tuple[Any, Any]:
    return functools.lru_cache(4096)(compile_object), functools.cache(HostDigests)


def compile_quickly(
    model: ModelProto | bytes, path: str, targets: Sequence[str] = (), device: str = ""
) -> CompiledModel:
    """Compile and save as ``ingot.compile(model).save(path)`` does, with the parts that no model
    changes kept; every node is placed on ``device`` where one is given."""
    objects, digests = _shared()
    content = model if isinstance(model, bytes) else model.SerializeToString()
    with (
        mock.patch.object(code_objects, "compile_object", objects),
        mock.patch.object(host, "HostDigests", digests),
    ):
        compiled = compile_model(content, _options(targets, device))
        compiled.make()
        compiled.save(path)
    return compiled


def _options(targets: Sequence[str], device: str) -> CompileOptions:
    if not device:
        return make_options(targets)
    return make_options(targets, devices={"acc": device}, place=[("*", "acc")])


def run_case(case: Case, device: str = "", *, in_c: bool = False) -> Outcome:
    """Compile, save, load, run every data set, compare with the case's own tolerance; on
    ``device``, such as ``opencl``, where one is given; ``in_c``: by the loader in C, too, which must
    give the same bits."""
    model = case.model()
    with tempfile.TemporaryDirectory(prefix="ingot-case-") as folder:
        path = os.path.join(folder, "case.ingot")
        try:
            compiled = compile_quickly(model, path, device=device)
        except UnsupportedError as error:
            return Outcome("refused", refusal(error))
        except IngotError as error:
            return Outcome("error", f"compile: {type(error).__name__}: {one_line(str(error))}")
        try:
            session = ingot_runtime.load(path)
            results = [_run(session, inputs) for inputs, _ in case.data_sets()]
            told = _told_by_c(case, path, session, results) if in_c else ""
        except ingot_runtime.BundleError as error:
            return Outcome("error", f"run: {type(error).__name__}: {one_line(str(error))}")
    elements = [spec.element for spec in session.outputs]
    for (inputs, expected), outputs in zip(case.data_sets(), results, strict=True):
        wanted = _drawn(outputs, expected) if RANDOM.search(case.name) else expected
        detail = difference(outputs, wanted, elements, case.case.rtol, case.case.atol)
        if detail:
            return Outcome(
                "wrong", f"{detail}; {_blame(compiled, inputs, expected, elements, case)}"
            )
    return Outcome("wrong" if "other bits" in told else "pass", told)


def _told_by_c(case: Case, path: str, session: Any, results: Sequence[Sequence[Any]]) -> str:
    """Whether the loader in C gives the bits of the one in Python; nothing of values that are no
    tensors, which it does not have."""
    if session.loaded.plan.values is not None:
        return ""
    with CBundle(path) as bundle:
        for (inputs, _), outputs in zip(case.data_sets(), results, strict=True):
            names = [spec.name for spec in session.inputs][: len(inputs)]
            found = bundle.run(dict(zip(names, map(stored, inputs), strict=True)))
            for got, wanted in zip(found.values(), outputs, strict=True):
                same = (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
                if not same or got.tobytes() != wanted.tobytes():
                    return "other bits by the loader in C"
    return SAME_IN_C


def _drawn(outputs: Sequence[Array], expected: Sequence[object]) -> Sequence[object]:
    """What counts of random results: element type and shape, not the numbers of numpy's own
    generator."""
    pairs = zip(outputs, map(np.asarray, expected), strict=True)
    same = all((got.shape, got.dtype) == (want.shape, want.dtype) for got, want in pairs)
    return outputs if same else expected


def refusal(error: UnsupportedError) -> str:
    """Give the reasons in one line each; of one op on a device, what and where it is first."""
    lines = [line.strip() for line in error.why.strip().splitlines() if line.strip()]
    if " on device " in error.what:
        lines[0] = f"{error.where}: op {error.what}: {lines[0]}"
    return " | ".join(dict.fromkeys(lines)) or one_line(str(error))


def one_line(text: str) -> str:
    """Join the parts of an error message."""
    return " | ".join(line.strip() for line in text.splitlines() if line.strip())


def stored(array: Any) -> Any:
    """An input as loader and interpreter want it: the types of ``ml_dtypes`` as bit patterns."""
    if array is None or isinstance(array, list):
        return cast("list[Array] | None", array)
    values = np.asarray(array)
    is_foreign = values.dtype.name in ML_DTYPES.values()
    return values.view(f"u{values.itemsize}") if is_foreign else values


def _run(session: Any, inputs: Sequence[object]) -> list[Array]:
    names = [spec.name for spec in session.inputs][: len(inputs)]  # the seed may be left out
    outputs = session.run(dict(zip(names, map(stored, inputs), strict=True)))
    return [outputs[spec.name] for spec in session.outputs]


def _blame(
    compiled: CompiledModel,
    inputs: Sequence[object],
    expected: Sequence[object],
    elements: Sequence[str],
    case: Case,
) -> str:
    """Say whether the interpreter gives the expected answer: if so, the fault is behind the
    graph."""
    try:
        if any(value is None or isinstance(value, list) for value in (*inputs, *expected)):
            return "the interpreter has tensors alone"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = interpret(compiled.graph, list(map(stored, inputs)), compiled.read_constant)
    except Exception as error:  # a second fault must not hide the first
        return f"interpreter fails: {one_line(str(error))}"
    detail = difference(list(results), expected, elements, case.case.rtol, case.case.atol)
    return f"interpreter: {detail}" if detail else "interpreter is right"


def _tensors(
    results: Sequence[Any], expected: Sequence[Any], elements: Sequence[str]
) -> Iterator[tuple[Any, Any, str]]:
    """Each tensor, and what it should be; those of sequences one by one."""
    for result, wanted, element in zip(results, expected, elements, strict=True):
        if isinstance(result, list):
            items = cast("list[Array]", result)
            lengths = np.asarray(len(items)), np.asarray(len(wanted))
            yield *lengths, "i64"
            yield from zip(items, wanted, [element] * len(items), strict=False)
        else:
            yield result, wanted, element


def difference(
    results: Sequence[Array],
    expected: Sequence[object],
    elements: Sequence[str],
    rtol: float,
    atol: float,
) -> str:
    """What differs by the case's tolerance, empty when nothing does."""
    for position, (result, wanted, element) in enumerate(_tensors(results, expected, elements)):
        if result is None or wanted is None:
            if result is not wanted:
                return f"output {position}: {result}, expected {wanted}"
            continue
        got, want, relative = (
            result,
            np.asarray(wanted),
            max(rtol, _BF16_RELATIVE) if element == "bf16" else rtol,
        )
        if element == "bf16":
            # The interpreter gives their bits, the loader what they are.
            got = got.view(ml_dtypes.bfloat16).astype(np.float32)
            want = want.astype(np.float32)
        elif element in ML_DTYPES:
            # Bit for bit, also which NaN it is.
            got, want = got.view(np.uint8), want.view(np.uint8)
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {position}: {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        if want.dtype.kind != "f":
            if not np.array_equal(got, want):
                return (
                    f"output {position}: {int((got != want).sum())} of {want.size} elements differ"
                )
        elif not np.allclose(got, want, relative, atol, equal_nan=True):
            apart = ~np.isclose(got, want, relative, atol, equal_nan=True)
            first = tuple(int(axis[0]) for axis in np.nonzero(apart))
            count = int(apart.sum())
            return f"output {position}: {count} of {want.size} differ, at {list(first)} {got[first]}, expected {want[first]}"
    return ""
