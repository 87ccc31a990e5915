"""Buffers of `main`: their addresses, copies between devices, blocks of a size known only at run time.

In: the frame, a target. Out: IR text. Not done here: planning where buffers lie (``lowering``).
"""

from ingot_compiler.codegen.main_frame import Frame
from ingot_compiler.codegen.main_text import call_load, fail_call, frame_field
from ingot_compiler.targets.target import Target
from ingot_runtime.format import abi

BUFFER_INPUT, BUFFER_OUTPUT, BUFFER_WEIGHTS, BUFFER_WORKSPACE = range(4)
"""Kinds in a row of the table of ``main.buffers``: (kind, buffer, tensor or byte offset or device, register)."""

_TO_DEVICE, _FROM_DEVICE, _WITHIN_DEVICE = 0, 1, 2


def write_buffers(frame: Frame, target: Target) -> str:
    """Write ``main.buffers``, ``main.copy``, ``main.grow`` and ``main.output``."""
    attributes = target.function_attributes
    return (
        _buffers(frame, attributes) + _copy(frame, attributes) + _grow(frame, attributes) + _output(frame, attributes)
    )


def _buffers(frame: Frame, attributes: str) -> str:
    """Write ``void buffers(frame, table, i64 count)``: compute the addresses of `count` buffers."""
    return f"""
define internal void @main.buffers(ptr %frame, ptr %table, i64 %count) {attributes} {{
entry:
  %call = load ptr, ptr %frame, align 8
{call_load("inputs", "ptr")}
{call_load("outputs", "ptr")}
{call_load("weights", "ptr")}
{call_load("workspaces", "ptr")}
{frame_field("registers", frame.registers_at)}
{frame_field("addresses", frame.buffers_at)}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %store ]
  %some = icmp ult i64 %i, %count
  br i1 %some, label %row, label %done
done:
  ret void
row:
  %at = shl i64 %i, 5
  %kind.p = getelementptr i8, ptr %table, i64 %at
  %kind = load i64, ptr %kind.p, align 8
  %buffer.p = getelementptr i64, ptr %kind.p, i64 1
  %buffer = load i64, ptr %buffer.p, align 8
  %x.p = getelementptr i64, ptr %kind.p, i64 2
  %x = load i64, ptr %x.p, align 8
  %is.weights = icmp eq i64 %kind, {BUFFER_WEIGHTS}
  br i1 %is.weights, label %of.weights, label %not.weights
{_buffer_address()}"""


def _buffer_address() -> str:
    """Write the second half of ``main.buffers``: the address of one buffer."""
    data_at, size = abi.TENSOR.offsets["data"], abi.TENSOR.size_bytes
    return f"""\
of.weights:
  %weight = getelementptr i8, ptr %weights, i64 %x
  br label %store
not.weights:
  %is.workspace = icmp eq i64 %kind, {BUFFER_WORKSPACE}
  br i1 %is.workspace, label %of.workspace, label %of.tensor
of.workspace:
  %register.p = getelementptr i64, ptr %kind.p, i64 3
  %register = load i64, ptr %register.p, align 8
  %offset.p = getelementptr i64, ptr %registers, i64 %register
  %offset = load i64, ptr %offset.p, align 8
  %pool.p = getelementptr ptr, ptr %workspaces, i64 %x
  %pool = load ptr, ptr %pool.p, align 8
  %place = getelementptr i8, ptr %pool, i64 %offset
  br label %store
of.tensor:
  %is.input = icmp eq i64 %kind, {BUFFER_INPUT}
  %tensors = select i1 %is.input, ptr %inputs, ptr %outputs
  %tensor.at = mul i64 %x, {size}
  %tensor = getelementptr i8, ptr %tensors, i64 %tensor.at
  %data.p = getelementptr i8, ptr %tensor, i64 {data_at}
  %data = load ptr, ptr %data.p, align 8
  br label %store
store:
  %address = phi ptr [ %weight, %of.weights ], [ %place, %of.workspace ], [ %data, %of.tensor ]
  %slot = getelementptr ptr, ptr %addresses, i64 %buffer
  store ptr %address, ptr %slot, align 8
  %i.next = add i64 %i, 1
  br label %next
}}
"""


def _copy(frame: Frame, attributes: str) -> str:
    """Write ``i32 copy(frame, i64 source device, i64 target device, i64 to, i64 from, i64 bytes)``; buffers by index.

    Devices without a ``copy`` are host memory. Directions: 0 to the device, 1 from it, 2 within it.
    """
    device, size = abi.DEVICE.offsets, abi.DEVICE.size_bytes
    return f"""
define internal i32 @main.copy(ptr %frame, i64 %source, i64 %target, i64 %to.index, i64 %from.index, i64 %bytes)
    {attributes} {{
{frame_field("addresses", frame.buffers_at)}
  %to.p = getelementptr ptr, ptr %addresses, i64 %to.index
  %to = load ptr, ptr %to.p, align 8
  %from.p = getelementptr ptr, ptr %addresses, i64 %from.index
  %from = load ptr, ptr %from.p, align 8
  %call = load ptr, ptr %frame, align 8
{call_load("devices", "ptr")}
  %source.at = mul i64 %source, {size}
  %source.p = getelementptr i8, ptr %devices, i64 %source.at
  %source.copy.p = getelementptr i8, ptr %source.p, i64 {device["copy"]}
  %source.copy = load ptr, ptr %source.copy.p, align 8
  %target.at = mul i64 %target, {size}
  %target.p = getelementptr i8, ptr %devices, i64 %target.at
  %target.copy.p = getelementptr i8, ptr %target.p, i64 {device["copy"]}
  %target.copy = load ptr, ptr %target.copy.p, align 8
  %from.host = icmp eq ptr %source.copy, null
  %to.host = icmp eq ptr %target.copy, null
  %same = icmp eq i64 %source, %target
  %host = and i1 %from.host, %to.host
  br i1 %host, label %plain, label %some.device
plain:
  %copied = call ptr @memmove(ptr %to, ptr %from, i64 %bytes)
  ret i32 0
some.device:
  %neither = or i1 %from.host, %to.host
  %one = or i1 %neither, %same
  br i1 %one, label %run, label %missing
missing:
  {fail_call("device")}
  ret i32 {abi.RC_DEVICE}
run:
  %chosen = select i1 %from.host, ptr %target.p, ptr %source.p
  %function = select i1 %from.host, ptr %target.copy, ptr %source.copy
  %out = select i1 %to.host, i32 {_FROM_DEVICE}, i32 {_WITHIN_DEVICE}
  %direction = select i1 %from.host, i32 {_TO_DEVICE}, i32 %out
  %self.p = getelementptr i8, ptr %chosen, i64 {device["self"]}
  %self = load ptr, ptr %self.p, align 8
  %rc = call i32 %function(ptr %self, ptr %to, i64 0, ptr %from, i64 0, i64 %bytes, i32 %direction)
  %bad = icmp ne i32 %rc, 0
  %code = select i1 %bad, i32 {abi.RC_DEVICE}, i32 0
  ret i32 %code
}}
"""


def _grow(frame: Frame, attributes: str) -> str:
    """Write ``i32 grow(frame, i64 buffer, i64 device, i64 bytes)``: the caller gives a block of a size known only now."""
    return f"""
define internal i32 @main.grow(ptr %frame, i64 %buffer, i64 %device, i64 %bytes) {attributes} {{
  %call = load ptr, ptr %frame, align 8
{call_load("grow", "ptr")}
  %none = icmp eq ptr %grow, null
  br i1 %none, label %bad, label %ask
ask:
  %block = call ptr %grow(i64 %device, i64 %bytes)
  %refused = icmp eq ptr %block, null
  br i1 %refused, label %bad, label %good
good:
{frame_field("addresses", frame.buffers_at)}
  %slot = getelementptr ptr, ptr %addresses, i64 %buffer
  store ptr %block, ptr %slot, align 8
  ret i32 0
bad:
  {fail_call("grow")}
  ret i32 {abi.RC_LIMIT}
}}
"""


def _output(frame: Frame, attributes: str) -> str:
    """Write ``void output(frame, i64 tensor, i64 buffer, i64 bytes)``: the output lies in a grown block."""
    offsets, size = abi.TENSOR.offsets, abi.TENSOR.size_bytes
    return f"""
define internal void @main.output(ptr %frame, i64 %tensor, i64 %buffer, i64 %bytes) {attributes} {{
  %call = load ptr, ptr %frame, align 8
{call_load("outputs", "ptr")}
{frame_field("addresses", frame.buffers_at)}
  %slot = getelementptr ptr, ptr %addresses, i64 %buffer
  %address = load ptr, ptr %slot, align 8
  %at = mul i64 %tensor, {size}
  %tensor.p = getelementptr i8, ptr %outputs, i64 %at
  %data.p = getelementptr i8, ptr %tensor.p, i64 {offsets["data"]}
  store ptr %address, ptr %data.p, align 8
  %bytes.p = getelementptr i8, ptr %tensor.p, i64 {offsets["bytes"]}
  store i64 %bytes, ptr %bytes.p, align 8
  ret void
}}
"""
