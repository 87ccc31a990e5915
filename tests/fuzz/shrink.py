"""Makes a failing program smaller and writes it as a reproducer.

In: a seed that failed. Out: SEED.onnx and SEED.txt. Not done here: finding failures (``run``).

Every attempt runs in a forked process, since the failure may be a crash. An attempt counts when it
fails in the same way: the same kind, and the same parts (aot, vm, interpreter) in its detail.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import numpy as np
from tests.conformance.workers import Result, run_forked
from tests.fuzz.check import check_programs
from tests.fuzz.generate import generate
from tests.fuzz.program import Array, Program, describe, to_model
from tests.fuzz.reference import evaluate

_LIMIT_SECONDS = 30.0
_PARTS = re.compile(r"\b(aot|vm|interpreter|other sizes|SIG\w+|\w+Error)\b")


def write_reproducer(
    seed: int, kind: str, detail: str, folder: str, *, shrink: bool, target: str
) -> None:
    """Write the program of ``seed``, or a smaller one that fails alike."""
    os.makedirs(folder, exist_ok=True)
    program = generate(seed)
    if shrink:
        program, detail = shrunk(program, seed, kind, detail, target)
    path = os.path.join(folder, str(seed))
    with open(f"{path}.onnx", "wb") as file:
        file.write(to_model([program]).SerializeToString())
    with open(f"{path}.txt", "w", encoding="utf-8") as file:
        file.write(describe(program, f"seed {seed}, target {target}: {kind}: {detail}"))


def shrunk(program: Program, seed: int, kind: str, detail: str, target: str) -> tuple[Program, str]:
    """Take parts away while it fails alike."""
    wanted = kind, _parts(detail)
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(program):
            result = _verdict(smaller, seed, target)
            if (result["category"], _parts(result["detail"])) == wanted:
                program, detail, changed = smaller, result["detail"], True
                break
    return program, detail


def _parts(detail: str) -> frozenset[str]:
    return frozenset(_PARTS.findall(detail))


def _verdict(program: Program, seed: int, target: str) -> Result:
    def work(_: str) -> Result:
        verdict = check_programs([program], [seed], target, vm=True)[0]
        return {"category": verdict.kind, "detail": verdict.detail}

    return next(iter(run_forked(["one"], work, 1, _LIMIT_SECONDS)))[1]


def _smaller(program: Program) -> Iterator[Program]:
    """Candidates, those that take away most first."""
    if len(program.outputs) > 1:
        for name, dtype in program.outputs.items():
            yield _with(program, outputs={name: dtype}).without_dead_parts()
    values = evaluate(program, program.inputs)
    for node in reversed(program.nodes):  # an output further up
        for name in node.output:
            if name and name not in program.outputs:
                yield _with(program, outputs={name: values[name].array.dtype}).without_dead_parts()
    for node in reversed(program.nodes):  # a result becomes an input
        if not all(name in program.outputs for name in node.output):
            yield _cut(
                program, list(node.output), {name: values[name].array for name in node.output}
            )
    for name, array in program.inputs.items():
        fixed = tuple(array.shape)
        if program.shapes[name] != fixed:
            yield _with(program, shapes={**program.shapes, name: fixed})
    for name, array in program.inputs.items():
        if (
            array.dtype.kind != "b" and array.any() and not (array == 1).all()
        ):  # ones do not become zeros: that would not end
            for simple in (np.zeros_like(array), np.ones_like(array)):
                smaller = _with(program, inputs={**program.inputs, name: simple})
                if _is_defined(smaller):
                    yield smaller


def _cut(program: Program, names: list[str], arrays: dict[str, Array]) -> Program:
    nodes = [node for node in program.nodes if not set(node.output) & set(names)]
    inputs = {**program.inputs, **arrays}
    shapes = {**program.shapes, **{name: tuple(array.shape) for name, array in arrays.items()}}
    outputs = {name: dtype for name, dtype in program.outputs.items() if name not in names}
    return _with(
        program, nodes=nodes, inputs=inputs, shapes=shapes, outputs=outputs
    ).without_dead_parts()


def _is_defined(program: Program) -> bool:
    try:
        evaluate(program, program.inputs)
    except Exception:
        return False
    return True


def _with(program: Program, **parts: object) -> Program:
    fields = {
        name: parts.get(name, getattr(program, name)) for name in Program.__dataclass_fields__
    }
    return Program(**fields)  # type: ignore[arg-type]
