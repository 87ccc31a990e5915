// `float_enter`, `float_leave`: kernels run under the default floating-point environment, whatever the caller's is.
//
// A rounding mode, or subnormal numbers flushed to zero by another library, would change results; and only on the caller's thread,
// so that one thread and two would differ. The default rounds to nearest, ties to even, keeps subnormal numbers and traps nothing.
#include "support.h"

#if defined(__x86_64__)
typedef u32 float_environment;
static const float_environment FLOAT_DEFAULT = 0x1F80; // MXCSR: all exceptions masked
static const float_environment FLOAT_MASK = ~0x3Fu;    // the six lowest bits only report
static float_environment float_read(void) { return __builtin_ia32_stmxcsr(); }
static void float_write(float_environment value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
typedef u64 float_environment;
static const float_environment FLOAT_DEFAULT = 0; // FPCR
static const float_environment FLOAT_MASK = ~(u64)0;
static float_environment float_read(void) { return __builtin_arm_rsr64("fpcr"); }
static void float_write(float_environment value) { __builtin_arm_wsr64("fpcr", value); }
#elif defined(__riscv)
typedef u64 float_environment; // there is no flushing to zero: the rounding mode
static const float_environment FLOAT_DEFAULT = 0; // RNE
static const float_environment FLOAT_MASK = ~(u64)0;
static float_environment float_read(void) {
  float_environment value;
  __asm__ volatile("frrm %0" : "=r"(value));
  return value;
}
static void float_write(float_environment value) { __asm__ volatile("fsrm %0" : : "r"(value)); }
#endif

// Returns what was set.
static float_environment float_enter(void) {
  float_environment old = float_read();
  if ((old & FLOAT_MASK) != FLOAT_DEFAULT) float_write(FLOAT_DEFAULT);
  return old;
}

static void float_leave(float_environment old) {
  if ((old & FLOAT_MASK) != FLOAT_DEFAULT) float_write(old);
}
