; What `main` calls of the support functions and of LLVM.
declare hidden i32 @ingot_launch(ptr, ptr, ptr, ptr, i64, i64, ptr, i64, ptr)
declare hidden i32 @ingot_watch(ptr, i32)
declare hidden ptr @memcpy(ptr, ptr, i64)
declare hidden ptr @memmove(ptr, ptr, i64)
declare hidden ptr @memset(ptr, i32, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.fptosi.sat.i64.f32(float)
declare i64 @llvm.fptosi.sat.i64.f64(double)
