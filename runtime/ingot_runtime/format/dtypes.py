"""Element types: the names, codes and widths that compiler, bundle and loader share.

In: nothing. Out: constant tables. Not done here: conversion to numpy (``executor``),
arithmetic.
"""

# code = position; codes are part of FORMAT.md and only grow at the end.
DTYPE_NAMES = (
    "f32", "f64", "f16", "bf16",
    "i8", "i16", "i32", "i64",
    "u8", "u16", "u32", "u64",
    "bool",
    "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2",
)  # fmt: skip
DTYPE_MINORS = (0,) * 13 + (1,) * 10  # the first minor version of bundles that have it
# numpy's names, by our code. numpy has no bf16: its 16 bits travel as uint16; elements of
# at most eight bits that numpy has not travel as their code, one in the low bits of each byte.
NUMPY_NAMES = (
    "float32", "float64", "float16", "uint16",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "uint8", "uint8", "uint8", "uint8", "uint8", "uint8", "uint8", "uint8", "uint8", "uint8",
)  # fmt: skip
# Those of which numpy has only the bits, and what the ml_dtypes package calls them.
ML_DTYPES = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
    "i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2",
}  # fmt: skip
DTYPE_SIZES_BYTES = (4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
DTYPE_CODES = {name: code for code, name in enumerate(DTYPE_NAMES)}
