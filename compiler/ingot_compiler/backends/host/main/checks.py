"""Checks of `main`: the caller's struct against the program's signature and sizes, asserts, floor
division.

In: the signature's counts, the frame, a target. Out: IR text. Not done here: the order of steps
(``steps``).
Each check returns a code of ``abi``: 0 goes on, anything else ends `main`.
"""

from ingot_compiler.backends.host.main.frame import MainFrame
from ingot_compiler.backends.host.main.text import TEXTS, call_load, fail_call, frame_field
from ingot_compiler.backends.host.targets.target import Target
from ingot_runtime.format import abi

SIZES_DONE = -1
"""Returned by ``main.begin`` when the caller asked for sizes only."""

_CHECK_SHAPE, _CHECK_BYTES = 1, 2


def write_checks(
    frame: MainFrame, counts: tuple[int, int], weights_bytes: int, target: Target
) -> str:
    """Write all; `counts` are those of inputs and outputs."""
    attributes = target.function_attributes
    return "".join(
        (
            *(_text(name, text) for name, text in TEXTS.items()),
            _fail(attributes),
            _division(attributes),
            _tensors(attributes),
            _enter(counts, frame, weights_bytes, attributes),
            _begin(frame, counts[1], attributes),
            _assert(frame, attributes),
            _refuse(attributes),
        )
    )


def _text(name: str, text: str) -> str:
    return f'@text.{name} = private constant [{len(text)} x i8] c"{text}"\n'


def _fail(attributes: str) -> str:
    """Write ``void fail(call, text, i64 length)``: as much of the text as the caller's error buffer
    holds."""
    length_at = abi.CALL.offsets["error_len"]
    return f"""
define internal void @main.fail(ptr %call, ptr %text, i64 %length) {attributes} {{
{call_load("error", "ptr")}
{call_load("error_cap", "i32")}
  %cap = zext i32 %error_cap to i64
  %fits = icmp ult i64 %length, %cap
  %n = select i1 %fits, i64 %length, i64 %cap
  %none = icmp eq ptr %error, null
  %count = select i1 %none, i64 0, i64 %n
  %copied = call ptr @memcpy(ptr %error, ptr %text, i64 %count)
  %count32 = trunc i64 %count to i32
  %length.p = getelementptr i8, ptr %call, i64 {length_at}
  store i32 %count32, ptr %length.p, align 4
  ret void
}}
"""


def _division(attributes: str) -> str:
    """Write floor division and its remainder; a divisor of 0 gives 0, -1 is apart because the least
    i64 / -1 traps."""
    return f"""
define internal i64 @main.floordiv(i64 %a, i64 %b) {attributes} {{
  %near = add i64 %b, 1
  %special = icmp ule i64 %near, 1
  br i1 %special, label %zero.or.minus, label %divide
zero.or.minus:
  %is.zero = icmp eq i64 %b, 0
  %negative = sub i64 0, %a
  %s = select i1 %is.zero, i64 0, i64 %negative
  ret i64 %s
divide:
  %q = sdiv i64 %a, %b
  %r = srem i64 %a, %b
  %mixed = xor i64 %r, %b
  %signs = icmp slt i64 %mixed, 0
  %some = icmp ne i64 %r, 0
  %down = and i1 %signs, %some
  %less = zext i1 %down to i64
  %floor = sub i64 %q, %less
  ret i64 %floor
}}
define internal i64 @main.mod(i64 %a, i64 %b) {attributes} {{
  %none = icmp eq i64 %b, 0
  %q = call i64 @main.floordiv(i64 %a, i64 %b)
  %whole = mul i64 %q, %b
  %rest = sub i64 %a, %whole
  %r = select i1 %none, i64 0, i64 %rest
  ret i64 %r
}}
"""


def _tensors(attributes: str) -> str:
    """Write ``i32 tensors(call, tensors, table, i64 count, i32 mode)``: compare with the program's
    signature.

    A row of the table: dtype code, bytes per element, rank, dims (negative: not known before the
    call). Rank and dtype are always compared; shapes and sizes as the mode says. An output of a dim
    -1 is sized after ``begin``. A size is that of the fixed dims and of the shape given.
    """
    offsets, size = abi.TENSOR.offsets, abi.TENSOR.size_bytes
    return f"""
define internal i32 @main.tensors(ptr %call, ptr %tensors, ptr %table, i64 %count, i32 %mode) {attributes} {{
entry:
  %shape.bit = and i32 %mode, {_CHECK_SHAPE}
  %compare = icmp ne i32 %shape.bit, 0
  %bytes.bit = and i32 %mode, {_CHECK_BYTES}
  %measure = icmp ne i32 %bytes.bit, 0
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %good ]
  %row = phi ptr [ %table, %entry ], [ %row.next, %good ]
  %some = icmp ult i64 %i, %count
  br i1 %some, label %tensor, label %done
done:
  ret i32 0
tensor:
  %at = mul i64 %i, {size}
  %tensor.p = getelementptr i8, ptr %tensors, i64 %at
  %want.dtype = load i64, ptr %row, align 8
  %element.p = getelementptr i64, ptr %row, i64 1
  %element = load i64, ptr %element.p, align 8
  %want.rank.p = getelementptr i64, ptr %row, i64 2
  %want.rank = load i64, ptr %want.rank.p, align 8
  %dims = getelementptr i64, ptr %row, i64 3
  %row.next = getelementptr i64, ptr %dims, i64 %want.rank
  %rank.p = getelementptr i8, ptr %tensor.p, i64 {offsets["rank"]}
  %rank32 = load i32, ptr %rank.p, align 4
  %rank = zext i32 %rank32 to i64
  %dtype.p = getelementptr i8, ptr %tensor.p, i64 {offsets["dtype"]}
  %dtype32 = load i32, ptr %dtype.p, align 4
  %dtype = zext i32 %dtype32 to i64
  %shape.p = getelementptr i8, ptr %tensor.p, i64 {offsets["shape"]}
  %shape = load ptr, ptr %shape.p, align 8
  %rank.same = icmp eq i64 %rank, %want.rank
  %dtype.same = icmp eq i64 %dtype, %want.dtype
  %kind.same = and i1 %rank.same, %dtype.same
  br i1 %kind.same, label %kind, label %bad
{_tensor_shape()}"""


def _tensor_shape() -> str:
    """Write the second half of ``main.tensors``: dims and size of one tensor."""
    bytes_at = abi.TENSOR.offsets["bytes"]
    return f"""\
kind:
  %either = or i1 %compare, %measure
  br i1 %either, label %dim, label %good
dim:
  %j = phi i64 [ 0, %kind ], [ %j.next, %multiply ]
  %total = phi i64 [ %element, %kind ], [ %product, %multiply ]
  %more = icmp ult i64 %j, %rank
  br i1 %more, label %one, label %size
one:
  %want.p = getelementptr i64, ptr %dims, i64 %j
  %want = load i64, ptr %want.p, align 8
  %got.p = getelementptr i64, ptr %shape, i64 %j
  %got = load i64, ptr %got.p, align 8
  %fixed = icmp sge i64 %want, 0
  %value = select i1 %fixed, i64 %want, i64 %got
  %differs = icmp ne i64 %value, %got
  %wrong = and i1 %differs, %compare
  %negative = icmp slt i64 %value, 0
  %refused = or i1 %wrong, %negative
  br i1 %refused, label %unknown, label %multiply
unknown:
  %minus = icmp eq i64 %value, -1
  %unsized = xor i1 %compare, true
  %late = and i1 %minus, %unsized
  br i1 %late, label %good, label %bad
multiply:
  %pair = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %total, i64 %value)
  %product = extractvalue {{ i64, i1 }} %pair, 0
  %overflow = extractvalue {{ i64, i1 }} %pair, 1
  %j.next = add i64 %j, 1
  br i1 %overflow, label %bad, label %dim
size:
  %bytes.p = getelementptr i8, ptr %tensor.p, i64 {bytes_at}
  %bytes = load i64, ptr %bytes.p, align 8
  %small = icmp ult i64 %bytes, %total
  %too.small = and i1 %small, %measure
  br i1 %too.small, label %bad, label %good
good:
  %i.next = add i64 %i, 1
  br label %next
bad:
  {fail_call("tensor")}
  ret i32 {abi.RC_BAD_INPUT}
}}
"""


def _enter(counts: tuple[int, int], frame: MainFrame, weights_bytes: int, attributes: str) -> str:
    """Write ``i32 enter(call)``: version, counts, sizes and signatures, before anything else is
    read."""
    inputs, outputs = counts
    return f"""
define internal i32 @main.enter(ptr %call) {attributes} {{
{call_load("abi", "i32")}
  %abi.same = icmp eq i32 %abi, {abi.ABI_VERSION}
  br i1 %abi.same, label %version, label %wrong.abi
version:
{call_load("size", "i32")}
  %whole = icmp uge i32 %size, {abi.CALL.size_bytes}
  br i1 %whole, label %count, label %wrong.abi
wrong.abi:
  ret i32 {abi.RC_ABI}
count:
  %error_len.p = getelementptr i8, ptr %call, i64 {abi.CALL.offsets["error_len"]}
  store i32 0, ptr %error_len.p, align 4
{call_load("n_inputs", "i32")}
{call_load("n_outputs", "i32")}
{call_load("n_devices", "i32")}
  %inputs.same = icmp eq i32 %n_inputs, {inputs}
  %outputs.same = icmp eq i32 %n_outputs, {outputs}
  %devices.same = icmp eq i32 %n_devices, {frame.device_count}
  %tensors.same = and i1 %inputs.same, %outputs.same
  %counts.same = and i1 %tensors.same, %devices.same
  br i1 %counts.same, label %weights, label %wrong.counts
wrong.counts:
  {fail_call("counts")}
  ret i32 {abi.RC_BAD_INPUT}
weights:
{call_load("weights_bytes", "i64")}
  %enough = icmp uge i64 %weights_bytes, {weights_bytes}
  br i1 %enough, label %room, label %wrong.weights
wrong.weights:
  {fail_call("weights")}
  ret i32 {abi.RC_BAD_INPUT}
room:
{call_load("frame_bytes", "i64")}
  %fits = icmp uge i64 %frame_bytes, {frame.size_bytes}
  br i1 %fits, label %signature, label %no.room
no.room:
  {fail_call("frame")}
  ret i32 {abi.RC_BAD_INPUT}
{_enter_tensors(inputs, outputs)}"""


def _enter_tensors(inputs: int, outputs: int) -> str:
    """Write the rest of ``enter``: the signatures of all tensors."""
    return f"""\
signature:
{call_load("flags", "i32")}
{call_load("inputs", "ptr")}
{call_load("outputs", "ptr")}
  %bit = and i32 %flags, {abi.FLAG_SIZES_ONLY}
  %sizes = icmp ne i32 %bit, 0
  %mode = select i1 %sizes, i32 {_CHECK_SHAPE}, i32 {_CHECK_SHAPE | _CHECK_BYTES}
  %rc.inputs = call i32 @main.tensors(ptr %call, ptr %inputs, ptr @table.inputs, i64 {inputs}, i32 %mode)
  %bad = icmp ne i32 %rc.inputs, 0
  br i1 %bad, label %done, label %results
done:
  ret i32 %rc.inputs
results:
  %rc.outputs = call i32 @main.tensors(ptr %call, ptr %outputs, ptr @table.outputs, i64 {outputs}, i32 0)
  ret i32 %rc.outputs
}}
"""


def _begin(frame: MainFrame, output_count: int, attributes: str) -> str:
    """Write ``i32 begin(frame)``: report the sizes, or compare the ones given with those needed."""
    stride_at = abi.CALL.offsets["scratch_stride"]
    return f"""
define internal i32 @main.begin(ptr %frame) {attributes} {{
entry:
  %call = load ptr, ptr %frame, align 8
{call_load("flags", "i32")}
{call_load("workspace_bytes", "ptr")}
{frame_field("scratch.needed.p", frame.scratch_needed_at)}
  %scratch.needed = load i64, ptr %scratch.needed.p, align 8
{frame_field("needed", frame.workspaces_needed_at)}
  %stride.p = getelementptr i8, ptr %call, i64 {stride_at}
  %bit = and i32 %flags, {abi.FLAG_SIZES_ONLY}
  %sizes = icmp ne i32 %bit, 0
  br i1 %sizes, label %report, label %compare
report:
  store i64 %scratch.needed, ptr %stride.p, align 8
  %copied = call ptr @memcpy(ptr %workspace_bytes, ptr %needed, i64 {8 * frame.device_count})
  ret i32 {SIZES_DONE}
compare:
  %stride = load i64, ptr %stride.p, align 8
  %scratch.small = icmp ult i64 %stride, %scratch.needed
  br i1 %scratch.small, label %bad, label %device
device:
  %d = phi i64 [ 0, %compare ], [ %d.next, %enough ]
  %more = icmp ult i64 %d, {frame.device_count}
  br i1 %more, label %workspace, label %outputs.of
workspace:
  %given.p = getelementptr i64, ptr %workspace_bytes, i64 %d
  %given = load i64, ptr %given.p, align 8
  %needed.p = getelementptr i64, ptr %needed, i64 %d
  %wanted = load i64, ptr %needed.p, align 8
  %small = icmp ult i64 %given, %wanted
  br i1 %small, label %bad, label %enough
enough:
  %d.next = add i64 %d, 1
  br label %device
outputs.of:
{call_load("outputs", "ptr")}
  %rc = call i32 @main.tensors(ptr %call, ptr %outputs, ptr @table.outputs, i64 {output_count}, i32 {_CHECK_BYTES})
  ret i32 %rc
bad:
  {fail_call("workspace")}
  ret i32 {abi.RC_BAD_INPUT}
}}
"""


def _assert(frame: MainFrame, attributes: str) -> str:
    """Write ``i32 assert(frame, i64 register, text, i64 length)``."""
    return f"""
define internal i32 @main.assert(ptr %frame, i64 %register, ptr %text, i64 %length) {attributes} {{
{frame_field("registers", frame.registers_at)}
  %value.p = getelementptr i64, ptr %registers, i64 %register
  %value = load i64, ptr %value.p, align 8
  %holds = icmp ne i64 %value, 0
  br i1 %holds, label %good, label %bad
good:
  ret i32 0
bad:
  %call = load ptr, ptr %frame, align 8
  call void @main.fail(ptr %call, ptr %text, i64 %length)
  ret i32 {abi.RC_BAD_INPUT}
}}
"""


def _refuse(attributes: str) -> str:
    """Write ``i32 refuse(frame, i32 rc, i32 code, text, i64 length)``: a kernel's report in words;
    any other rc as it is."""
    return f"""
define internal i32 @main.refuse(ptr %frame, i32 %rc, i32 %code, ptr %text, i64 %length) {attributes} {{
  %same = icmp eq i32 %rc, %code
  br i1 %same, label %bad, label %other
other:
  ret i32 %rc
bad:
  %call = load ptr, ptr %frame, align 8
  call void @main.fail(ptr %call, ptr %text, i64 %length)
  ret i32 {abi.RC_BAD_INPUT}
}}
"""
