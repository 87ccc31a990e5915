"""Arrays in an ``.npz`` file, which anybody may have written.

In: a path, or a file's bytes; arrays by name. Out: arrays by name; a file that is written. Not done
here: whether the arrays fit a bundle (the session checks). The first import of numpy.

Not by ``numpy.load``, which takes a header's word for the size of an array. Nor does numpy read a
header: it would warn of odd ones, and nobody can silence warnings of one thread alone.
"""

import io
import math
import os
import re
import zipfile

import numpy as np

from .errors import BundleError, InputError, LimitError, ResourceError
from .format.file import open_without_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    Array = np.ndarray

_ENDING = ".npy"
_ENTRY = rb"'(descr|fortran_order|shape)' ?: ?('[^'\\]{1,40}'|True|False|\([\d, ]{0,1000}\))"
_HEADER = re.compile(rb"\s*\{ ?%s, ?%s, ?%s ?,? ?\}\s*" % (_ENTRY, _ENTRY, _ENTRY))
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
_HEADER_BYTES_MAX = 10_000
_DTYPE = re.compile(r"[<>|=]?[biufcmMOSUV?]\d{0,9}(\[[a-zA-Z0-9]{1,20}\])?")
_MEMBERS_MAX = 10_000
_MEMBER = b"PK\x01\x02"
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
        with os.fdopen(open_without_waiting(path), "rb") as file:
            return _arrays(file, os.fstat(file.fileno()).st_size)
    except Exception as error:  # a dozen kinds of exceptions mean one thing: no archive of arrays
        raise _read_error(error, path, f"cannot read inputs from {path!r}") from error


def read_npz_bytes(content: "bytes | bytearray", max_bytes: int) -> "dict[str, Array]":
    """Read all arrays of a file's bytes, which may come from a stranger. Several threads may do so
    at once.

    Raises:
        LimitError: the arrays would take more than ``max_bytes``. InputError: no archive of arrays.
        ResourceError: no memory for them.
    """
    where = "the inputs"
    try:
        if content.count(_MEMBER) > _MEMBERS_MAX:
            raise ValueError(f"more than {_MEMBERS_MAX} arrays")
        return _arrays(io.BytesIO(content), len(content), max_bytes)
    except LimitError:
        raise
    except Exception as error:
        raise _read_error(error, where, "the inputs are no .npz file") from error


def _read_error(error: Exception, where: str, what: str) -> BundleError:
    if isinstance(error, InputError):
        return InputError(error.what, where, error.why, error.do)
    if isinstance(error, MemoryError):
        why = str(error) or "the system refused memory"
        return ResourceError("not enough memory for the inputs", where, why, "free memory")
    refused = getattr(error, "strerror", None)  # by the system
    why = refused or f"{type(error).__name__}: {error}"
    return InputError(what, where, why, "check the path and its permissions" if refused else _DO)


def _arrays(
    file: "IO[bytes]", size_bytes: int, max_bytes: "int | None" = None
) -> "dict[str, Array]":
    if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
        raise ValueError("one array, not an archive of arrays by name")
    arrays: dict[str, Array] = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        total_bytes = sum(info.file_size for info in members)
        if max_bytes is not None and total_bytes > max_bytes:
            why = f"expected at most {max_bytes} bytes, got {total_bytes}"
            raise LimitError("the arrays are too large", "the inputs", why, "send smaller inputs")
        for info in members:
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
    buffer, at = flat.data, 0
    while count := member.readinto(buffer[at:]):
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
    if version not in _LENGTH_BYTES:
        raise ValueError(f"array {name!r}: its header has version {version}")
    length = int.from_bytes(member.read(_LENGTH_BYTES[version]), "little")
    text = member.read(length) if length <= _HEADER_BYTES_MAX else b""
    found = _HEADER.fullmatch(text)
    entries = dict(zip(found.groups()[::2], found.groups()[1::2], strict=True)) if found else {}
    descr = entries.get(b"descr", b"").decode("latin-1").strip("'")
    order, shape = entries.get(b"fortran_order", b""), entries.get(b"shape", b"")
    if not _DTYPE.fullmatch(descr) or order not in (b"True", b"False") or shape[:1] != b"(":
        raise ValueError(f"array {name!r}: its header is none of an array: {text[:60]!r}")
    sizes = [size.strip() for size in shape.strip(b"()").split(b",")]
    sizes = sizes[:-1] if not sizes[-1] else sizes
    return tuple(map(int, sizes)), order == b"True", np.dtype(descr)


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
