"""An engine in a process of its own that stays loaded and times calls when it is asked.

In: the engine's name or a file that opens it, an interpreter that can import it, a model or a
bundle, inputs. Out: seconds per call; a ``BuildError`` where it cannot. Not done here: what runs
there (``peer_child``), turns and ratios (``compare_peers``).
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from importlib import resources
from types import TracebackType
from typing import Any, Self, cast

from ingot_compiler.ir.errors import BuildError

INGOT = "ingot"
PEERS = ("onnxruntime", "openvino")
"""Engines that a model can be compared with."""


class Peer:
    """One process with one engine; ``version``: of the engine, as it says itself."""

    def __init__(
        self,
        name: str,
        python: str,
        path: str,
        inputs: str,
        threads: int,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Start it, load the file and call it once.

        Raises:
            BuildError: it is not installed there, or fails on the file.
        """
        request = json.dumps({"threads": threads, **(options or {})})
        code = resources.files(__package__ or "").joinpath("peer_child.py").read_text("utf-8")
        self._name = name
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [python, "-c", code, name, path, inputs, request],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        try:
            self.version = self._opened(python)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def times(self, count: int) -> list[float]:
        """Return the seconds of ``count`` calls.

        Raises:
            BuildError: the process ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{count}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        return cast("list[float]", self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def _opened(self, python: str) -> str:
        name = self._name
        opened = cast("dict[str, str]", self._answer())
        if "missing" in opened:
            why = f"{python} has no module {opened['missing']!r}"
            raise BuildError("not installed", name, why, "install it there, or name another")
        if "error" in opened:
            do = "leave this engine out"
            raise BuildError("it fails on this model", name, opened["error"], do)
        return opened["version"]

    def _answer(self) -> object:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise self._ended()
        return json.loads(line)

    def _ended(self) -> BuildError:
        """The end of the process: its signal, or the last that it said."""
        code = self._process.wait()
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").strip().splitlines() or ["nothing said"]
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        do = "leave this engine out"
        return BuildError(f"its process ended with {how}", self._name, said[-1], do)
