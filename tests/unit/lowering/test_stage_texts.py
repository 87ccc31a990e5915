"""Stages 5, 6, 8 and the instruction list as text: what is read back, what is refused, where and by
which rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot_compiler.host_program.parse_program import parse_program
from ingot_compiler.host_program.print_program import print_program
from ingot_compiler.host_program.verify_program import ProgramContext, verify_program
from ingot_compiler.ir.errors import InternalError, ModelError
from ingot_compiler.kernels.kinds import KINDS
from ingot_compiler.lowering.groups.parse_fused import parse_fused
from ingot_compiler.lowering.groups.print_fused import print_fused
from ingot_compiler.memory.parse_memory import parse_memory
from ingot_compiler.memory.print_memory import print_memory
from ingot_compiler.memory.verify_memory import verify_memory
from ingot_compiler.placement.parse_placed import parse_placed
from ingot_compiler.placement.print_placed import print_placed

PLACED = """\
device 0: "host" id 0 type "host"
device 1: "acc" id 0 type "null" target "null:x86-64-v3" scope "fast"
graph(%0: f32[s0, 4]) {
  %1 = constant() {dtype="f32", shape=[4, 3], weight="0"} : f32[4, 3] @[0]
  %2 = copy(%0) {destination="acc"} : f32[s0, 4] @[2]
  %3 = matmul(%2, %1) : f32[s0, 3] @[2] on "acc"
  %4 = copy(%3) {destination="host"} : f32[s0, 3] @[3]
  %5 = abs(%4) : f32[s0, 3] @[3] on "host"
  return %5
}
%0 on "host": input
%1 on "acc": read_by %3
%2 on "acc": copied_for %3
%3 on "acc": marked
%4 on "host": copied_for %5
%5 on "host": marked
"""
FUSED = """\
input 0: f32[5, 4]
input 1: i64[1]
output 0: f32[5, 3]
buffer b0: f32 x 20, input 0
buffer b1: f32 x 20, workspace on device 1
buffer b2: f32 x 32, constant 0 on device 1
buffer b3: f32 x 15, workspace on device 1
buffer b4: f32 x 15, workspace
buffer b5: f32 x 15, output 0
buffer b6: i64 x 1, input 1
buffer b7: f32 x n, workspace
buffer b8: f32 x n, workspace
copy b0 to b1 @[2]  # 0
kernel matmul factor=panels on device 1 anchor 0 @[2] {  # 1
  %4 = matmul(%2, %6) : f32[5, 3] @[2] on "acc"
  reads %2: f32[5, 4] in b1 at 0 strides [4, 1]
  reads %6: f32[1, 1, 4, 8] in b2 at 0 strides [32, 32, 8, 1]
  writes %4: f32[5, 3] in b3 at 0 strides [3, 1]
}
copy b3 to b4 @[3]  # 2
read size n = b6[0]: i64 @[4]  # 3
require n - 5 = 0, ["sizes differ: ", size n, node 4, input 1, output 0] @[4]  # 4
set i, more = 0, 1  # 5
grow b7 to n, keep i by b8  # 6
if more {  # 7
  kernel pointwise @[3] {  # 8
    %5 = abs(%4) : f32[5, 3] @[3] on "host"
    reads %4: f32[5, 3] in b4 at 0 strides [3, 1]
    writes %5: f32[5, 3] in b5 at 0 strides [3, 1]
    knows %9: f32[n]
    stop_reason "the model returns it"
  }
} else {
}
while i < n and more holding b5 {  # 10
  set more = i  # 11
}
hold room, pitch, moved from 5 to n: 0 in 0 by 4*n  # 13
constant 0: graph() {
  %0 = constant() {dtype="f32", shape=[1, 1, 4, 8], weight="0"} : f32[1, 1, 4, 8]
  return %0
}
"""
FIXED = """\
planner best
device 0: 128 bytes, at least 80, fixed
device 1: 192 bytes, at least 140, fixed
buffer b2: 80 bytes, steps 0 to 1, at 0
buffer b6: 60 bytes, steps 3 to 4, at 0
buffer b3 on device 1: 80 bytes, steps 1 to 2, at 0
buffer b5 on device 1: 60 bytes, steps 2 to 3, at 128
"""
OPEN = """\
planner best
device 0: 1024 bytes, at least 512
buffer b2: 16*s0 bytes, steps 0 to 2, above nothing
buffer b3: 12*s0 bytes, steps 1 to 4, above b2
buffer b4: 12*s0 bytes, steps 2 to 5, above b3
buffer b5: 4*n bytes, steps 3 to 5, a block of its own
"""
PROGRAM = """\
registers 4, buffers 5
message 0: "too large"
0: input_dim r0, 0, 1
1: const r1, -9
2: assert r0, 0
3: workspace_bytes 1, r0
4: output_dim 0, 0, r0
5: begin
6: buffer_input b0, 0
7: buffer_output b1, 0
8: buffer_workspace b2, 1, r0, r1
9: buffer_device_weights b3, 1, 0, 128
10: buffer_workspace b4, 0, r0, r1
11: branch r0, @12, @15
12: copy 0, 1, b2, b0, r1
13: launch 1, 0, 0, [b2, b3], [r0, r1], r1, 16
14: launch_checked 0, 2, 1, [b0, b4], [], r1, 16, [0]
15: read r3, b4, r0, 1
16: return
"""
Text = str
FORMS: Mapping[Text, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    PLACED: (parse_placed, print_placed),
    FUSED: (partial(parse_fused, kinds=KINDS), print_fused),
    FIXED: (parse_memory, print_memory),
    OPEN: (parse_memory, print_memory),
    PROGRAM: (parse_program, print_program),
}


@pytest.mark.parametrize("text", FORMS)
def test_every_part_is_read_back(text: Text) -> None:
    """The text of a stage that has every part gives the stage whose text it is."""
    parse, printed = FORMS[text]
    assert printed(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "old", "new", "place", "why"),
    [
        (PLACED, '"host" id 0 type "host"', '"host" id 0 type "null"', "line 1, column 1", "the first device: expected 'host' of type 'host', got 'host' of type 'null'"),
        (PLACED, 'device 1: "acc"', 'device 1: "host"', "line 12, column 7", "expected a device out of host, host, got acc"),
        (PLACED, "device 1:", "device 2:", "line 2, column 8", 'expected "1", got \'2\''),
        (PLACED, 'type "null" target', 'type "cuda" target', "line 2, column 1", "target null:x86-64-v3 is for null devices: expected a target for cuda"),
        (PLACED, 'id 0 type "null"', 'id -2 type "null"', "line 2, column 1", "bad device id -2: expected -1 (open) or more"),
        (PLACED, '%2 = copy(%0) {destination="acc"}', '%2 = copy(%0) {destination="host"}', "line 5, column 8", "a copy goes to its device: expected destination 'acc', got 'host'"),
        (PLACED, '%2 = copy(%0) {destination="acc"}', "%2 = relu(%0)", "line 5, column 8", "each crossing is a copy: expected values of device 'acc', got %0 on device 'host'"),
        (PLACED, 'on "acc"\n', 'on "host"\n', "line 6, column 8", "a node runs where it is marked: expected device 'host', got device 'acc'"),
        (PLACED, '%5 = abs(%4) : f32[s0, 3] @[3] on "host"', '%5 = copy(%3) {destination="host"} : f32[s0, 3]', "line 8, column 8", "a value is copied once: expected one copy of a value to a device, got %3 to device 'host' again"),
        (PLACED, '%0 on "host"', '%0 on "acc"', "line 11, column 1", "inputs of the graph: expected the host, got device 'acc'"),
        (PLACED, '%5 on "host"', '%5 on "acc"', "line 8, column 8", "a node runs where it is marked: expected device 'host', got device 'acc'"),
        (PLACED, '%3 on "acc"', '%3 on "gpu"', "line 14, column 7", "expected a device out of host, acc, got gpu"),
        (PLACED, '%3 on "acc"', '%4 on "acc"', "line 14, column 1", "expected the place of each of 6 values, in order, got '%4'"),
        (PLACED, '%5 on "host": marked\n', "", "line 15, column 28", "expected a place for each of 6 values, got 5"),
        (PLACED, '"host": marked', '"host": asked', "line 16, column 15", "expected one of input marked auto"),
        (PLACED, "marked\n%4", 'fallback "ac"\n%4', "line 14, column 1", "a reason names a device: expected a device, got 'ac'"),
        (PLACED, "marked\n%4", "auto [1]\n%4", "line 14, column 1", "a reason compares all devices: expected 2 times, got 1"),
        (PLACED, "copied_for %3", "copied_for %9", "line 13, column 1", "a reason leads to a value: expected another value, got %9"),
        (PLACED, "abs(%4)", "abs(%3)", "line 8, column 8", "each crossing is a copy: expected values of device 'host', got %3 on device 'acc'"),
        (PLACED, "matmul(", "matmuls(", "line 6, column 8", "matmuls: expected a core op, got matmuls"),
        (FUSED, "buffer b3:", "buffer b4:", "line 7, column 8", 'expected "b3", got \'b4\''),
        (FUSED, "f32 x 20, input 0", "f32 x 20, input 3", "line 4, column 1", "which input a buffer is: expected a number below 2, got 3"),
        (FUSED, "f32 x 20, input 0", "f32 x 21, input 0", "line 4, column 1", "an input is dense: expected f32 x 20, got f32 x 21"),
        (FUSED, "f32 x 20, input 0", "f32 x 20, input 0 on device 1", "line 4, column 1", "an input lies on the host: expected the host, got device 1"),
        (FUSED, "b1: f32 x 20, workspace", "b1: f32 x 20, scratch", "line 5, column 22", "expected one of input output workspace constant, got 'scratch'"),
        (FUSED, "b4: f32 x 15, workspace", "b4: f32 x -15, workspace", "line 8, column 1", "elements of buffers: expected at least 0, got -15"),
        (FUSED, "f32 x 32, constant 0", "f32 x 33, constant 0", "line 39, column 1", "a constant fills its buffer: expected f32 x 33, got f32 x 32"),
        (FUSED, "f32 x 32, constant 0", "f32 x 32, workspace", "line 14, column 1", "what a kernel reads: expected a buffer that is written before, got b2"),
        (FUSED, "copy b0 to b1", "copy b0 to b5", "line 13, column 1", "a copy crosses between devices: expected buffers of two devices, got device 0 twice"),
        (FUSED, "copy b0 to b1", "copy b0 to b9", "line 13, column 1", "buffers: expected b0 to b8, got b9"),
        (FUSED, "copy b0 to b1", "copy b0 to b3", "line 13, column 1", "a copy is of a whole buffer: expected f32 x 20, got f32 x 15"),
        (FUSED, "copy b0 to b1 @[2]", "copy b0 to b1 @[2, 1]", "line 13, column 1", "source nodes: expected ascending ordinals, got [2, 1]"),
        (FUSED, "copy b0 to b1", "begin_copy b0 to b1", "line 14, column 1", "what a kernel reads: expected a buffer that is written before, got b1"),
        (FUSED, "copy b3 to b4", "begin_copy b3 to b4", "line 26, column 3", "expected a buffer that is written before, got b4"),
        (FUSED, "copy b3 to b4", "end_copy b3 to b4", "line 20, column 1", "what ends has begun: expected a copy that has begun, got none of b3 to b4"),
        (FUSED, "copy b3 to b4", "begin_copy b3 to b4 copy b3 to b4", "line 1, column 1", "what begins ends: expected copies that end, got b3 to b4 without an end"),
        (FUSED, "copy b3 to b4", "copy b1 to b4", "line 20, column 1", "a copy is of a whole buffer: expected f32 x 20, got f32 x 15"),
        (FUSED, "kernel matmul factor=panels on device 1", "kernel matmul", "line 14, column 1", "a kernel touches buffers of its own device alone: expected buffers of device 0, got b1 on device 1"),
        (FUSED, "anchor 0", "anchor 1", "line 14, column 1", "which node decides the loops: expected -1 to 0, got 1"),
        (FUSED, "matmul(%2, %6)", "matmul(%2, %6) {(%7: f32[1]) return %7 }", "line 15, column 24", "expected a node without regions, got one"),
        (FUSED, "reads %2: f32[5, 4] in b1 at 0 strides [4, 1]", "reads %2: f32[5, 4] in b1 at 1 strides [4, 1]", "line 14, column 1", "view of %2: expected elements 0 to 19 of b1, got 1 to 20"),
        (FUSED, "reads %2: f32[5, 4] in b1 at 0 strides [4, 1]", "reads %2: f32[5, 4] in b1 at 0 strides [-4, 1]", "line 14, column 1", "view of %2: expected elements 0 to 19 of b1, got -16 to 3"),
        (FUSED, "reads %2: f32[5, 4] in b1 at 0 strides [4, 1]", "reads %2: f32[5, 4] in b1 at 0 strides [4]", "line 14, column 1", "view of %2: expected 2 strides, got 1"),
        (FUSED, "reads %2: f32[5, 4]", "reads %2: f64[5, 4]", "line 14, column 1", "a buffer has one element type: expected b1 of f64, got f32"),
        (FUSED, "reads %2: f32[5, 4]", "reads %2: f32[z, 4]", "line 14, column 1", "symbols are bound: expected a size of an input, or one that a step binds before, got z"),
        (FUSED, "in b1 at", "in b3 at", "line 14, column 1", "view of %2: expected elements 0 to 14 of b3, got 0 to 19"),
        (FUSED, "writes %4: f32[5, 3] in b3", "writes %4: f32[5, 3] in b2", "line 14, column 1", "what a kernel writes: expected a buffer of kind workspace or output, got b2, constant"),
        (FUSED, "writes %4: f32[5, 3]", "writes %4: f32[3, 5]", "line 18, column 10", "expected f32[5, 3], as above, got f32[3, 5]"),
        (FUSED, "read size n", "read length n", "line 21, column 6", "expected one of size number, got 'length'"),
        (FUSED, "= b6[0]", "= b6[1]", "line 21, column 1", "elements of b6: expected 0 to 0, got 1"),
        (FUSED, "= b6[0]: i64", "= b6[0]: i32", "line 21, column 1", "a buffer has one element type: expected i64, got i32"),
        (FUSED, "= b6[0]: i64", "= b3[0]: f32", "line 21, column 1", "sizes are the host's: expected a buffer of the host, got b3 on device 1"),
        (FUSED, "= b6[0]: i64", "= b7[0]: f32", "line 21, column 1", "what sizes are read from: expected a buffer that is written before, got b7"),
        (FUSED, "size n, node", "size 5, node", "line 22, column 39", "expected a size with a symbol, got 5"),
        (FUSED, "require n - 5 = 0", "require n - 5 = 1", "line 22, column 17", 'expected "0", got \'1\''),
        (FUSED, "require n - 5", "require m - 5", "line 22, column 1", "symbols are bound: expected a size of an input, or one that a step binds before, got m"),
        (FUSED, "set i, more = 0, 1", "set i, more = 0", "line 23, column 1", "expected 2 values, got 1"),
        (FUSED, "set i, more = 0, 1", "set i, nan = 0, 1", "line 23, column 1", "names of symbols: expected an identifier of the text form, got 'nan'"),
        (FUSED, "grow b7", "grow b0", "line 24, column 1", "buffers that grow: expected a buffer of kind workspace or output, got b0, input"),
        (FUSED, "by b8", "by b1", "line 24, column 1", "grown buffers are the host's: expected a buffer of the host, got b1 on device 1"),
        (FUSED, "if more", "if less", "line 25, column 1", "symbols are bound: expected a size of an input, or one that a step binds before, got less"),
        (FUSED, "} else {\n}", "}", "line 34, column 1", 'expected "else", got \'while\''),
        (FUSED, "abs(%4)", "abs(%3)", "line 26, column 3", "operands of a kernel's nodes: expected a value that is read or made here, got %3"),
        (FUSED, "in b4 at", "in b7 at", "line 26, column 3", "what a kernel reads: expected a buffer that is written before, got b7"),
        (FUSED, "holding b5", "holding b0", "line 35, column 1", "what is kept from one iteration to the next: expected a buffer of"),
        (FUSED, "while i < n", "while i < p", "line 35, column 1", "symbols are bound: expected a size of an input, or one that a step binds before, got p"),
        (FUSED, "set more = i", "set more = q", "line 36, column 3", "symbols are bound: expected a size of an input, or one that a step binds before, got q"),
        (FUSED, "writes %5: f32[5, 3] in b5", "writes %5: f32[5, 3] in b4", "line 9, column 1", "outputs are written: expected a step that writes it, got none"),
        (FUSED, "constant 0: graph() {", "constant 0: graph(%0: f32[1]) {", "line 40, column 3", "expected %1 next (values are numbered in order), got %0"),
        (FUSED, "return %0\n}\n", "return %0\n}\nconstant 1: graph() {\n  return\n}\n", "line 43, column 1", "constants are expressions: expected no input and one output, got 0 inputs, 0 outputs"),
        (FUSED, 'weight="0"} : f32[1, 1, 4, 8]', 'weight="0"} : f32[1, 1, 8, 4]', "line 40, column 8", "constant: expected results f32[1, 1, 4, 8], got f32[1, 1, 8, 4]"),
        (FUSED, "copy b0 to b1", "specialisation from 11 where s0 = 1 copy b0 to b1", "line 1, column 1", "the first step of the specialisation: expected 0 to 10, got 11"),
        (FUSED, "copy b0 to b1", "specialisation from 1 where s0 = 1 copy b0 to b1", "line 1, column 1", "what is specialised: expected a size of an input, got s0"),
        (FIXED, "planner best", "planner 1", "line 1, column 9", "expected a planner, got '1'"),
        (FIXED, "device 0:", "device 3:", "line 2, column 1", "pools: expected the host's first, then others in order, each once, got [3, 1]"),
        (FIXED, "128 bytes, at", "192 bytes, at", "line 2, column 1", "sizes of pools: expected 128 bytes, the end of its last buffer, got 192"),
        (FIXED, "at least 80", "at least 129", "line 2, column 1", "lower bounds: expected 0 to 128, got 129"),
        (FIXED, "b6: 60", "b2: 60", "line 5, column 1", "places of buffers: expected each buffer once, got b2 again"),
        (FIXED, "steps 3 to 4", "steps 4 to 3", "line 5, column 1", "lifetimes: expected a first step that is not behind the last, got 4 to 3"),
        (FIXED, "b5 on device 1", "b5 on device 2", "line 3, column 1", "sizes of pools: expected 128 bytes, the end of its last buffer, got 192"),
        (FIXED, "60 bytes, steps 2 to 3, at 128", "60 bytes, steps 2 to 3, at 100", "line 7, column 1", "alignment: expected a multiple of 64, got 100"),
        (FIXED, "60 bytes, steps 2 to 3, at 128", "60 bytes, steps 2 to 3, at 64", "line 3, column 1", "sizes of pools: expected 128 bytes, the end of its last buffer, got 192"),
        (FUSED, "0 in 0 by", "0 in 7 by", "line 38, column 1", "pairs that share memory: expected input 0 to"),
        (FUSED, "5 to n: 0", "5 to m: 0", "line 38, column 1", "symbols are bound"),
        (FIXED, "steps 3 to 4, at 0", "steps 1 to 4, at 0", "line 4, column 1", "overlap in space and time: expected places apart while both live, got 0 to 80, b6 at 0"),
        (FIXED, "steps 3 to 4, at 0", "steps 3 to 4, above b2", "line 5, column 1", "places in a pool that is fixed, or is not: expected an offset and a"),
        (FIXED, "b6: 60 bytes", "b6: 4*s0 bytes", "line 5, column 1", "places in a pool that is fixed, or is not: expected an offset and a"),
        (FIXED, "b6: 60 bytes", "b6: -60 bytes", "line 5, column 1", "sizes of buffers: expected at least 0, got -60"),
        (OPEN, "above b3", "above b2", "line 5, column 1", "overlap in space and time: expected a place above b3, which lives at the same time, got b4 above b2"),
        (OPEN, "above b2", "above nothing", "line 4, column 1", "overlap in space and time: expected a place above b2, which lives at"),
        (OPEN, "above b3", "above b5", "line 5, column 1", "what lies below: expected buffers of its device that are listed before, got b5"),
        (OPEN, "above b2", "above b4", "line 4, column 1", "what lies below: expected buffers of its device that are listed before, got b4"),
        (OPEN, "above nothing", "at 0", "line 3, column 1", "places in a pool that is fixed, or is not: expected a place above others, got 16*s0 bytes, offset 0"),
        (OPEN, "a block of its own", "a block", "line 6, column 44", 'expected "of", got the end of the text'),
        (OPEN, "above b3", "near b3", "line 5, column 39", "expected one of at above a, got 'near'"),
        (PROGRAM, "registers 4", "registers 3", "line 18, column 1", "registers: expected 0 to 2, got 3"),
        (PROGRAM, "buffers 5", "buffers 4", "line 13, column 1", "buffers: expected 0 to 3, got 4"),
        (PROGRAM, "0: input_dim", "1: input_dim", "line 3, column 1", 'expected "0", got \'1\''),
        (PROGRAM, "input_dim r0", "input_dims r0", "line 3, column 4", "expected one of return const input_dim add sub mul floordiv mod min"),
        (PROGRAM, "input_dim r0", "input_dim b0", "line 3, column 14", "expected a register (r0), got 'b0'"),
        (PROGRAM, "const r1, -9", "const r1, -99999999999999999999", "line 4, column 1", "immediates: expected a number of 64 bits, got -99999999999999999999"),
        (PROGRAM, "assert r0, 0", "assert r0, 1", "line 5, column 1", "messages: expected 0 to 0, got 1"),
        (PROGRAM, "5: begin", "5: const r1, 0", "line 1, column 1", "sizes are told before begin, once: expected one begin, got 0"),
        (PROGRAM, "4: output_dim 0, 0, r0", "4: read r3, b4, r0, 1", "line 7, column 1", "sizes are told before begin, once: expected behind begin, got begin is instruction 5"),
        (PROGRAM, "4: output_dim 0, 0, r0", "4: held_bytes r3, 0, 0", "line 7, column 1", "sizes are told before begin, once: expected behind begin, got begin is instruction 5"),
        (PROGRAM, "6: buffer_input b0, 0", "6: input_dim r0, 0, 0", "line 9, column 1", "sizes are told before begin, once: expected before begin, got begin is instruction 5"),
        (PROGRAM, "buffer_workspace b4, 0", "buffer_workspace b2, 0", "line 13, column 1", "a buffer has one device: expected b2 on device 1, got device 0"),
        (PROGRAM, "@12, @15", "@12, @17", "line 14, column 1", "labels: expected 0 to 16, got 17"),
        (PROGRAM, "@12, @15", "12, 15", "line 14, column 16", 'expected "@", got \'12\''),
        (PROGRAM, "copy 0, 1, b2, b0", "copy 1, 0, b2, b0", "line 15, column 1", "a buffer is used on its device: expected buffers of device 0, got b2 on device 1"),
        (PROGRAM, "launch 1, 0, 0, [b2, b3]", "launch 0, 0, 0, [b2, b3]", "line 16, column 1", "a buffer is used on its device: expected buffers of device 0, got b2 on device 1"),
        (PROGRAM, "[b2, b3]", "[b2, r3]", "line 16, column 26", "expected a buffer (b0), got 'r3'"),
        (PROGRAM, "r1, 16\n", "r1, 0\n", "line 16, column 1", "units worth a thread: expected at least 1, got 0"),
        (PROGRAM, "16, [0]", "16, [1]", "line 17, column 1", "messages: expected 0 to 0, got 1"),
        (PROGRAM, "read r3, b4, r0, 1", "read r3, b4, r0, 99", "line 18, column 1", "element types: expected 0 to 22, got 99"),
        (PROGRAM, "16: return\n", "", "line 18, column 1", "the last instruction: expected return or jump or branch, got read"),
        (PROGRAM, "10: buffer_workspace b4, 0, r0, r1", "10: const r1, 1", "line 17, column 1", "buffers: expected a buffer that some instruction defines, got b4"),
    ],
)  # fmt: skip
def test_errors_name_line_column_and_rule(
    text: Text, old: str, new: str, place: str, why: str
) -> None:
    """Each thing that can be wrong with a text is refused where it stands, by the rule that it
    breaks."""
    assert text.count(old) >= 1
    with pytest.raises(ModelError) as caught:
        FORMS[text][0](text.replace(old, new, 1))
    assert caught.value.where.startswith(f"{place}: ")
    assert why in caught.value.why
    assert caught.value.exit_code == 1


@pytest.mark.sweep(60)
@pytest.mark.parametrize("text", FORMS)
@given(data=st.data())
@settings(max_examples=150)
def test_damaged_texts_are_refused_cleanly(text: Text, data: st.DataObject) -> None:
    """A text with a piece cut, doubled or replaced is a stage that can be printed, or a ModelError
    with a line; nothing else."""
    parse, printed = FORMS[text]
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, min(len(text), first + 12)))
    pieces = ["{", "}", "-", "99999999999999999999", "b999999999", "%9", '"', text[first:last] * 2]
    damaged = text[:first] + data.draw(st.text(max_size=3) | st.sampled_from(pieces)) + text[last:]
    places: list[str] = []
    try:
        assert parse(printed(parse(damaged)))
    except ModelError as error:
        places.append(error.where)
    assert all(place.startswith("line ") for place in places)


@pytest.mark.parametrize("parse", [parse_placed, parse_fused, parse_memory, parse_program])
@pytest.mark.parametrize(
    "text",
    ["{" * 9999, "(" * 9999, "graph(" * 9999, "if a {" * 9999, "9" * 9999, '"', "\0", "\ud800"],
)
def test_hostile_texts_are_refused_cleanly(parse: Callable[[str], object], text: str) -> None:
    """Deep nesting, endless numbers, open quotes and odd characters are ModelErrors, not crashes of
    the reader."""
    with pytest.raises(ModelError, match="line 1"):
        parse(text)


def test_a_plan_is_compared_with_the_graph_that_it_is_for() -> None:
    """A buffer without a place, of another size or device, or that dies before its last use, is
    refused; so are a constant, and an output where the inputs are not planned."""
    fused = parse_fused(FUSED)
    plan = """\
planner best
device 0: 64 bytes, at least 0
device 1: 192 bytes, at least 140, fixed
buffer b4: 60 bytes, steps 2 to 8, above nothing
buffer b7: 4*n bytes, steps 6 to 6, a block of its own
buffer b8: 4*n bytes, steps 6 to 6, a block of its own
buffer b1 on device 1: 80 bytes, steps 0 to 1, at 0
buffer b3 on device 1: 60 bytes, steps 1 to 2, at 128
"""
    verify_memory(parse_memory(plan), fused)
    wrong = [
        (
            "b4: 60 bytes, steps 2 to 8",
            "b4: 60 bytes, steps 2 to 7",
            "lifetimes cover all uses: expected steps 2 to 8",
        ),
        ("b4: 60 bytes", "b4: 56 bytes", "sizes of buffers: expected 60 bytes, got 56 bytes"),
        (
            "buffer b4: 60 bytes, steps 2 to 8, above nothing\n",
            "",
            "what is planned: expected a place for b4",
        ),
        (
            "b4: 60 bytes",
            "b2: 60 bytes",
            "what is planned: expected a workspace buffer of the graph, got b2",
        ),
        ("b4: 60 bytes", "b5: 60 bytes", "what is planned: expected a place for b0, got none"),
        (
            "4*n bytes, steps 6 to 6, a block of its own",
            "4*n bytes, steps 6 to 6, above b4",
            "blocks of their own",
        ),
        (
            "b3 on device 1: 60 bytes, steps 1 to 2, at 128",
            "b3: 60 bytes, steps 1 to 2, above b4",
            "device",
        ),
    ]
    for old, new, why in wrong:
        text = plan.replace(old, new, 1)
        text = (
            text.replace("192 bytes, at least 140", "128 bytes, at least 80")
            if "b3 on" in old
            else text
        )
        with pytest.raises(InternalError) as caught:
            verify_memory(parse_memory(text), fused)
        assert why in caught.value.why


def test_a_program_is_compared_with_what_it_names() -> None:
    """Inputs, axes, outputs, devices and kernels that are not there are refused."""
    program = parse_program(PROGRAM)
    verify_program(program, ProgramContext((2,), (1,), (3, 1)))
    wrong = [
        (ProgramContext((), (1,), (3, 1)), "inputs: expected 0 to -1, got 0"),
        (ProgramContext((1,), (1,), (3, 1)), "axes: expected 0 to 0, got 1"),
        (ProgramContext((2,), (), (3, 1)), "outputs: expected 0 to -1, got 0"),
        (ProgramContext((2,), (0,), (3, 1)), "axes: expected 0 to -1, got 0"),
        (ProgramContext((2,), (1,), (3,)), "devices: expected 0 to 0, got 1"),
        (ProgramContext((2,), (1,), (2, 1)), "kernels of device 0: expected 0 to 1, got 2"),
        (ProgramContext((2,), (1,), (3, 0)), "kernels of device 1: expected 0 to -1, got 0"),
    ]
    for around, why in wrong:
        with pytest.raises(InternalError) as caught:
            verify_program(program, around)
        assert why in caught.value.why
        assert caught.value.where.startswith("instruction ")
