// What the statements of kernels are written with. Operators and the compiler's own vector
// functions, where it has them: some drivers call the library's functions without inlining them,
// and every call empties the vector registers.
#ifndef __has_builtin
#define __has_builtin(name) 0
#endif

#if __has_builtin(__builtin_convertvector)
#define TO(type, value) __builtin_convertvector(value, type)
#else
#define TO(type, value) convert_##type(value)
#endif

#if __has_builtin(__builtin_elementwise_floor)
#define FLOOR(value) __builtin_elementwise_floor(value)
#define CEIL(value) __builtin_elementwise_ceil(value)
#define TRUNC(value) __builtin_elementwise_trunc(value)
#define ROUND_EVEN(value) __builtin_elementwise_roundeven(value)
#else
#define FLOOR(value) floor(value)
#define CEIL(value) ceil(value)
#define TRUNC(value) trunc(value)
#define ROUND_EVEN(value) rint(value)
#endif

// Lane by lane: PoCL 3.0 cannot compile its own square root of eight doubles.
#if __has_builtin(__builtin_sqrt)
#define SQRT_float(value) __builtin_sqrtf(value)
#define SQRT_double(value) __builtin_sqrt(value)
#else
#define SQRT_float(value) sqrt(value)
#define SQRT_double(value) sqrt(value)
#endif

// Vectors in memory lie at multiples of an element.
#define IN_MEMORY(element, size) \
  typedef element##2 __attribute__((aligned(size))) element##2_at; \
  typedef element##4 __attribute__((aligned(size))) element##4_at; \
  typedef element##8 __attribute__((aligned(size))) element##8_at
IN_MEMORY(char, 1);
IN_MEMORY(short, 2);
IN_MEMORY(int, 4);
IN_MEMORY(long, 8);
IN_MEMORY(float, 4);
#ifdef cl_khr_fp64
IN_MEMORY(double, 8);
#endif
