"""What nodes of an op must look like: ONNX's schemas, and those that ops of other domains state.

In: domain, op, opset. Out: an ``OpSchema``, the newest opset of a domain. Not done here: comparing nodes with it
(``check_nodes``).
"""

from __future__ import annotations

from functools import cache

import onnx.defs
from onnx.defs import OpSchema

from ingot_compiler.frontend.op_table import NEWEST, OPS

OF_DOMAIN = {
    "com.microsoft.nchwc": "weights lie as ONNX Runtime wants them on one machine; "
    "save its optimised model at ORT_ENABLE_EXTENDED at most",
}
"""Domain that will not be known -> why."""

_OPTION = OpSchema.FormalParameterOption


def newest_opset(domain: str) -> int:
    """The newest opset of a domain that this build reads; 0 for a domain that it does not know."""
    return NEWEST.get(domain, 0) if domain else onnx.defs.onnx_opset_version()


@cache
def schema_of(domain: str, op: str, opset: int) -> OpSchema | None:
    """The schema of an op; None where there is no such op."""
    try:
        return onnx.defs.get_schema(op, min(opset, newest_opset(domain)), domain)
    except onnx.defs.SchemaError:
        stated = OPS.get((domain, op))
        return _stated(domain, op, stated.signature) if stated and stated.signature else None


def _stated(domain: str, op: str, signature: str) -> OpSchema:
    """``OnnxOp.signature`` as a schema."""
    formals, _, attributes = signature.partition(";")
    operands, _, results = formals.partition("->")
    return OpSchema(
        op,
        domain,
        1,
        inputs=[_formal(text) for text in operands.split()],
        outputs=[_formal(text) for text in results.split()],
        attributes=[_attribute(text) for text in attributes.split()],
    )


def _formal(text: str) -> OpSchema.FormalParameter:
    option = {"?": _OPTION.Optional, "*": _OPTION.Variadic}.get(text[-1], _OPTION.Single)
    return OpSchema.FormalParameter(text.rstrip("?*"), "tensor(float)", param_option=option)


def _attribute(text: str) -> OpSchema.Attribute:
    name, kind = text.split(":")
    required = name.endswith("!")
    return OpSchema.Attribute(
        name.rstrip("!"), getattr(OpSchema.AttrType, kind.upper()), "", required=required
    )
