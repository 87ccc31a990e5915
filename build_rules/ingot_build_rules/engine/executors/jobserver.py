"""The GNU make jobserver: how many jobs all programs below one ``make -jN`` may run together.

In: the text of ``MAKEFLAGS``. Out: ``JobServer``, which lends tokens. Not done here: jobs; reading
the environment; being a server.

A program that make starts has one token from the start, the implicit one; for each further job it
takes a byte from make's pipe or fifo and writes the same byte back when the job is done (GNU make
manual, "Job Slots").
"""

from __future__ import annotations

import os
import re
import stat
from types import TracebackType

_AUTH = re.compile(r"(?:^|\s)--jobserver-(?:auth|fds)=(?P<auth>\S+)")


class JobServer:
    """A client of make's jobserver. Not safe for several threads at once.

    Use it in a ``with`` block: whatever ends the block, every token goes back. ``warning`` is
    empty, or says why there is no server to ask; then the implicit token is the only one (``-j1``).
    """

    def __init__(self, read_fd: int | None, write_fd: int | None, warning: str = "") -> None:
        """Take over two open descriptors, the reading one without blocking; use
        ``from_makeflags``."""
        self.warning = warning
        self._read_fd, self._write_fd = read_fd, write_fd
        self._is_implicit_taken = False
        self._tokens: list[bytearray] = []
        self._pid = os.getpid()

    @classmethod
    def from_makeflags(cls, makeflags: str) -> JobServer | None:
        """Connect to the server that ``MAKEFLAGS`` names; None if it names none: the caller's own
        ``-j`` decides.

        A server that cannot be reached gives a ``warning``: make closes its pipe for a recipe that
        it does not take for a make (no ``+`` before it).
        """
        found = _AUTH.findall(makeflags.split(" -- ", 1)[0])  # variables of the command line follow
        if not found:
            return None
        try:
            return cls(*_connect(found[-1]))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            what = f"the jobserver of make is not available ({found[-1]}: {reason})"
            return cls(None, None, f"{what}; one job at a time; put + before the recipe's command")

    @property
    def fd(self) -> int | None:
        """A descriptor that becomes readable when a token may be had; None if there never will be
        one."""
        return self._read_fd

    def try_acquire(self) -> bool:
        """Take a token for one more job if there is one now; never waits."""
        if not self._is_implicit_taken:
            self._is_implicit_taken = True
            return True
        if self._read_fd is None:
            return False
        # The system writes into a list that `release_all` knows: Ctrl-C right after the call loses
        # no token.
        token = bytearray(1)
        self._tokens.append(token)
        try:
            os.readv(self._read_fd, (token,))
        except BlockingIOError:
            self._tokens.pop()
            return False
        return True

    def release(self) -> None:
        """Give back the token of one job that is done; make's tokens go first, since others wait
        for them.

        Raises:
            ValueError: no token is held.
        """
        if self._tokens:
            self._give_last()
        elif self._is_implicit_taken:
            self._is_implicit_taken = False
        else:
            raise ValueError("release of a token that is not held")

    def release_all(self) -> None:
        """Give back every token; a forked child, which has none of its own, gives nothing."""
        if self._pid != os.getpid():
            return
        while self._tokens:
            self._give_last()
        self._is_implicit_taken = False

    def __enter__(self) -> JobServer:
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give back every token and close the connection."""
        self.release_all()
        self._close()

    def _give_last(self) -> None:
        # Python hears Ctrl-C at the start of a function and after each call: between these two
        # lines it hears none.
        try:
            if self._write_fd is not None and self._tokens[-1][0]:
                os.write(self._write_fd, self._tokens[-1])
        finally:
            del self._tokens[-1]

    def _close(self) -> None:
        fds, self._read_fd, self._write_fd = (self._read_fd, self._write_fd), None, None
        for fd in fds:
            if fd is not None:
                os.close(fd)


def _connect(auth: str) -> tuple[int, int]:
    """Open the server's two ends anew, so that not waiting is a matter of ours: make and its other
    programs share the old ones.

    Raises:
        OSError: nothing is open there. ValueError: it is no pipe.
    """
    read_path, write_path = _pipe_paths(auth)
    read_fd = _open_pipe(read_path, os.O_RDONLY)
    try:
        return read_fd, _open_pipe(write_path, os.O_WRONLY)
    except BaseException:
        os.close(read_fd)
        raise


def _pipe_paths(auth: str) -> tuple[str, str]:
    if auth.startswith("fifo:"):
        path = auth.removeprefix("fifo:")
        return path, path
    numbers = re.fullmatch(r"(\d+),(\d+)", auth)
    if numbers is None:
        raise ValueError("closed" if auth.startswith("-") else "not understood")
    return f"/proc/self/fd/{numbers[1]}", f"/proc/self/fd/{numbers[2]}"


def _open_pipe(path: str, mode: int) -> int:
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        raise ValueError("not a pipe")
    return os.open(path, mode | os.O_NONBLOCK | os.O_CLOEXEC)
