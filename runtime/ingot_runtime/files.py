"""The few operations by which files are replaced on a device.

In: paths. Out: changes on the disk. Not done here: in which order they leave an old or a new state
whenever the power is cut (``install``, ``apply_delta``).

A layer of its own, so that tests can cut the power at each operation.
"""

import errno
import os
from stat import S_ISREG

from .errors import ResourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def new_file(path: str) -> int:
    """Make a file where no other one is, behind no link that somebody has planted; return its
    descriptor, to write by."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o666)


def is_own_file(path: str) -> bool:
    """Whether there is a file that this user has made, and that has no other name."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1


class Files:
    """Operations that change the disk. What was written lasts after ``sync``; names that were made
    or changed last after ``sync_folder``."""

    def write(self, path: str, data: bytes, at: int) -> None:
        """Write `data` into a file at an offset; at 0 the file is made, and nothing may have its
        name."""
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags) if at else new_file(path)
        try:
            os.lseek(descriptor, at, os.SEEK_SET)
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)

    def sync(self, path: str) -> None:
        """Wait until what was written to the file, or in the folder, is on the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise  # a file system that knows no such thing is no failure
        finally:
            os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, in the place of what has it."""
        os.replace(source, target)

    def link(self, target: str, path: str) -> None:
        """Make a symbolic link."""
        os.symlink(target, path)

    def write_all(self, path: str, data: "Iterable[bytes]") -> None:
        """Write what a file will have, one part behind the other, and have it on the disk."""
        at = 0
        for chunk in data:
            self.write(path, chunk, at)
            at += len(chunk)
        self.sync(path)

    def hard_link(self, path: str, name: str) -> None:
        """Give a file one more name, which nothing has."""
        os.link(path, name)

    def remove(self, path: str) -> None:
        """Remove a file, where there is one."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return


def failed(path: str, error: OSError) -> ResourceError:
    """Return the error for a disk that refused a change."""
    why = error.strerror or str(error)
    do = "free space, or check the folder, its permissions and the disk"
    return ResourceError(f"cannot write to {path!r}", path, why, do)
