"""Compiles programs, several in one bundle, and compares interpreter, native code and vm with
``onnx.reference``.

In: programs. Out: one ``Verdict`` each. Not done here: choosing programs (``generate``), crashes
(``run``).
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from tests.conformance.run_case import compile_quickly, one_line, refusal
from tests.fuzz.generate import call_with_infinity, other_call
from tests.fuzz.program import Array, Program, is_float, prefix_of, to_model
from tests.fuzz.reference import Value, evaluate
from tests.fuzz.rules import difference, is_refused_for_sizes, narrow_problem

import ingot_runtime
from ingot_build_rules.making.stages.compile_model import CompiledModel
from ingot_build_rules.tools.check.self_check import check_bundle
from ingot_compiler.codegen import object as code_objects
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.executor.values import unpacked
from ingot_runtime.ingot_error import IngotError

TARGETS = ("native", "x86-64-v3", "native", "x86-64-v2")
_KERNELS_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Verdict:
    """``kind``: "agrees", "refused", "differs" or "error"; ``calls``: compared calls."""

    kind: str
    detail: str = ""
    calls: int = 0


def check_programs(
    programs: Sequence[Program], seeds: Sequence[int], target: str, *, vm: bool = False
) -> list[Verdict]:
    """Compile all programs as one model; one by one where that is refused or goes wrong."""
    with tempfile.TemporaryDirectory(prefix="ingot-fuzz-") as folder, _kept_kernels():
        path = os.path.join(folder, "fuzz.ingot")
        try:
            compiled = compile_quickly(to_model(programs), path, (target,))
            runner = _Runner(compiled, path, programs, vm=vm)
            if vm:
                runner.self_check()
            verdicts = [
                runner.check(position, seeds[position]) for position in range(len(programs))
            ]
        except Exception as error:
            if len(programs) > 1:
                pairs = zip(programs, seeds, strict=True)
                return [
                    check_programs([program], [seed], target, vm=vm)[0] for program, seed in pairs
                ]
            verdicts = [_refused(error)]
    if len(programs) > 1:  # alone, a bad one says more
        verdicts = [
            verdict
            if verdict.kind == "agrees"
            else check_programs([program], [seed], target, vm=vm)[0]
            for verdict, program, seed in zip(verdicts, programs, seeds, strict=True)
        ]
    return verdicts


def _refused(error: Exception) -> Verdict:
    if isinstance(error, UnsupportedError):
        return Verdict("refused", refusal(error))
    if isinstance(error, IngotError | ingot_runtime.BundleError):
        return Verdict("error", f"{type(error).__name__}: {one_line(str(error))}")
    return Verdict("error", f"{type(error).__name__}: {error}")


def _with_all_bits(array: Array, random: np.random.Generator) -> Array:
    with np.errstate(over="ignore"):
        return (array * random.uniform(1, 1.25, array.shape)).astype(array.dtype)


@functools.cache
def _kept_objects() -> Any:
    return functools.lru_cache(_KERNELS_KEPT)(code_objects.compile_object)


@contextlib.contextmanager
def _kept_kernels() -> Generator[None]:
    """Equal kernels of many small models are compiled once per process: an object depends on its
    text and target alone."""
    with mock.patch.object(code_objects, "compile_object", _kept_objects()):
        yield


class _Runner:
    """A loaded bundle of several programs."""

    def __init__(
        self, compiled: CompiledModel, path: str, programs: Sequence[Program], *, vm: bool
    ) -> None:
        self.compiled, self.path = compiled, path
        self.programs = programs
        self.sessions = {"aot": ingot_runtime.load(path)}
        if vm:
            self.sessions["vm"] = ingot_runtime.load(path, executor="vm")
        self._sizes_refused = False
        self.last: dict[int, dict[str, dict[str, Array]]] = {}

    def self_check(self) -> None:
        """Node by node, as ``--check`` does. The numbers that made the programs are short, and so
        are most of their sums: here they have all bits.

        Raises:
            VerificationError: a launch or an output differs from the interpreter.
        """
        random = np.random.default_rng(0)
        feeds = {
            name: _with_all_bits(array, random) if is_float(array) else array
            for name, array in self._feeds(0, self.programs[0].inputs).items()
        }
        if self.sessions["aot"].loaded.plan.values is None:
            check_bundle(self.compiled, self.path, feeds).require_equal()

    def check(self, position: int, seed: int) -> Verdict:
        """The call that made the program, one with an infinity, and one with other sizes."""
        program = self.programs[position]
        detail = self._call(position, program.inputs, evaluate(program, program.inputs))
        if detail:
            return self._verdict(detail)
        infinite = call_with_infinity(program, seed)
        if infinite is not None:
            detail = self._call(position, infinite, evaluate(program, infinite))
            if detail:
                return self._verdict(f"beside an infinity: {detail}")
        inputs = other_call(program, seed)
        try:
            expected = evaluate(program, inputs)
        except (
            Exception
        ):  # these sizes are not possible, or the numbers not defined: nothing to compare with
            return Verdict("agrees", calls=1)
        if any(
            value.bound is not None and not is_float(value.array) for value in expected.values()
        ):
            return Verdict("agrees", calls=1)  # rounding decides about an integer
        detail = self._call(position, inputs, expected)
        return self._verdict(f"other sizes: {detail}") if detail else Verdict("agrees", calls=2)

    def _verdict(self, detail: str) -> Verdict:
        """A difference, or what a rule calls a refusal."""
        return Verdict("refused" if self._sizes_refused else "differs", detail)

    def _call(
        self, position: int, inputs: Mapping[str, Array], expected: Mapping[str, Value]
    ) -> str:
        feeds = self._feeds(position, inputs)
        answers = {name: _or_error(session.run, feeds) for name, session in self.sessions.items()}
        answers["interpreter"] = _or_error(self._interpret, feeds)
        self._sizes_refused = is_refused_for_sizes(list(answers.values()))
        program, prefix = self.programs[position], prefix_of(position, len(self.programs))
        reshaped = any(node.op_type == "Reshape" for node in program.nodes)
        details: list[str] = []
        for name, answer in answers.items():
            if isinstance(answer, str):
                details.append(f"{name}: {answer}")
                continue
            differences = {
                output: difference(answer[prefix + output], expected[output], reshaped=reshaped)
                for output in program.outputs
            }
            for output, text in differences.items():
                lost = narrow_problem(program, expected, output, answer[prefix + output])
                details += [f"{name}: {output}: {each}" for each in (text, lost) if each]
        aot, vm = answers["aot"], answers.get("vm")
        if vm is not None and not isinstance(aot, str) and not isinstance(vm, str):
            details += [
                f"aot and vm differ: {name}"
                for name in aot
                if aot[name].tobytes() != vm[name].tobytes()
            ]
        return " | ".join(details)

    def _feeds(self, position: int, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """This program's inputs, and those of its neighbours as they were made."""
        count = len(self.programs)
        feeds = {
            prefix_of(other, count) + name: array
            for other, program in enumerate(self.programs)
            for name, array in (inputs if other == position else program.inputs).items()
        }
        return {spec.name: feeds[spec.name] for spec in self.sessions["aot"].inputs}

    def _interpret(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = interpret(
                self.compiled.graph, list(feeds.values()), self.compiled.read_constant
            )
        plan = self.sessions["aot"].loaded.plan
        tensors = (tensor.name for tensor in plan.outputs)
        found = dict(zip(tensors, results, strict=True))
        return unpacked(plan, found) if plan.values else found


def _or_error(run: Any, feeds: Mapping[str, Array]) -> dict[str, Array] | str:
    try:
        results: dict[str, Array] = run(feeds)
    except (IngotError, ingot_runtime.BundleError) as error:
        return f"{type(error).__name__}: {one_line(str(error))}"
    return results
