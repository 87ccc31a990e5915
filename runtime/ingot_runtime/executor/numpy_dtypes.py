"""numpy's dtype of each element type: where numpy has none, that of the ``ml_dtypes`` package, or
the unsigned integer of the same bits if that package is not installed.

In: a code of ``format.dtypes``. Out: a dtype. Not done here: checking arrays (``arrays``). The
package is looked for when a bundle has such a tensor, and not before.
"""

import numpy as np

from ..format.dtypes import DTYPE_NAMES, ML_DTYPES, NUMPY_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    DType = np.dtype[Any]

_found: "dict[int, DType]" = {}


def dtype_of(code: int) -> "DType":
    """Return the dtype of the arrays that a session makes."""
    dtype = _found.get(code)
    if dtype is None:
        dtype = _found[code] = _ml_dtype(DTYPE_NAMES[code]) or bits_of(code)
    return dtype


def bits_of(code: int) -> "DType":
    """Return numpy's own dtype: that of the bits, where numpy has none for the numbers."""
    return np.dtype(NUMPY_NAMES[code])


def with_dtype(array: "np.ndarray", code: int) -> "np.ndarray":
    """Return an array of the right bits as one of `dtype_of`: what ``ml_dtypes`` made, whoever
    imported it; those bits as integers; and what ``numpy.savez`` makes of such arrays. Any other is
    returned as it is."""
    name = ML_DTYPES.get(DTYPE_NAMES[code])
    if name is None or array.dtype == dtype_of(code):
        return array
    bits = bits_of(code)
    is_opaque = array.dtype.type is np.void and array.dtype.names is None
    has_bits = array.dtype == bits or is_opaque or array.dtype.name == name
    return array.view(dtype_of(code)) if has_bits and array.itemsize == bits.itemsize else array


def _ml_dtype(element: str) -> "DType | None":
    name = ML_DTYPES.get(element)
    if name is None:
        return None
    from importlib import import_module

    try:
        found: DType = np.dtype(getattr(import_module("ml_dtypes"), name))
        return found
    except (ImportError, AttributeError):  # not installed, or older than this type
        return None
