"""Cases that are known to be slower than ONNX Runtime's, or to differ from it, each with why.

In: names. Out: what is known of one. Not done here: measuring (``bench_algorithms``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Known:
    """Cases by a pattern of their names; ``ratio_max``: how slow they may be."""

    pattern: str
    ratio_max: float
    why: str


SLOWER: tuple[Known, ...] = (
    Known("slice *", 1.25, "memory is copied at its speed, by both"),
    Known(
        "split * open",
        1.35,
        "two launches of open rows, where one of known ones is a copy of bytes",
    ),
    Known(
        "resize * of a run", 1.6, "scales of a run resample all axes, also those whose scale is 1"
    ),
    Known(
        "pad * of a run",
        1.7,
        "the sizes are computed by launches of their own, and rows by conditions",
    ),
    Known("pad * middle * open", 1.5, "each row finds by divisions whether it is added"),
    Known("reshape * of a run", 1.3, "the shape is computed by launches of their own"),
    Known("reshape * open", 1.3, "an open number of elements is copied by masked vectors"),
    Known("tile * of a run", 1.4, "the sizes are computed by launches of their own"),
    Known("tile * open", 1.25, "rows of few elements are found by divisions"),
    Known("nhwc * apart", 1.75, "tiles have 16 rows, of which 3 or 4 open channels fill few"),
    Known("nchw * apart", 1.8, "tiles have 16 columns, of which 4 to 8 open channels fill few"),
    Known("transpose *x*", 1.25, "lines that lie a power of 2 apart share places of the cache"),
    Known("gather of transposed *", 1.35, "rows are picked where they lie, element by element"),
    Known("* over * of a run", 1.4, "axes that a run gives are reduced as axes of open sizes"),
    Known("*max 5000x8 over 1 apart", 1.4, "eight elements of open rows are gathered"),
    Known("softmax * open", 1.6, "columns of few open elements are masked vectors"),
    Known("top * of a run", 1.35, "how many are wanted decides between two orders at run time"),
    Known("add number apart", 1.4, "a number that may be a row is found to be one at run time"),
    Known("add column *64*", 1.6, "rows of 64-bit elements end in two masked vectors"),
    Known("*quantize *", 1.25, "one pass for the range, one for the bytes"),
    Known("product 1000x250x1*", 1.4, "rows are read once, at the speed of the second cache"),
    Known("product 1x1000x1000*", 1.5, "a matrix is read once, at the speed of the last cache"),
    Known("product 128x128x128 open", 1.3, "rows of open numbers have clamped tiles"),
    Known(
        "by transposed 1x512x1000",
        1.6,
        "one row reads a matrix in columns once, at the speed of the last cache",
    ),
    Known("batch * open", 1.35, "products of open sizes have clamped tiles"),
    Known(
        "distance *",
        1.75,
        "two instructions for a squared difference, more exact than a product of the points",
    ),
    Known("pool max k101 *", 1.7, "the window is divided into powers of two, each a pass"),
    Known("conv g1 k9 *", 1.3, "many taps of few channels"),
    Known("conv dilated *", 1.35, "taps that lie apart share no line of the cache"),
    Known("conv s2 *", 1.35, "every second element of a row is taken by shuffles"),
    Known("transposed k*", 1.5, "images of open sizes are turned before and behind the product"),
    Known("transposed convolution *", 1.3, "many taps of few channels"),
    Known("grid sample *", 1.3, "few points of many channels"),
    Known("attention 8x50x64 *", 1.25, "heads of 16 fill a vector each"),
    Known("dilated by *", 1.3, "taps that lie apart share no line of the cache"),
    Known("compress *open", 1.3, "rows of open length are kept by masked vectors"),
    Known(
        "instance norm 64@64, open", 1.8, "planes of open size are read twice from the second cache"
    ),
    Known("convolution 3-* by 2*", 1.5, "three channels fill few lanes"),
    Known("col2im *", 1.6, "blocks are added window by window"),
    Known("nearest 3x *", 1.35, "stores of 50 MB"),
    Known("linear 1/3 *", 1.5, "every third element of a row is taken by shuffles"),
    Known("cumsum *", 1.4, "rows of 2 KB are read and stored in turn"),
    Known("reflected pad *", 1.3, "rows of few elements are mirrored by shuffles"),
    Known("strings *", 3.6, "strings are walked byte by byte"),
    Known("labels of 10 strings", 2.2, "a call copies strings before it looks them up"),
)
"""The first that fits counts. Limits are for Emerald Rapids beside other work; the reasons are what the
loops say, and few of them were profiled."""

DIFFERENT: tuple[tuple[str, str], ...] = (
    (
        "* trees of 2 classes, *",
        "ONNX's reference takes the class of the greater score, ONNX Runtime looks at the second",
    ),
)
"""Names, and why results are not those of ONNX Runtime."""


def known(name: str) -> Known | None:
    """Return what is known of a case."""
    return next((row for row in SLOWER if fnmatchcase(name, row.pattern)), None)


def may_differ(name: str) -> bool:
    """Whether results of a case are known to differ."""
    return any(fnmatchcase(name, pattern) for pattern, _ in DIFFERENT)
