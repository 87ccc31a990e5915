"""Everything of a model that Ingot does not support, collected, so that one error lists it all.

In: findings, one per node or tensor. Out: ``UnsupportedError`` (exit code 3). Not done here:
finding them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.model.op_schemas import OF_DOMAIN, newest_opset
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.message import NodeRef, OutputRef, Text, joined, message
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef


@dataclass(frozen=True, slots=True)
class ImportFinding:
    """One unsupported thing. ``node`` names it or refers to it; ``opset`` 0 and ``dtype`` "" mean:
    does not apply. ``option``: what the user may say so that it is none."""

    node: str | NodeRef | OutputRef
    op: str
    domain: str
    opset: int
    dtype: str
    reason: Text
    option: Text = ""

    @property
    def text(self) -> Text:
        """The finding as one line."""
        parts = [f"op {self.op}"] if self.op else []
        parts += [f"domain {self.domain or 'ai.onnx'}", f"opset {self.opset}"] if self.opset else []
        parts += [f"dtype {self.dtype}"] if self.dtype else []
        return message(self.node, ": ", ", ".join(parts), ": " if parts else "", self.reason)


def tensor_finding(tensor: str, dtype: str, reason: Text, option: Text = "") -> ImportFinding:
    """A finding about ``tensor``, such as "input 'x'", which belongs to no node."""
    return ImportFinding(tensor, "", "", 0, dtype, reason, option)


def raise_unsupported(findings: Sequence[ImportFinding], model: str) -> None:
    """Raise one UnsupportedError that lists all findings; nothing when there are none."""
    if not findings:
        return
    count = len(findings)
    what = f"the model uses {count} thing{'s' if count > 1 else ''} that Ingot does not support"
    why = message(*(part for finding in findings for part in ("\n    ", finding.text)))
    raise UnsupportedError(what, f"model {model!r}" if model else "model", why, _do(findings))


def _do(findings: Sequence[ImportFinding]) -> Text:
    if all(each.option for each in findings):
        return message("give ", joined(" ", (each.option for each in findings)))
    foreign = [each for each in findings if each.domain and not newest_opset(each.domain)]
    foreign = [each for each in foreign if each.domain not in OF_DOMAIN]
    if foreign:
        option = OptionRef("op", f"{foreign[0].domain}::{foreign[0].op}=FILE")
        return message("define them: ", option, ", a file with a function for each; or ", _OTHER)
    return _OTHER


_OTHER = (
    "export without these nodes or element types, or with another opset; "
    "CONTRIBUTING tells how to add an op"
)
