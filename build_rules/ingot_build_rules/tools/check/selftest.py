"""The calls with which a device proves that a bundle works there: made with the bundle, kept in it,
and made once by the loader here before anybody is given the bundle.

In: a compilation, its bundle, how many. Out: the bundle with a section for each call. Not done
here: making the calls (``ingot_runtime.selftest``), how near is near (``output_limits``).

Inputs are generated. Outputs are the interpreter's of the graph that the kernels were made of: so a
variant of any processor is compared with the same numbers, and the bytes depend on no machine that
builds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.check.generated_inputs import generated_inputs
from ingot_build_rules.tools.check.output_limits import ExpectedOutput, expected_outputs, steady
from ingot_compiler.ir.errors import UserError, VerificationError
from ingot_compiler.ir.in_names import error_in_names, refers
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.precision import BF16
from ingot_runtime.format import header as head
from ingot_runtime.format.defaults import head_size_bytes
from ingot_runtime.format.limits import ALIGNMENT_SMALL_BYTES, MIB
from ingot_runtime.format.selftest import LIMITS
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef
from ingot_runtime.selftest import prove

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_compiler.ir.graph import Graph

_SECTION_BYTES_MAX = 256 * MIB
_TRIES_MAX = 8
_Call = tuple[Sequence[Array], Sequence[ExpectedOutput]]


@dataclass(frozen=True, slots=True)
class Proved:
    """``targets``: of the variants that ran here and gave what they must; ``left_out``: those that
    this machine does not run; ``error``: the largest of an output, by its largest magnitude."""

    digest: str
    call_count: int
    targets: tuple[str, ...]
    left_out: tuple[str, ...]
    error: float

    def __str__(self) -> str:
        """One line for people."""
        calls = f"{self.call_count} call{'' if self.call_count == 1 else 's'} of the selftest"
        left_out = f"; not run here: {', '.join(self.left_out)}" if self.left_out else ""
        if not self.targets:
            return f"kept {calls}{left_out}"
        return f"proved by {calls}: {', '.join(self.targets)}, error {self.error:.1e}{left_out}"

    def plain(self) -> dict[str, object]:
        """The result as plain values, for JSON."""
        names = {"targets": list(self.targets), "targets_left_out": list(self.left_out)}
        return {"call_count": self.call_count, **names, "error": self.error}


def add_selftest(compiled: CompiledModel, path: str, count: int) -> Proved:
    """Put ``count`` calls into the bundle at ``path``, and make them with every variant that runs
    here.

    Raises:
        UserError: the interpreter accepts none of the generated inputs, or a call is too large.
        VerificationError: a variant gives something else; ``path`` is then no bundle to ship.
    """
    payloads = {(head.SELFTEST, at): _section(compiled, at, count) for at in range(count)}
    if max(map(len, payloads.values())) > _SECTION_BYTES_MAX:
        why = "inputs and outputs of a call have more than 256 MiB"
        raise UserError(
            "a call is too large", ("option ", OptionRef("selftest")), why, "leave it out"
        )
    with opened(path) as source:
        digest = rewrite_bundle(source, Changes(payloads), path)
    return _proved(path, digest, count, [each.target for each in compiled.target_builds])


def _proved(path: str, digest: str, count: int, targets: Sequence[str]) -> Proved:
    """Make the calls that a bundle holds, with each of its variants."""
    ran, left_out, error = list[str](), list[str](), 0.0
    for target in targets:
        try:
            session = ingot_runtime.load(path, variant=target)
        except ingot_runtime.IncompatibleError:
            left_out.append(target)
            continue
        with session:
            proof = prove(session)
        if proof.failures:
            raise VerificationError(
                "a bundle fails its own selftest",
                where=f"target {target}",
                why="; ".join(proof.failures[:3]),
                do=message("see which kernel differs: ", OptionRef("check")),
            )
        ran.append(target)
        error = max(error, proof.error)
    return Proved(digest, count, tuple(ran), tuple(left_out), error)


def _section(compiled: CompiledModel, number: int, count: int) -> bytes:
    given, expected = _call(compiled, compiled.optimized.graph, number, count)
    parts = [_tensor(array) for array in given]
    for tensor, output in zip(compiled.interface.outputs, expected, strict=True):
        limits = LIMITS.pack(output.limits.tolerance, output.limits.share)
        parts += [limits, _tensor(steady(output, tensor.dtype))]
    return b"".join(parts)


def _call(compiled: CompiledModel, graph: Graph, number: int, count: int) -> _Call:
    """The first inputs of which the interpreter can compute something, in shapes that rounding
    does not decide."""
    rounded = compiled.options.choices.precision == BF16
    why = "every size leaves nothing to compute"
    for attempt in range(_TRIES_MAX):
        for _, given in islice(generated_inputs(graph, number + attempt * count), _TRIES_MAX):
            try:
                expected = expected_outputs(
                    graph, given, compiled.read_constant, joined=False, rounded=rounded
                )
            except IngotError as error:
                named = error_in_names(error, compiled.names) if refers(error) else error
                why = str(named.why or named.what)
                continue
            if all(output.is_settled for output in expected):
                return given, expected
            why = "rounding decides the shape of an output, which differs between processors"
            break
    what, do = "the model accepts none of the generated inputs", "leave the selftest out"
    raise UserError(what, ("option ", OptionRef("selftest")), why, do)


def _tensor(array: Array) -> bytes:
    words = struct.pack(f"<{1 + array.ndim}q", array.ndim, *array.shape)
    content = words.ljust(head_size_bytes(array.ndim), b"\0") + array.tobytes()
    return content.ljust(len(content) + -len(content) % ALIGNMENT_SMALL_BYTES, b"\0")
