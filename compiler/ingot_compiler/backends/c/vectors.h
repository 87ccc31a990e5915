
/* Vectors of GCC and Clang. */
#if !defined(__GNUC__) || !__has_builtin(__builtin_convertvector)
#error "this source needs the vectors of GCC or Clang: export it for the target c"
#endif

/* In variables; in memory they lie at multiples of an element. */
#define VECTOR(name, element, lanes, size) \
  typedef element name##x##lanes __attribute__((vector_size(lanes * size))); \
  typedef element name##x##lanes##_at \
      __attribute__((vector_size(lanes * size), aligned(size), may_alias))
#define VECTORS(name, element, size) \
  VECTOR(name, element, 2, size); \
  VECTOR(name, element, 4, size); \
  VECTOR(name, element, 8, size)
VECTORS(i8, int8_t, 1);
VECTORS(u8, uint8_t, 1);
VECTORS(i16, int16_t, 2);
VECTORS(u16, uint16_t, 2);
VECTORS(i32, int32_t, 4);
VECTORS(u32, uint32_t, 4);
VECTORS(i64, int64_t, 8);
VECTORS(u64, uint64_t, 8);
VECTORS(f32, float, 4);
VECTORS(f64, double, 8);

#define IN_2(function, kind, x) ((kind##x2){function((x)[0]), function((x)[1])})
#define IN_4(function, kind, x) \
  ((kind##x4){function((x)[0]), function((x)[1]), function((x)[2]), function((x)[3])})
#define IN_8(function, kind, x) \
  ((kind##x8){function((x)[0]), function((x)[1]), function((x)[2]), function((x)[3]), \
              function((x)[4]), function((x)[5]), function((x)[6]), function((x)[7])})
#if HAS_ROUNDING && !defined(INGOT_MATH_H)
#define ROUNDED(function, kind, lanes, x) __builtin_elementwise_##function(x)
#else
#define ROUNDED(function, kind, lanes, x) IN_##lanes(function##_##kind, kind, x)
#endif
#if HAS_SQRT && !defined(INGOT_MATH_H)
#define ROOT(kind, lanes, x) __builtin_elementwise_sqrt(x)
#else
#define ROOT(kind, lanes, x) IN_##lanes(sqrt_##kind, kind, x)
#endif
#define floor_f32x2(x) ROUNDED(floor, f32, 2, x)
#define floor_f32x4(x) ROUNDED(floor, f32, 4, x)
#define floor_f32x8(x) ROUNDED(floor, f32, 8, x)
#define floor_f64x2(x) ROUNDED(floor, f64, 2, x)
#define floor_f64x4(x) ROUNDED(floor, f64, 4, x)
#define floor_f64x8(x) ROUNDED(floor, f64, 8, x)
#define ceil_f32x2(x) ROUNDED(ceil, f32, 2, x)
#define ceil_f32x4(x) ROUNDED(ceil, f32, 4, x)
#define ceil_f32x8(x) ROUNDED(ceil, f32, 8, x)
#define ceil_f64x2(x) ROUNDED(ceil, f64, 2, x)
#define ceil_f64x4(x) ROUNDED(ceil, f64, 4, x)
#define ceil_f64x8(x) ROUNDED(ceil, f64, 8, x)
#define trunc_f32x2(x) ROUNDED(trunc, f32, 2, x)
#define trunc_f32x4(x) ROUNDED(trunc, f32, 4, x)
#define trunc_f32x8(x) ROUNDED(trunc, f32, 8, x)
#define trunc_f64x2(x) ROUNDED(trunc, f64, 2, x)
#define trunc_f64x4(x) ROUNDED(trunc, f64, 4, x)
#define trunc_f64x8(x) ROUNDED(trunc, f64, 8, x)
#define roundeven_f32x2(x) ROUNDED(roundeven, f32, 2, x)
#define roundeven_f32x4(x) ROUNDED(roundeven, f32, 4, x)
#define roundeven_f32x8(x) ROUNDED(roundeven, f32, 8, x)
#define roundeven_f64x2(x) ROUNDED(roundeven, f64, 2, x)
#define roundeven_f64x4(x) ROUNDED(roundeven, f64, 4, x)
#define roundeven_f64x8(x) ROUNDED(roundeven, f64, 8, x)
#define sqrt_f32x2(x) ROOT(f32, 2, x)
#define sqrt_f32x4(x) ROOT(f32, 4, x)
#define sqrt_f32x8(x) ROOT(f32, 8, x)
#define sqrt_f64x2(x) ROOT(f64, 2, x)
#define sqrt_f64x4(x) ROOT(f64, 4, x)
#define sqrt_f64x8(x) ROOT(f64, 8, x)
