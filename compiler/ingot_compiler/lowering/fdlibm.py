"""Numbers of fdlibm that functions of constants and functions of machine code both compute with.

In: nothing. Out: series and parts of constants, in f64. Not done here: the functions
(``constant_functions``, ``backends.host.emit.math``).
"""

# k_sin.c, S6 to S1; k_cos.c, C6 to C1.
SIN_SERIES = (
    1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
    -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01,
)  # fmt: skip
COS_SERIES = (
    -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
    2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02,
)  # fmt: skip
TWO_OVER_PI = 0.6366197723675814
# pi/2 in parts of 33 bits (e_rem_pio2.c): products with numbers up to SMALL_ANGLE_MAX are exact.
HALF_PI_PARTS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21)
SMALL_ANGLE_MAX = 2.0**20
LOG2E = 1.4426950408889634
# The high part has trailing zeros, so that its product with an exponent is exact.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
