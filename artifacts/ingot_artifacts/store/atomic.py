"""Files that appear whole or not at all; those that are promised, also when the power is cut.

In: a path. Out: an open temporary file beside it that is renamed over the path at the end. Not done
here: what is written.

A rename alone may reach the disk before the bytes of the file. So a ``lasting`` file is on the disk
before it takes its name, and its name is there once ``sync_folder`` has returned: whenever the
power is cut, the old file or the new one is there, whole.
"""

import errno
import os
import secrets
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ingot_artifacts.errors import OutputError

_ADVICE = {
    errno.ENOENT: "make the folder first",
    errno.ENOTDIR: "make the folder first",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENOSPC: "free space, or choose another disk",
    errno.EDQUOT: "free space, or choose another disk",
    errno.EFBIG: "lift the limit of file sizes, or choose another disk",
    errno.EISDIR: "choose the name of a file",
    errno.ENODEV: "choose the name of a file; a device or a pipe is not replaced",
}


@contextmanager
def atomic_file(
    path: str | os.PathLike[str], *, lasting: bool = False, runs: bool = False
) -> Generator[BinaryIO]:
    """Open a temporary file for writing; rename it to `path` when the block ends well, remove it
    otherwise.

    Whoever has the old file open or mapped keeps the old content. The file's mode is what the umask
    leaves of 0666, of 0777 where the file ``runs``. With ``lasting`` its bytes are on the disk before it has its name.

    Raises:
        OutputError: no folder, no permission, no space.
    """
    target = os.path.abspath(path)
    temporary = ""
    try:
        _check_replaceable(target)
        # Named before it is made: Ctrl-C while the system makes it finds the name here, and it is
        # removed.
        temporary = _temporary_name(target)
        with open(temporary, "x+b", opener=_private) as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), (0o777 if runs else 0o666) & ~_umask())
            if lasting:
                _sync(file.fileno())
        os.replace(temporary, target)
        temporary = ""
    except OSError as error:
        raise output_error(os.fspath(path), target, error) from error
    finally:
        if temporary:
            _remove(temporary)


def _check_replaceable(path: str) -> None:
    """Refuse what a file must not take the place of: a folder, a device, a pipe.

    Raises:
        OSError: it is one.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if os.path.exists(path) and not os.path.isfile(path):
        # The rename would take /dev/null away from everybody.
        raise OSError(errno.ENODEV, "not a regular file")


def _temporary_name(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:64]}.{secrets.token_hex(8)}.part")


def sync_folders(folders: Iterable[str]) -> None:
    """Bring the names of files in folders to the disk; each folder once, however many files were
    written in it.

    Raises:
        OutputError: the disk failed.
    """
    for folder in sorted(set(map(os.path.abspath, folders))):
        try:
            _sync_folder(folder)
        except OSError as error:
            raise output_error(folder, folder, error) from error


def _sync_folder(folder: str) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # a folder that may be written and not read: nobody can sync it
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def output_error(name: str, path: str, error: OSError) -> OutputError:
    """Say in four parts why ``path``, which the user knows as ``name``, cannot be written."""
    do = _ADVICE.get(error.errno or 0, "check the path and the disk")
    return OutputError(f"cannot write {name!r}", path, error.strerror or str(error), do)


def _sync(descriptor: int) -> None:
    """Wait until what was written is on the disk, where the file system knows what that is."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _remove(path: str) -> None:
    with suppress(OSError):  # it may never have come to be, and what went wrong is told already
        os.unlink(path)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
