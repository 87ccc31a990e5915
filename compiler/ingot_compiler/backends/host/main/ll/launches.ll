; Launches of `main`: collect the arguments, tell the profile hook, run the kernel on the host or on
; a device. Not done here: fork-join (`support/c/launch.c`), the order of steps.
;
; A launch is a row of a table: count of buffers, count of scalars, register of the extent, buffers,
; scalars (registers), i32 each. The functions walk the rows, so that `main` is one short call per
; launch: LLVM takes milliseconds for hundreds of them, and each costs tens of nanoseconds.

; `i32 look(frame)`: on a way back, ask whether the call is to stop.
define internal i32 @main.look(ptr %frame) $attributes {
  %call = load ptr, ptr %frame, align 8
  %watch.p = getelementptr i8, ptr %call, i64 $call_watch
  %watch = load ptr, ptr %watch.p, align 8
  %stop = call i32 @ingot_watch(ptr %watch, i32 1)
  %stopped = icmp ne i32 %stop, 0
  %code = select i1 %stopped, i32 $rc_cancelled, i32 0
  ret i32 %code
}

; `void profile(call, i64 ordinal, i64 begin or end)`: tell the caller's hook, if there is one.
define internal void @main.profile(ptr %call, i64 %ordinal, i64 %end) $attributes {
  %profile.p = getelementptr i8, ptr %call, i64 $call_profile
  %profile = load ptr, ptr %profile.p, align 8
  %none = icmp eq ptr %profile, null
  br i1 %none, label %done, label %tell
tell:
  %profile_context.p = getelementptr i8, ptr %call, i64 $call_profile_context
  %profile_context = load ptr, ptr %profile_context.p, align 8
  call void %profile(ptr %profile_context, i64 %ordinal, i64 %end)
  br label %done
done:
  ret void
}

; `i64 arguments(frame, row, buffers, scalars)`: collect a row's arguments; its extent is the
; result.
define internal i64 @main.arguments(ptr %frame, ptr %row, ptr %buffers, ptr %scalars) $attributes {
entry:
  %registers = getelementptr i8, ptr %frame, i64 $frame_registers
  %addresses = getelementptr i8, ptr %frame, i64 $frame_buffers
  %buffer.count = load i32, ptr %row, align 4
  %scalar.count.p = getelementptr i32, ptr %row, i64 1
  %scalar.count = load i32, ptr %scalar.count.p, align 4
  %extent.p = getelementptr i32, ptr %row, i64 2
  %extent.register = load i32, ptr %extent.p, align 4
  %extent.at = getelementptr i64, ptr %registers, i32 %extent.register
  %extent = load i64, ptr %extent.at, align 8
  %list = getelementptr i32, ptr %row, i64 3
  br label %buffer
buffer:
  %b = phi i32 [ 0, %entry ], [ %b.next, %buffer.copy ]
  %b.more = icmp ult i32 %b, %buffer.count
  br i1 %b.more, label %buffer.copy, label %scalar.start
buffer.copy:
  %b.p = getelementptr i32, ptr %list, i32 %b
  %b.index = load i32, ptr %b.p, align 4
  %b.from = getelementptr ptr, ptr %addresses, i32 %b.index
  %b.value = load ptr, ptr %b.from, align 8
  %b.to = getelementptr ptr, ptr %buffers, i32 %b
  store ptr %b.value, ptr %b.to, align 8
  %b.next = add i32 %b, 1
  br label %buffer
scalar.start:
  %rest = getelementptr i32, ptr %list, i32 %buffer.count
  br label %scalar
scalar:
  %s = phi i32 [ 0, %scalar.start ], [ %s.next, %scalar.copy ]
  %s.more = icmp ult i32 %s, %scalar.count
  br i1 %s.more, label %scalar.copy, label %done
scalar.copy:
  %s.p = getelementptr i32, ptr %rest, i32 %s
  %s.index = load i32, ptr %s.p, align 4
  %s.from = getelementptr i64, ptr %registers, i32 %s.index
  %s.value = load i64, ptr %s.from, align 8
  %s.to = getelementptr i64, ptr %scalars, i32 %s
  store i64 %s.value, ptr %s.to, align 8
  %s.next = add i32 %s, 1
  br label %scalar
done:
  ret i64 %extent
}

; `i32 launch(frame, row, kernel, i64 ordinal, i64 grain)`: run a kernel of the host.
define internal i32 @main.launch(ptr %frame, ptr %row, ptr %kernel, i64 %ordinal, i64 %grain)
    $attributes {
  %buffers = getelementptr i8, ptr %frame, i64 $frame_arguments
  %scalars = getelementptr i8, ptr %frame, i64 $frame_scalars
  %call = load ptr, ptr %frame, align 8
  %extent = call i64 @main.arguments(ptr %frame, ptr %row, ptr %buffers, ptr %scalars)
  %pool.p = getelementptr i8, ptr %call, i64 $call_pool
  %pool = load ptr, ptr %pool.p, align 8
  %scratch.p = getelementptr i8, ptr %call, i64 $call_scratch
  %scratch = load ptr, ptr %scratch.p, align 8
  %scratch_stride.p = getelementptr i8, ptr %call, i64 $call_scratch_stride
  %scratch_stride = load i64, ptr %scratch_stride.p, align 8
  %watch.p = getelementptr i8, ptr %call, i64 $call_watch
  %watch = load ptr, ptr %watch.p, align 8
  call void @main.profile(ptr %call, i64 %ordinal, i64 $profile_begin)
  %rc = call i32 @ingot_launch(ptr %pool, ptr %kernel, ptr %buffers, ptr %scalars, i64 %extent,
                               i64 %grain, ptr %scratch, i64 %scratch_stride, ptr %watch)
  call void @main.profile(ptr %call, i64 %ordinal, i64 $profile_end)
  ret i32 %rc
}

; `i32 launch_device(frame, row, i64 device, i64 kernel, i64 ordinal, i64 grain)`: run a kernel of a
; device. It passes one list of i64, buffers, scalars, extent, grain, to the device's
; `i32 launch(self, i32 kernel, arguments, i64 buffers, i64 scalars)`.
define internal i32 @main.launch_device(ptr %frame, ptr %row, i64 %device, i64 %kernel,
                                        i64 %ordinal, i64 %grain) $attributes {
  %arguments = getelementptr i8, ptr %frame, i64 $frame_arguments
  %stop = call i32 @main.look(ptr %frame)
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %cancelled, label %go
cancelled:
  ret i32 $rc_cancelled
go:
  %call = load ptr, ptr %frame, align 8
  %buffer.count = load i32, ptr %row, align 4
  %scalars = getelementptr i64, ptr %arguments, i32 %buffer.count
  %extent = call i64 @main.arguments(ptr %frame, ptr %row, ptr %arguments, ptr %scalars)
  %scalar.count.p = getelementptr i32, ptr %row, i64 1
  %scalar.count = load i32, ptr %scalar.count.p, align 4
  %extent.p = getelementptr i64, ptr %scalars, i32 %scalar.count
  store i64 %extent, ptr %extent.p, align 8
  %grain.p = getelementptr i64, ptr %extent.p, i64 1
  store i64 %grain, ptr %grain.p, align 8
  %buffers = zext i32 %buffer.count to i64
  %scalar.number = zext i32 %scalar.count to i64
  %devices.p = getelementptr i8, ptr %call, i64 $call_devices
  %devices = load ptr, ptr %devices.p, align 8
  %at = mul i64 %device, $device_size_bytes
  %device.p = getelementptr i8, ptr %devices, i64 %at
  %self.p = getelementptr i8, ptr %device.p, i64 $device_self
  %self = load ptr, ptr %self.p, align 8
  %launch.p = getelementptr i8, ptr %device.p, i64 $device_launch
  %launch = load ptr, ptr %launch.p, align 8
  %none = icmp eq ptr %launch, null
  br i1 %none, label %missing, label %run
missing:
  call void @main.fail(ptr %call, ptr @text.device, i64 $text_device_size_bytes)
  ret i32 $rc_device
run:
  %kernel32 = trunc i64 %kernel to i32
  call void @main.profile(ptr %call, i64 %ordinal, i64 $profile_begin)
  %rc = call i32 %launch(ptr %self, i32 %kernel32, ptr %arguments, i64 %buffers, i64 %scalar.number)
  call void @main.profile(ptr %call, i64 %ordinal, i64 $profile_end)
  ret i32 %rc
}
