"""Everything of a model that Ingot does not support, collected, so that one error lists it all.

In: findings, one per node or tensor. Out: ``UnsupportedError`` (exit code 3). Not done here: finding them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_compiler.ir.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Finding:
    """One unsupported thing. ``node`` names it as messages do; ``opset`` 0 and ``dtype`` "" mean: does not apply."""

    node: str
    op: str
    domain: str
    opset: int
    dtype: str
    reason: str

    def __str__(self) -> str:
        parts = [f"op {self.op}"] if self.op else []
        parts += [f"domain {self.domain or 'ai.onnx'}", f"opset {self.opset}"] if self.opset else []
        parts += [f"dtype {self.dtype}"] if self.dtype else []
        return f"{self.node}: {', '.join(parts)}{': ' if parts else ''}{self.reason}"


def raise_unsupported(findings: Sequence[Finding], model: str) -> None:
    """Raise one UnsupportedError that lists all findings; nothing when there are none."""
    if not findings:
        return
    count = len(findings)
    what = f"the model uses {count} thing{'s' if count > 1 else ''} that Ingot does not support"
    why = "".join(f"\n    {finding}" for finding in findings)
    do = "export without these nodes or element types, or with another opset; CONTRIBUTING tells how to add an op"
    raise UnsupportedError(what, f"model {model!r}" if model else "model", why, do)
