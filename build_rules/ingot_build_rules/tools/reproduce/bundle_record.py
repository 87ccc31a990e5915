"""What a bundle records of its making, read back: digests of graph and weights, options, toolchain,
the result of every stage.

In: a described bundle, which anybody may have written. Out: ``BundleRecord``. Not done here:
writing it (rule ``bundle``), comparing two (``blame``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.plain_values import (
    as_bytes,
    as_list,
    as_table,
    as_text,
    as_texts,
)
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options
from ingot_compiler.ir.errors import VerificationError
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass

_ONCE = ("infer_types", "optimize", "place")
_PER_TARGET = ("plan_memory", "codegen_main", "link")


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """One of the results for a target: digests of its ``loops`` and of its ``code``."""

    symbol: str
    loops: str
    code: str


@dataclass(frozen=True, slots=True)
class Stage:
    """The result of one rule, for one target or for all (""): an artifact's ``digest``, or
    ``kernels``."""

    rule: str
    target: str
    digest: str = ""
    kernels: tuple[RecordedKernel, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """One call of a ``kernel``; ``code``: digest of its object; ``nodes``: (name, op) of what it
    computes."""

    kernel: str
    code: str
    nodes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BundleRecord:
    """``weights``: digests of the model's constants by number. ``stages``: in the order in which
    they need each other.

    ``options_text``: the options as they are written; ``launches``: by target; ``programs``: target
    -> symbol -> its loops.
    """

    graph: str
    weights: tuple[str, ...]
    options: CompileOptions
    options_text: Mapping[str, object]
    toolchain: Mapping[str, str]
    stages: tuple[Stage, ...]
    launches: Mapping[str, tuple[RecordedLaunch, ...]]
    programs: Mapping[str, Mapping[str, bytes]]


def read_record(described: Mapping[str, Any], path: str) -> BundleRecord:
    """Read the lock of a bundle that ``describe_bundle`` has described.

    Raises:
        VerificationError: it does not say what it was made from, or not in words that this version
            knows.
    """
    try:
        return _record(as_table(described["lock"]), as_table(described["debug"]))
    except (KeyError, TypeError, ValueError, RecursionError, IngotError) as error:
        why = f"no key {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise VerificationError(
            "the bundle does not say what it was made from",
            f"{path}, section lock 0",
            why,
            "use the version of Ingot that made it",
        ) from None


def _record(lock: Mapping[str, object], debug: Mapping[str, object]) -> BundleRecord:
    programs = {
        target: {symbol: as_bytes(loops) for symbol, loops in as_table(kernels).items()}
        for target, kernels in as_table(debug.get("programs", {})).items()
    }
    stages = as_table(lock["stages"])
    return BundleRecord(
        graph=as_text(lock["graph"]),
        weights=tuple(map(as_text, as_list(lock["weights"]))),
        options=recorded_options(lock["options"]),
        options_text=as_table(lock["options"]),
        toolchain=as_texts(lock["toolchain"]),
        stages=_stages(stages, programs),
        launches=_launches(stages, as_table(debug.get("launches", {}))),
        programs=programs,
    )


def _launches(
    stages: Mapping[str, object], recorded: Mapping[str, object]
) -> dict[str, tuple[RecordedLaunch, ...]]:
    found: dict[str, tuple[RecordedLaunch, ...]] = {}
    for target, plain in as_table(stages["targets"]).items():
        code = as_texts(as_table(plain)["kernels"])
        launches = [as_table(launch) for launch in as_list(recorded.get(target, []))]
        found[target] = tuple(
            RecordedLaunch(
                kernel, code.get(kernel, ""), tuple(map(_node, as_list(launch["nodes"])))
            )
            for launch, kernel in ((launch, as_text(launch["kernel"])) for launch in launches)
        )
    return found


def _node(plain: object) -> tuple[str, str]:
    name, op = map(as_text, as_list(plain))
    return name, op


def _kernels(codes: Mapping[str, str], loops: Mapping[str, bytes]) -> tuple[RecordedKernel, ...]:
    """A kernel without recorded loops goes by its symbol in the place of their digest."""
    digests = {symbol: hashlib.sha256(content).hexdigest() for symbol, content in loops.items()}
    return tuple(
        RecordedKernel(symbol, digests.get(symbol, symbol), code) for symbol, code in codes.items()
    )


def _stages(
    recorded: Mapping[str, object], programs: Mapping[str, Mapping[str, bytes]]
) -> tuple[Stage, ...]:
    """Put the stages in the order in which they need each other."""
    found = [Stage(rule, "", as_text(recorded[rule])) for rule in _ONCE]
    for target, plain in sorted(as_table(recorded["targets"]).items()):
        stages = as_table(plain)
        kernels = _kernels(as_texts(stages["kernels"]), programs.get(target, {}))
        found.append(Stage("fuse", target, as_text(stages["fuse"])))
        found += [Stage(rule, target, kernels=kernels) for rule in ("lower", "codegen")]
        found += [Stage(rule, target, as_text(stages[rule])) for rule in _PER_TARGET]
    return tuple(found)
