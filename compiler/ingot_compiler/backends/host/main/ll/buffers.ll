; Buffers of `main`: their addresses, copies between devices, blocks of a size known only at run
; time. Not done here: planning where buffers lie.

; `void buffers(frame, table, i64 count)`: compute the addresses of `count` buffers. A row of the
; table: kind, buffer, tensor or byte offset or device, register or byte offset, i64 each.
define internal void @main.buffers(ptr %frame, ptr %table, i64 %count) $attributes {
entry:
  %call = load ptr, ptr %frame, align 8
  %inputs.p = getelementptr i8, ptr %call, i64 $call_inputs
  %inputs = load ptr, ptr %inputs.p, align 8
  %outputs.p = getelementptr i8, ptr %call, i64 $call_outputs
  %outputs = load ptr, ptr %outputs.p, align 8
  %weights.p = getelementptr i8, ptr %call, i64 $call_weights
  %weights = load ptr, ptr %weights.p, align 8
  %workspaces.p = getelementptr i8, ptr %call, i64 $call_workspaces
  %workspaces = load ptr, ptr %workspaces.p, align 8
  %devices.p = getelementptr i8, ptr %call, i64 $call_devices
  %devices = load ptr, ptr %devices.p, align 8
  %registers = getelementptr i8, ptr %frame, i64 $frame_registers
  %addresses = getelementptr i8, ptr %frame, i64 $frame_buffers
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
  %is.weights = icmp eq i64 %kind, $buffer_weights
  br i1 %is.weights, label %of.weights, label %not.weights
of.weights:
  %weight = getelementptr i8, ptr %weights, i64 %x
  br label %store
not.weights:
  %is.workspace = icmp eq i64 %kind, $buffer_workspace
  br i1 %is.workspace, label %of.workspace, label %not.workspace
of.workspace:
  %register.p = getelementptr i64, ptr %kind.p, i64 3
  %register = load i64, ptr %register.p, align 8
  %offset.p = getelementptr i64, ptr %registers, i64 %register
  %offset = load i64, ptr %offset.p, align 8
  %pool.p = getelementptr ptr, ptr %workspaces, i64 %x
  %pool = load ptr, ptr %pool.p, align 8
  %place = getelementptr i8, ptr %pool, i64 %offset
  br label %store
not.workspace:
  %is.device = icmp eq i64 %kind, $buffer_device_weights
  br i1 %is.device, label %of.device, label %of.tensor
of.device:
  %device.at = mul i64 %x, $device_size_bytes
  %device.p = getelementptr i8, ptr %devices, i64 %device.at
  %device.weights.p = getelementptr i8, ptr %device.p, i64 $device_weights
  %device.weights = load ptr, ptr %device.weights.p, align 8
  %device.offset.p = getelementptr i64, ptr %kind.p, i64 3
  %device.offset = load i64, ptr %device.offset.p, align 8
  %device.weight = getelementptr i8, ptr %device.weights, i64 %device.offset
  br label %store
of.tensor:
  %is.input = icmp eq i64 %kind, $buffer_input
  %tensors = select i1 %is.input, ptr %inputs, ptr %outputs
  %tensor.at = mul i64 %x, $tensor_size_bytes
  %tensor = getelementptr i8, ptr %tensors, i64 %tensor.at
  %data.p = getelementptr i8, ptr %tensor, i64 $tensor_data
  %data = load ptr, ptr %data.p, align 8
  br label %store
store:
  %address = phi ptr [ %weight, %of.weights ], [ %place, %of.workspace ], 
                  [ %device.weight, %of.device ], [ %data, %of.tensor ]
  %slot = getelementptr ptr, ptr %addresses, i64 %buffer
  store ptr %address, ptr %slot, align 8
  %i.next = add i64 %i, 1
  br label %next
}

; `i32 copy(frame, i64 source device, i64 target device, i64 to, i64 from, i64 bytes)`: buffers by
; index. Devices without a `copy` are host memory.
; `i32 copy(self, i64 target device, i64 source device, to, from, i64 bytes)` is the target
; device's, or the source's where the target is the host.
define internal i32 @main.copy(ptr %frame, i64 %source, i64 %target, i64 %to.index,
                               i64 %from.index, i64 %bytes) $attributes {
  %addresses = getelementptr i8, ptr %frame, i64 $frame_buffers
  %to.p = getelementptr ptr, ptr %addresses, i64 %to.index
  %to = load ptr, ptr %to.p, align 8
  %from.p = getelementptr ptr, ptr %addresses, i64 %from.index
  %from = load ptr, ptr %from.p, align 8
  %call = load ptr, ptr %frame, align 8
  %devices.p = getelementptr i8, ptr %call, i64 $call_devices
  %devices = load ptr, ptr %devices.p, align 8
  %source.at = mul i64 %source, $device_size_bytes
  %source.p = getelementptr i8, ptr %devices, i64 %source.at
  %source.copy.p = getelementptr i8, ptr %source.p, i64 $device_copy
  %source.copy = load ptr, ptr %source.copy.p, align 8
  %target.at = mul i64 %target, $device_size_bytes
  %target.p = getelementptr i8, ptr %devices, i64 %target.at
  %target.copy.p = getelementptr i8, ptr %target.p, i64 $device_copy
  %target.copy = load ptr, ptr %target.copy.p, align 8
  %from.host = icmp eq ptr %source.copy, null
  %to.host = icmp eq ptr %target.copy, null
  %host = and i1 %from.host, %to.host
  br i1 %host, label %plain, label %run
plain:
  %copied = call ptr @memmove(ptr %to, ptr %from, i64 %bytes)
  ret i32 0
run:
  %chosen = select i1 %to.host, ptr %source.p, ptr %target.p
  %function = select i1 %to.host, ptr %source.copy, ptr %target.copy
  %self.p = getelementptr i8, ptr %chosen, i64 $device_self
  %self = load ptr, ptr %self.p, align 8
  %rc = call i32 %function(ptr %self, i64 %target, i64 %source, ptr %to, ptr %from, i64 %bytes)
  ret i32 %rc
}

; `i32 grow(frame, i64 buffer, i64 device, i64 bytes)`: the caller gives a block of a size known
; only now.
define internal i32 @main.grow(ptr %frame, i64 %buffer, i64 %device, i64 %bytes) $attributes {
  %call = load ptr, ptr %frame, align 8
  %grow.p = getelementptr i8, ptr %call, i64 $call_grow
  %grow = load ptr, ptr %grow.p, align 8
  %none = icmp eq ptr %grow, null
  br i1 %none, label %bad, label %ask
ask:
  %block = call ptr %grow(i64 %device, i64 %bytes)
  %refused = icmp eq ptr %block, null
  br i1 %refused, label %bad, label %good
good:
  %addresses = getelementptr i8, ptr %frame, i64 $frame_buffers
  %slot = getelementptr ptr, ptr %addresses, i64 %buffer
  store ptr %block, ptr %slot, align 8
  ret i32 0
bad:
  call void @main.fail(ptr %call, ptr @text.grow, i64 $text_grow_size_bytes)
  ret i32 $rc_limit
}

; `void output(frame, i64 tensor, i64 buffer, i64 bytes)`: the output lies in a grown block.
define internal void @main.output(ptr %frame, i64 %tensor, i64 %buffer, i64 %bytes) $attributes {
  %call = load ptr, ptr %frame, align 8
  %outputs.p = getelementptr i8, ptr %call, i64 $call_outputs
  %outputs = load ptr, ptr %outputs.p, align 8
  %addresses = getelementptr i8, ptr %frame, i64 $frame_buffers
  %slot = getelementptr ptr, ptr %addresses, i64 %buffer
  %address = load ptr, ptr %slot, align 8
  %at = mul i64 %tensor, $tensor_size_bytes
  %tensor.p = getelementptr i8, ptr %outputs, i64 %at
  %data.p = getelementptr i8, ptr %tensor.p, i64 $tensor_data
  store ptr %address, ptr %data.p, align 8
  %bytes.p = getelementptr i8, ptr %tensor.p, i64 $tensor_bytes
  store i64 %bytes, ptr %bytes.p, align 8
  ret void
}
