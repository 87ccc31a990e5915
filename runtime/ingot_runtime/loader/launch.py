"""The signature of an image's ``launch``: FORMAT.md, "Image".

In: an address. Out: a function. Not done here: calling it.
"""

import ctypes

# pool, kernel, buffers, scalars, extent, grain, scratch, scratch_stride, watch
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64,
)  # fmt: skip
