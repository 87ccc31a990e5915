; Checks of `main`: the caller's struct against the program's signature and sizes, asserts, floor
; division. Each check returns a code of `abi`: 0 goes on, anything else ends `main`.

; `void fail(call, text, i64 length)`: as much of the text as the caller's error buffer holds.
define internal void @main.fail(ptr %call, ptr %text, i64 %length) $attributes {
  %error.p = getelementptr i8, ptr %call, i64 $call_error
  %error = load ptr, ptr %error.p, align 8
  %error_cap.p = getelementptr i8, ptr %call, i64 $call_error_cap
  %error_cap = load i32, ptr %error_cap.p, align 4
  %cap = zext i32 %error_cap to i64
  %fits = icmp ult i64 %length, %cap
  %n = select i1 %fits, i64 %length, i64 %cap
  %none = icmp eq ptr %error, null
  %count = select i1 %none, i64 0, i64 %n
  %copied = call ptr @memcpy(ptr %error, ptr %text, i64 %count)
  %count32 = trunc i64 %count to i32
  %length.p = getelementptr i8, ptr %call, i64 $call_error_len
  store i32 %count32, ptr %length.p, align 4
  ret void
}

; `i64 floordiv(i64, i64)` and `i64 mod(i64, i64)`: a divisor of 0 gives 0; -1 is apart because the
; least i64 / -1 traps.
define internal i64 @main.floordiv(i64 %a, i64 %b) $attributes {
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
}
define internal i64 @main.mod(i64 %a, i64 %b) $attributes {
  %none = icmp eq i64 %b, 0
  %q = call i64 @main.floordiv(i64 %a, i64 %b)
  %whole = mul i64 %q, %b
  %rest = sub i64 %a, %whole
  %r = select i1 %none, i64 0, i64 %rest
  ret i64 %r
}

; `i32 tensors(call, tensors, table, i64 count, i32 mode)`: compare with the program's signature.
;
; A row of the table: dtype code, bytes per element, rank, dims (negative: not known before the
; call). Rank and dtype are always compared; shapes and sizes as the mode says. An output of a
; dim -1 is sized after `begin`. A size is that of the fixed dims and of the shape given.
define internal i32 @main.tensors(ptr %call, ptr %tensors, ptr %table, i64 %count, i32 %mode)
    $attributes {
entry:
  %shape.bit = and i32 %mode, $check_shape
  %compare = icmp ne i32 %shape.bit, 0
  %bytes.bit = and i32 %mode, $check_bytes
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
  %at = mul i64 %i, $tensor_size_bytes
  %tensor.p = getelementptr i8, ptr %tensors, i64 %at
  %want.dtype = load i64, ptr %row, align 8
  %element.p = getelementptr i64, ptr %row, i64 1
  %element = load i64, ptr %element.p, align 8
  %want.rank.p = getelementptr i64, ptr %row, i64 2
  %want.rank = load i64, ptr %want.rank.p, align 8
  %dims = getelementptr i64, ptr %row, i64 3
  %row.next = getelementptr i64, ptr %dims, i64 %want.rank
  %rank.p = getelementptr i8, ptr %tensor.p, i64 $tensor_rank
  %rank32 = load i32, ptr %rank.p, align 4
  %rank = zext i32 %rank32 to i64
  %dtype.p = getelementptr i8, ptr %tensor.p, i64 $tensor_dtype
  %dtype32 = load i32, ptr %dtype.p, align 4
  %dtype = zext i32 %dtype32 to i64
  %shape.p = getelementptr i8, ptr %tensor.p, i64 $tensor_shape
  %shape = load ptr, ptr %shape.p, align 8
  %rank.same = icmp eq i64 %rank, %want.rank
  %dtype.same = icmp eq i64 %dtype, %want.dtype
  %kind.same = and i1 %rank.same, %dtype.same
  br i1 %kind.same, label %kind, label %bad
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
  %pair = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %total, i64 %value)
  %product = extractvalue { i64, i1 } %pair, 0
  %overflow = extractvalue { i64, i1 } %pair, 1
  %j.next = add i64 %j, 1
  br i1 %overflow, label %bad, label %dim
size:
  %bytes.p = getelementptr i8, ptr %tensor.p, i64 $tensor_bytes
  %bytes = load i64, ptr %bytes.p, align 8
  %small = icmp ult i64 %bytes, %total
  %too.small = and i1 %small, %measure
  br i1 %too.small, label %bad, label %good
good:
  %i.next = add i64 %i, 1
  br label %next
bad:
  call void @main.fail(ptr %call, ptr @text.tensor, i64 $text_tensor_size_bytes)
  ret i32 $rc_bad_input
}

; `i32 enter(call)`: version, counts, sizes and signatures, before anything else is read.
define internal i32 @main.enter(ptr %call) $attributes {
  %abi.p = getelementptr i8, ptr %call, i64 $call_abi
  %abi = load i32, ptr %abi.p, align 4
  %abi.same = icmp eq i32 %abi, $abi_version
  br i1 %abi.same, label %version, label %wrong.abi
version:
  %size.p = getelementptr i8, ptr %call, i64 $call_size
  %size = load i32, ptr %size.p, align 4
  %whole = icmp uge i32 %size, $call_size_bytes
  br i1 %whole, label %count, label %wrong.abi
wrong.abi:
  ret i32 $rc_abi
count:
  %error_len.p = getelementptr i8, ptr %call, i64 $call_error_len
  store i32 0, ptr %error_len.p, align 4
  %n_inputs.p = getelementptr i8, ptr %call, i64 $call_n_inputs
  %n_inputs = load i32, ptr %n_inputs.p, align 4
  %n_outputs.p = getelementptr i8, ptr %call, i64 $call_n_outputs
  %n_outputs = load i32, ptr %n_outputs.p, align 4
  %n_devices.p = getelementptr i8, ptr %call, i64 $call_n_devices
  %n_devices = load i32, ptr %n_devices.p, align 4
  %inputs.same = icmp eq i32 %n_inputs, $input_count
  %outputs.same = icmp eq i32 %n_outputs, $output_count
  %devices.same = icmp eq i32 %n_devices, $device_count
  %tensors.same = and i1 %inputs.same, %outputs.same
  %counts.same = and i1 %tensors.same, %devices.same
  br i1 %counts.same, label %weights, label %wrong.counts
wrong.counts:
  call void @main.fail(ptr %call, ptr @text.counts, i64 $text_counts_size_bytes)
  ret i32 $rc_bad_input
weights:
  %weights_bytes.p = getelementptr i8, ptr %call, i64 $call_weights_bytes
  %weights_bytes = load i64, ptr %weights_bytes.p, align 8
  %enough = icmp uge i64 %weights_bytes, $weights_bytes
  br i1 %enough, label %room, label %wrong.weights
wrong.weights:
  call void @main.fail(ptr %call, ptr @text.weights, i64 $text_weights_size_bytes)
  ret i32 $rc_bad_input
room:
  %frame_bytes.p = getelementptr i8, ptr %call, i64 $call_frame_bytes
  %frame_bytes = load i64, ptr %frame_bytes.p, align 8
  %fits = icmp uge i64 %frame_bytes, $frame_size_bytes
  br i1 %fits, label %signature, label %no.room
no.room:
  call void @main.fail(ptr %call, ptr @text.frame, i64 $text_frame_size_bytes)
  ret i32 $rc_bad_input
signature:
  %flags.p = getelementptr i8, ptr %call, i64 $call_flags
  %flags = load i32, ptr %flags.p, align 4
  %inputs.p = getelementptr i8, ptr %call, i64 $call_inputs
  %inputs = load ptr, ptr %inputs.p, align 8
  %outputs.p = getelementptr i8, ptr %call, i64 $call_outputs
  %outputs = load ptr, ptr %outputs.p, align 8
  %bit = and i32 %flags, $flag_sizes_only
  %sizes = icmp ne i32 %bit, 0
  %mode = select i1 %sizes, i32 $check_shape, i32 $check_shape_and_bytes
  %rc.inputs = call i32 @main.tensors(ptr %call, ptr %inputs, ptr @table.inputs, i64 $input_count,
                                      i32 %mode)
  %bad = icmp ne i32 %rc.inputs, 0
  br i1 %bad, label %done, label %results
done:
  ret i32 %rc.inputs
results:
  %rc.outputs = call i32 @main.tensors(ptr %call, ptr %outputs, ptr @table.outputs,
                                       i64 $output_count, i32 0)
  ret i32 %rc.outputs
}

; `i32 begin(frame)`: report the sizes, or compare the ones given with those needed.
define internal i32 @main.begin(ptr %frame) $attributes {
entry:
  %call = load ptr, ptr %frame, align 8
  %flags.p = getelementptr i8, ptr %call, i64 $call_flags
  %flags = load i32, ptr %flags.p, align 4
  %workspace_bytes.p = getelementptr i8, ptr %call, i64 $call_workspace_bytes
  %workspace_bytes = load ptr, ptr %workspace_bytes.p, align 8
  %scratch.needed.p = getelementptr i8, ptr %frame, i64 $frame_scratch_needed
  %scratch.needed = load i64, ptr %scratch.needed.p, align 8
  %needed = getelementptr i8, ptr %frame, i64 $frame_workspaces_needed
  %stride.p = getelementptr i8, ptr %call, i64 $call_scratch_stride
  %bit = and i32 %flags, $flag_sizes_only
  %sizes = icmp ne i32 %bit, 0
  br i1 %sizes, label %report, label %compare
report:
  store i64 %scratch.needed, ptr %stride.p, align 8
  %copied = call ptr @memcpy(ptr %workspace_bytes, ptr %needed, i64 $frame_workspaces_size_bytes)
  ret i32 $sizes_done
compare:
  %stride = load i64, ptr %stride.p, align 8
  %scratch.small = icmp ult i64 %stride, %scratch.needed
  br i1 %scratch.small, label %bad, label %device
device:
  %d = phi i64 [ 0, %compare ], [ %d.next, %enough ]
  %more = icmp ult i64 %d, $device_count
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
  %outputs.p = getelementptr i8, ptr %call, i64 $call_outputs
  %outputs = load ptr, ptr %outputs.p, align 8
  %rc = call i32 @main.tensors(ptr %call, ptr %outputs, ptr @table.outputs, i64 $output_count,
                               i32 $check_bytes)
  ret i32 %rc
bad:
  call void @main.fail(ptr %call, ptr @text.workspace, i64 $text_workspace_size_bytes)
  ret i32 $rc_bad_input
}

; `i32 assert(frame, i64 register, text, i64 length)`: fail with the text where the register is 0.
define internal i32 @main.assert(ptr %frame, i64 %register, ptr %text, i64 %length) $attributes {
  %registers = getelementptr i8, ptr %frame, i64 $frame_registers
  %value.p = getelementptr i64, ptr %registers, i64 %register
  %value = load i64, ptr %value.p, align 8
  %holds = icmp ne i64 %value, 0
  br i1 %holds, label %good, label %bad
good:
  ret i32 0
bad:
  %call = load ptr, ptr %frame, align 8
  call void @main.fail(ptr %call, ptr %text, i64 %length)
  ret i32 $rc_bad_input
}

; `i32 refuse(frame, i32 rc, i32 code, text, i64 length)`: a kernel's report in words; any other
; rc as it is.
define internal i32 @main.refuse(ptr %frame, i32 %rc, i32 %code, ptr %text, i64 %length)
    $attributes {
  %same = icmp eq i32 %rc, %code
  br i1 %same, label %bad, label %other
other:
  ret i32 %rc
bad:
  %call = load ptr, ptr %frame, align 8
  call void @main.fail(ptr %call, ptr %text, i64 %length)
  ret i32 $rc_bad_input
}
