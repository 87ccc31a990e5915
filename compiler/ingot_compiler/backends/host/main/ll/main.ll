; `i32 ingot_main(call)`: check the struct, set up the frame, run the steps.
define hidden i32 @ingot_main(ptr %call) $attributes {
  %rc = alloca i32, align 4
  %rc.entry = call i32 @main.enter(ptr %call)
  store i32 %rc.entry, ptr %rc, align 4
  %refused = icmp ne i32 %rc.entry, 0
  br i1 %refused, label %fail, label %set.up
set.up:
  %frame.p = getelementptr i8, ptr %call, i64 $call_frame
  %frame = load ptr, ptr %frame.p, align 8
  %zeroed = call ptr @memset(ptr %frame, i32 0, i64 $frame_registers)
  store ptr %call, ptr %frame, align 8
  %registers = getelementptr i8, ptr %frame, i64 $frame_registers
  %copied = call ptr @memcpy(ptr %registers, ptr @table.registers, i64 $frame_registers_size_bytes)
  %pool.p = getelementptr i8, ptr %call, i64 $call_pool
  %pool = load ptr, ptr %pool.p, align 8
  %without.threads = icmp eq ptr %pool, null
  br i1 %without.threads, label %start, label %begin.threads
begin.threads:
  %work.p = getelementptr i8, ptr %pool, i64 $pool_work
  %work = load i64, ptr %work.p, align 8
  %work_before.p = getelementptr i8, ptr %pool, i64 $pool_work_before
  store i64 %work, ptr %work_before.p, align 8
  store i64 0, ptr %work.p, align 8
  br label %start
start:
$body
fail:
  %code = load i32, ptr %rc, align 4
  %sizes = icmp eq i32 %code, $sizes_done
  %result = select i1 %sizes, i32 $rc_ok, i32 %code
  ret i32 %result
}
