// Conversions to and from f16 and bf16, and `fmaf`: what LLVM calls where the CPU has no instruction.
//
// All round to nearest, ties to even, once: IEEE 754-2019, 5.4.2 and 5.4.1. NaNs stay NaN and get quiet.
// Not done here: vectors (kernels convert by integer arithmetic of their own).
#include "support.h"

#define BITS(kind, value) __builtin_bit_cast(kind, value)

// Exact: the exponent is moved by a multiplication, which also makes subnormal f16 normal.
float __extendhfsf2(_Float16 x) {
  u32 half = BITS(u16, x), magnitude = half & 0x7FFF, moved = magnitude << 13;
  u32 finite = BITS(u32, BITS(float, moved) * 0x1p112f); // the difference of the exponents' biases
  u32 special = moved | 0x7F800000 | (magnitude > 0x7C00 ? 0x400000 : 0);
  return BITS(float, (magnitude >= 0x7C00 ? special : finite) | (half & 0x8000) << 16);
}

// Normal results by integer rounding of the bits; subnormal ones by adding 0.5, whose unit in the last place is that of f16's least.
_Float16 __truncsfhf2(float x) {
  u32 bits = BITS(u32, x), magnitude = bits & 0x7FFFFFFF;
  u32 normal = (magnitude - (112 << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  u32 small = BITS(u32, BITS(float, magnitude) + 0.5f) - BITS(u32, 0.5f);
  u32 finite = magnitude < 113 << 23 ? small : normal;
  u32 number = magnitude >= BITS(u32, 65520.0f) ? 0x7C00 : finite;
  u32 value = magnitude > 0x7F800000 ? (magnitude >> 13 & 0x3FF) | 0x7E00 : number;
  return BITS(_Float16, (u16)(value | bits >> 31 << 15));
}

__bf16 __truncsfbf2(float x) {
  u32 bits = BITS(u32, x), kept = bits >> 16;
  return BITS(__bf16, (u16)(x != x ? kept | 0x40 : (bits + 0x7FFF + (kept & 1)) >> 16));
}

// Truncated, with the last bit set if inexact: a second rounding is then exact. Source: Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums: proved algorithms using rounding to odd".
static float round_to_odd(double x) {
  float rounded = (float)x;
  double back = rounded;
  u32 is_above = __builtin_fabs(back) > __builtin_fabs(x), is_inexact = back < x || back > x;
  return BITS(float, (BITS(u32, rounded) - is_above) | is_inexact);
}

_Float16 __truncdfhf2(double x) { return __truncsfhf2(round_to_odd(x)); }
__bf16 __truncdfbf2(double x) { return __truncsfbf2(round_to_odd(x)); }

#if !HAS_FMA
// The product is exact in f64; the sum is rounded to odd there, then once to f32 (same source). The sum's own rounding error is exact (Knuth).
float fmaf(float a, float b, float c) {
  double product = (double)a * b, sum = product + c;
  double c_seen = sum - product, product_seen = sum - c_seen;
  double error = (product - product_seen) + (c - c_seen);
  u64 bits = BITS(u64, sum);
  if (error < 0 || error > 0) bits = (bits - ((bits ^ BITS(u64, error)) >> 63)) | 1;
  return (float)BITS(double, bits);
}
#endif
