"""What ``--json`` prints, on the device and on the build machine: one object on one line.

In: values. Out: a line of printable ASCII. Not done here: printing. docs/json.md has every key.
"""

import json

from .format.dtypes import DTYPE_CODES, ML_DTYPES, NUMPY_NAMES
from .ingot_error import IngotError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    Values = dict[str, Any]

# Of the keys and what they mean, not of the program.
VERSION = 1


def json_line(values: "Values") -> str:
    """Return `values` and the version as one line; ``json`` leaves DEL, which is not printable."""
    return json.dumps({"version": VERSION, **values}, allow_nan=False).replace("\x7f", "\\u007f")


def error_values(error: IngotError) -> "Values":
    """Return the four parts of an error, and the exit code that it asks for."""
    parts = {"what": error.what, "where": error.where, "why": error.why, "do": error.do}
    return {**parts, "exit_code": error.exit_code}


def array_values(dtype: str, array: "np.ndarray") -> "Values":
    """Describe an array whose element type Ingot calls `dtype`; of numbers tell the range."""
    values: Values = {
        "dtype": dtype,
        "numpy_dtype": "str" if dtype == "string" else NUMPY_NAMES[DTYPE_CODES[dtype]],
        "shape": list(array.shape),
    }
    # The bits of a bf16 and the like are no number.
    if array.size and array.dtype.kind in "fiu" and dtype not in ML_DTYPES:
        values |= {"least": finite(array.min().item()), "greatest": finite(array.max().item())}
    return values


def finite(number: "float | int") -> "float | int | str":
    """JSON has no infinity and no NaN: they become texts."""
    return number if number - number == 0 else str(number)
