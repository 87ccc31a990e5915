"""The core ops: the only ops of a graph. One file per op and one line here.

In: nothing. Out: ``OPS``, ``OPS_BY_NAME``. Not done here: lowering (``lowering/ops``), translation from ONNX.
"""

from importlib import import_module

from ingot_compiler.ir.op import CoreOp


def _load(name: str) -> CoreOp:
    op: CoreOp = import_module(f"{__name__}.{name}").OP
    assert op.name == name.rstrip("_")
    return op


OPS: tuple[CoreOp, ...] = (
    # sources
    _load("constant"),
    _load("literal"),
    _load("dim_values"),
    _load("iota"),
    _load("read_dim"),
    _load("require_dim"),
    # between devices
    _load("copy"),
    # control flow
    _load("if_"),
    _load("loop"),
    # elementwise, one operand
    _load("abs"),
    _load("acos"),
    _load("acosh"),
    _load("asin"),
    _load("asinh"),
    _load("atan"),
    _load("atanh"),
    _load("bitwise_not"),
    _load("cast"),
    _load("ceil"),
    _load("cos"),
    _load("cosh"),
    _load("erf"),
    _load("exp"),
    _load("floor"),
    _load("gelu"),
    _load("isinf"),
    _load("isnan"),
    _load("log"),
    _load("logical_not"),
    _load("neg"),
    _load("reciprocal"),
    _load("relu"),
    _load("round"),
    _load("sigmoid"),
    _load("sign"),
    _load("silu"),
    _load("sin"),
    _load("sinh"),
    _load("softplus"),
    _load("sqrt"),
    _load("tan"),
    _load("tanh"),
    # elementwise, two or three operands
    _load("add"),
    _load("bitwise_and"),
    _load("bitwise_or"),
    _load("bitwise_xor"),
    _load("div"),
    _load("equal"),
    _load("fmod"),
    _load("less"),
    _load("less_equal"),
    _load("logical_and"),
    _load("logical_or"),
    _load("logical_xor"),
    _load("max"),
    _load("min"),
    _load("mod"),
    _load("mul"),
    _load("pow"),
    _load("require"),
    _load("select"),
    _load("shift_left"),
    _load("shift_right"),
    _load("sub"),
    # movement
    _load("broadcast_to"),
    _load("concat"),
    _load("gather"),
    _load("gather_elements"),
    _load("gather_nd"),
    _load("pad"),
    _load("reshape"),
    _load("scatter_elements"),
    _load("scatter_nd"),
    _load("slice"),
    _load("suppress_overlaps"),
    _load("transpose"),
    # reductions and rows
    _load("argmax"),
    _load("argmin"),
    _load("batch_norm"),
    _load("cumsum"),
    _load("group_norm"),
    _load("layer_norm"),
    _load("log_softmax"),
    _load("recurrent"),
    _load("reduce"),
    _load("rms_norm"),
    _load("softmax"),
    # contractions and windows
    _load("attention"),
    _load("average_pool"),
    _load("conv"),
    _load("conv_transpose"),
    _load("matmul"),
    _load("max_pool"),
    _load("resize"),
)

OPS_BY_NAME: dict[str, CoreOp] = {op.name: op for op in OPS}
