"""Arrays in an ``.npz`` file, which anybody may have written.

In: a path; arrays by name. Out: arrays by name; a file that is written. Not done here: whether the
arrays fit a bundle (the session checks). The first import of numpy.

Not by ``numpy.load``, which takes a header's word for the size of an array.
"""

import math
import os
import warnings
import zipfile

import numpy as np

from .errors import InputError, ResourceError
from .format.file import open_without_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    Array = np.ndarray

_ENDING = ".npy"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# Deflate makes at most 1032 bytes of one; an archive that promises more lies, and is not given the
# memory.
_RATIOS_MAX = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1040}
_DO = "write it with numpy.savez(path, NAME=array, ...)"


def read_npz(path: str) -> "dict[str, Array]":
    """Read all arrays of a file; pickled objects are refused.

    Raises:
        InputError: no regular file, or no archive of arrays. ResourceError: no memory for them.
    """
    try:
        with os.fdopen(open_without_waiting(path), "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy and ast warn of odd headers; ours are never odd
            return _arrays(file)
    except InputError as error:
        raise InputError(error.what, path, error.why, error.do) from error
    except MemoryError as error:
        why = str(error) or "the system refused memory"
        raise ResourceError("not enough memory for the inputs", path, why, "free memory") from error
    except Exception as error:  # a dozen kinds of exceptions mean one thing: no archive of arrays
        refused = getattr(error, "strerror", None)  # by the system
        why = refused or f"{type(error).__name__}: {error}"
        do = "check the path and its permissions" if refused else _DO
        raise InputError(f"cannot read inputs from {path!r}", path, why, do) from error


def _arrays(file: "IO[bytes]") -> "dict[str, Array]":
    if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
        raise ValueError("one array, not an archive of arrays by name")
    size_bytes = os.fstat(file.fileno()).st_size
    arrays: dict[str, Array] = {}
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(_ENDING)
            if name == info.filename or name in arrays:
                why = f"expected names that end in {_ENDING}, each once, got {info.filename!r}"
                raise ValueError(why)
            ratio = _RATIOS_MAX.get(info.compress_type, 0)
            if not ratio or info.compress_size > size_bytes:
                raise ValueError(f"array {name!r}: its place in the archive is wrong")
            with archive.open(info) as member:
                assert isinstance(member, zipfile.ZipExtFile)  # its stub knows less
                arrays[name] = _array(member, name, min(info.file_size, info.compress_size * ratio))
    return arrays


def _array(member: "zipfile.ZipExtFile", name: str, member_size_bytes: int) -> "Array":
    """Read one array; its header must promise as many bytes as there are."""
    shape, is_transposed, dtype = _header(member, name)
    size_bytes = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"array {name!r}: elements of type {dtype} and shape {shape} are not read")
    if member.tell() + size_bytes != member_size_bytes:
        why = f"{dtype} of shape {shape} are not the {member_size_bytes} bytes of its file"
        raise ValueError(f"array {name!r}: {why}")
    flat = _empty(name, size_bytes)
    room, at = flat.data, 0
    while count := member.readinto(room[at:]):
        at += count
    if at != size_bytes or member.read(1):  # reading on to the end compares the checksum
        raise ValueError(f"array {name!r}: expected {size_bytes} bytes, got {at}")
    return flat.view(dtype).reshape(shape, order="F" if is_transposed else "C")


def _empty(name: str, size_bytes: int) -> "Array":
    try:
        return np.empty(size_bytes, np.uint8)
    except MemoryError:
        why = f"array {name!r}: {size_bytes} bytes are more than this machine has"
        raise ValueError(why) from None


def _header(
    member: "zipfile.ZipExtFile", name: str
) -> "tuple[tuple[int, ...], bool, np.dtype[Any]]":
    version = np.lib.format.read_magic(member)
    if version not in _HEADERS:
        raise ValueError(f"array {name!r}: its header has version {version}")
    try:
        return _HEADERS[version](member)
    except (MemoryError, RecursionError):  # of the parser, for brackets in brackets
        raise ValueError(f"array {name!r}: its header is nested too deeply") from None


def in_bits(array: "Array") -> "Array":
    """Return an array as a file has it: of types that numpy has not, the bits, as integers."""
    is_foreign = array.dtype.kind == "V" or array.dtype.isbuiltin == _OF_A_PACKAGE
    return array.view(f"u{array.itemsize}") if is_foreign else array


_OF_A_PACKAGE = 2  # what numpy says of a dtype that another package has registered


def write_npz(file: "IO[bytes]", arrays: "dict[str, Array]") -> None:
    """Write arrays by name. Not by ``numpy.savez``: a tensor may be called "file", and the types of
    ``ml_dtypes`` would be lost; their bits are written, as unsigned integers."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}{_ENDING}"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, in_bits(array), allow_pickle=False)
