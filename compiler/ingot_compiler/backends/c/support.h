/* What the statements of kernels are written with. Of C99 it needs <stdint.h> alone; with
   INGOT_MATH_H defined, square roots and roundings are those of <math.h>. */
#include <stdint.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
#ifndef __has_builtin
#define __has_builtin(name) 0
#endif

/* Numbers lie in arrays of bytes: compilers that look at types must know. Kernels share no frame:
   the stack holds one at a time. */
#ifdef __GNUC__
#define OVER_ANY __attribute__((may_alias))
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#define NO_INLINE __attribute__((noinline))
#else
#define OVER_ANY
#define ALIGNED(bytes)
#define NO_INLINE
#endif
typedef int8_t OVER_ANY i8_at;
typedef int16_t OVER_ANY i16_at;
typedef int32_t OVER_ANY i32_at;
typedef int64_t OVER_ANY i64_at;
typedef float OVER_ANY f32_at;
typedef double OVER_ANY f64_at;

/* Read where a lane is guarded; nobody looks at what is there. */
static const uint64_t spare_bytes[16] = {0};

static inline uint32_t bits_of_f32(float x) {
  union { float number; uint32_t bits; } both;
  both.number = x;
  return both.bits;
}
static inline float f32_of_bits(uint32_t x) {
  union { float number; uint32_t bits; } both;
  both.bits = x;
  return both.number;
}
static inline uint64_t bits_of_f64(double x) {
  union { double number; uint64_t bits; } both;
  both.number = x;
  return both.bits;
}
static inline double f64_of_bits(uint64_t x) {
  union { double number; uint64_t bits; } both;
  both.bits = x;
  return both.number;
}

/* Functions of the compiler only where the processor has an instruction: they call nothing. */
#if __has_builtin(__builtin_elementwise_floor) && \
    (defined(__SSE4_1__) || defined(__aarch64__) || defined(__wasm__))
#define HAS_ROUNDING 1
#else
#define HAS_ROUNDING 0
#endif
#if __has_builtin(__builtin_elementwise_sqrt) && \
    (defined(__SSE2__) || defined(__aarch64__) || defined(__wasm__) || defined(__riscv_flen))
#define HAS_SQRT 1
#else
#define HAS_SQRT 0
#endif
#if __has_builtin(__builtin_elementwise_sqrt) && (HAS_SQRT || (defined(__ARM_FP) && (__ARM_FP & 4)))
#define HAS_SQRT_f32 1
#else
#define HAS_SQRT_f32 0
#endif

#ifdef INGOT_MATH_H
#include <math.h>
#define sqrt_f32(x) sqrtf(x)
#define sqrt_f64(x) sqrt(x)
#define floor_f32(x) floorf(x)
#define floor_f64(x) floor(x)
#define ceil_f32(x) ceilf(x)
#define ceil_f64(x) ceil(x)
#define trunc_f32(x) truncf(x)
#define trunc_f64(x) trunc(x)
#define roundeven_f32(x) rintf(x)
#define roundeven_f64(x) rint(x)
#else

#if HAS_SQRT_f32
#define sqrt_f32(x) __builtin_elementwise_sqrt(x)
#endif
#if HAS_SQRT
#define sqrt_f64(x) __builtin_elementwise_sqrt(x)
#endif

/* The square root of a number below 2^126, bit by bit: of so many bits, and whether there is a
   rest. */
static inline uint64_t root_of_bits(uint64_t high, int steps, int *rest) {
  uint64_t root = 0, left = 0;
  int at;
  for (at = 0; at < steps; at++) {
    const uint64_t next = high >> 62;
    high <<= 2;
    left = (left << 2) | next;
    if (left >= ((root << 2) | 1)) {
      left -= (root << 2) | 1;
      root = (root << 1) | 1;
    } else {
      root <<= 1;
    }
  }
  *rest = left != 0;
  return root;
}
#ifndef sqrt_f32
static inline float sqrt_f32(float x) {
  uint32_t bits = bits_of_f32(x), fraction = bits & 0x7fffffu;
  int exponent = (int)((bits >> 23) & 0xff), rest;
  uint64_t root;
  if (x != x || x == 0.0f || exponent == 0xff || bits >> 31)
    return x > 0.0f || x == 0.0f || x != x ? x : f32_of_bits(0x7fc00000u);
  if (exponent == 0)
    for (exponent = 1; !(fraction & 0x800000u); exponent--) fraction <<= 1;
  exponent -= 127;
  fraction |= 0x800000u;
  /* 26 bits of the root of fraction * 2^(0 or 1), of which 24 count. */
  root = root_of_bits((uint64_t)fraction << ((exponent & 1) ? 40 : 39), 26, &rest);
  exponent = (exponent - (exponent & 1)) / 2;
  bits = (uint32_t)(root >> 2);
  if ((root & 2) && ((root & 1) || rest || (bits & 1))) bits++;
  return f32_of_bits(((uint32_t)(exponent + 126) << 23) + bits);
}
#endif
#ifndef sqrt_f64
static inline double sqrt_f64(double x) {
  uint64_t bits = bits_of_f64(x), fraction = bits & 0xfffffffffffffULL, root = 0, left = 0;
  int exponent = (int)((bits >> 52) & 0x7ff), at;
  if (x != x || x == 0.0 || exponent == 0x7ff || bits >> 63)
    return x > 0.0 || x == 0.0 || x != x ? x : f64_of_bits(0x7ff8000000000000ULL);
  if (exponent == 0)
    for (exponent = 1; !(fraction & 0x10000000000000ULL); exponent--) fraction <<= 1;
  exponent -= 1023;
  fraction = (fraction | 0x10000000000000ULL) << ((exponent & 1) ? 11 : 10);
  /* 54 bits of the root, of which 53 count. */
  for (at = 0; at < 54; at++) {
    const uint64_t trial = (root << 2) | 1;
    left = (left << 2) | (fraction >> 62);
    fraction <<= 2;
    root <<= 1;
    if (left >= trial) {
      left -= trial;
      root |= 1;
    }
  }
  exponent = (exponent - (exponent & 1)) / 2;
  bits = root >> 1;
  if ((root & 1) && (left != 0 || (bits & 1))) bits++;
  return f64_of_bits(((uint64_t)(exponent + 1022) << 52) + bits);
}
#endif

#if HAS_ROUNDING
#define floor_f32(x) __builtin_elementwise_floor(x)
#define floor_f64(x) __builtin_elementwise_floor(x)
#define ceil_f32(x) __builtin_elementwise_ceil(x)
#define ceil_f64(x) __builtin_elementwise_ceil(x)
#define trunc_f32(x) __builtin_elementwise_trunc(x)
#define trunc_f64(x) __builtin_elementwise_trunc(x)
#define roundeven_f32(x) __builtin_elementwise_roundeven(x)
#define roundeven_f64(x) __builtin_elementwise_roundeven(x)
#else
/* By bits: a number from 2^23 (2^52) on is whole. */
static inline float trunc_f32(float x) {
  const uint32_t bits = bits_of_f32(x);
  const int exponent = (int)((bits >> 23) & 0xff) - 127;
  if (exponent >= 23) return x;
  if (exponent < 0) return f32_of_bits(bits & 0x80000000u);
  return f32_of_bits(bits & ~(0x7fffffu >> exponent));
}
static inline double trunc_f64(double x) {
  const uint64_t bits = bits_of_f64(x);
  const int exponent = (int)((bits >> 52) & 0x7ff) - 1023;
  if (exponent >= 52) return x;
  if (exponent < 0) return f64_of_bits(bits & 0x8000000000000000ULL);
  return f64_of_bits(bits & ~(0xfffffffffffffULL >> exponent));
}
static inline float with_sign_f32(float x, float sign) {
  return f32_of_bits((bits_of_f32(x) & 0x7fffffffu) | (bits_of_f32(sign) & 0x80000000u));
}
static inline double with_sign_f64(double x, double sign) {
  const uint64_t bit = 0x8000000000000000ULL;
  return f64_of_bits((bits_of_f64(x) & ~bit) | (bits_of_f64(sign) & bit));
}
static inline float floor_f32(float x) {
  const float whole = trunc_f32(x);
  return whole > x ? whole - 1.0f : whole;
}
static inline double floor_f64(double x) {
  const double whole = trunc_f64(x);
  return whole > x ? whole - 1.0 : whole;
}
static inline float ceil_f32(float x) {
  const float whole = trunc_f32(x);
  return whole < x ? with_sign_f32(whole + 1.0f, x) : whole;
}
static inline double ceil_f64(double x) {
  const double whole = trunc_f64(x);
  return whole < x ? with_sign_f64(whole + 1.0, x) : whole;
}
static inline float roundeven_f32(float x) {
  const float whole = trunc_f32(x), rest = x - whole;
  const float size = rest < 0 ? -rest : rest, half = whole * 0.5f;
  const int up = size > 0.5f || (size == 0.5f && trunc_f32(half) != half);
  return up ? with_sign_f32(whole + (x < 0 ? -1.0f : 1.0f), x) : whole;
}
static inline double roundeven_f64(double x) {
  const double whole = trunc_f64(x), rest = x - whole;
  const double size = rest < 0 ? -rest : rest, half = whole * 0.5;
  const int up = size > 0.5 || (size == 0.5 && trunc_f64(half) != half);
  return up ? with_sign_f64(whole + (x < 0 ? -1.0 : 1.0), x) : whole;
}
#endif
#endif
