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
)  # fmt: skip
# numpy's names, by our code. numpy has no bf16: its 16 bits travel as uint16.
NUMPY_NAMES = (
    "float32", "float64", "float16", "uint16",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
# Those of which numpy has only the bits, and what the ml_dtypes package calls them.
ML_DTYPES = {"bf16": "bfloat16"}
DTYPE_SIZES_BYTES = (4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1)
DTYPE_CODES = {name: code for code, name in enumerate(DTYPE_NAMES)}
