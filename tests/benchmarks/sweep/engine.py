"""An engine of the sweep in a process that is started anew where it ends.

In: the engine's name, an interpreter; models with their inputs beside them. Out: seconds of calls,
or an ``EngineError`` that says why there are none. Not done here: what runs there (``child``).
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import cast

_CHILD = Path(__file__).with_name("child.py")
_SECONDS_MAX = 120.0


class EngineError(Exception):
    """Why an engine has no result of a case."""


class EngineProcess:
    """One process at a time, kept from case to case."""

    def __init__(self, name: str, python: str) -> None:
        """It starts with the first case."""
        self.name = name
        self._python = python
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process: subprocess.Popen[bytes] | None = None

    def open(self, path: str) -> None:
        """Open a model and call it once; the results lie beside it."""
        error = cast("str", self._answer(path))
        if error:
            raise EngineError(error)

    def times(self, count: int) -> list[float]:
        """Return the seconds of so many calls."""
        return cast("list[float]", self._answer(count))

    def close(self) -> None:
        """End the process; the next case starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None

    def _answer(self, asked: str | int) -> object:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{json.dumps(asked)}\n".encode())
            process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        if not select.select([process.stdout], [], [], _SECONDS_MAX)[0]:
            self.close()
            raise EngineError(f"no answer within {_SECONDS_MAX:.0f} s")
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._ended()
        return json.loads(line)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [self._python, str(_CHILD), self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
            )
        return self._process

    def _ended(self) -> EngineError:
        """The end of the process: its signal, or the last that it said."""
        assert self._process is not None
        code = self._process.wait()
        self._process = None
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").strip().splitlines() or ["nothing said"]
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return EngineError(f"the process ended with {how}: {said[-1]}")
