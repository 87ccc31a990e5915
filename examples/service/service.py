"""What a service around one bundle does, whoever speaks HTTP for it: admit, decode, run, encode.

In: settings, request bodies. Out: ``Service``, ``Answer``. Not done here: HTTP (``app`` for ASGI
servers, ``threads`` for a server with a thread per connection).

A request is an .npz file of the inputs, its answer an .npz file of the outputs.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import ingot_runtime
from ingot_runtime.npz import read_npz_bytes, write_npz

Arrays = Mapping[str, npt.NDArray[np.generic]]

# A call's errors that are no fault of the service -> HTTP status
_STATUSES = {
    ingot_runtime.InputError: 400,
    ingot_runtime.LimitError: 413,
    ingot_runtime.TimedOutError: 504,
    ingot_runtime.BusyError: 503,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """`waiting_max`: callers beyond those whose calls run, before further ones are refused;
    `timeout_seconds`: of a request, from its first byte to the last one of its answer."""

    bundle: str
    sessions: int
    waiting_max: int = 32
    timeout_seconds: float = 30.0
    body_bytes_max: int = 64 << 20

    def to_environment(self) -> dict[str, str]:
        """Return variables from which a worker process reads the settings."""
        return {f"SERVICE_{name.upper()}": str(getattr(self, name)) for name in self.__slots__}

    @staticmethod
    def from_environment() -> Settings:
        """Read what `to_environment` gave."""
        values = {name: os.environ[f"SERVICE_{name.upper()}"] for name in Settings.__slots__}
        return Settings(
            values["bundle"],
            int(values["sessions"]),
            int(values["waiting_max"]),
            float(values["timeout_seconds"]),
            int(values["body_bytes_max"]),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and type of an HTTP response."""

    status: int
    body: bytes
    content_type: str = "application/json"

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of the response."""
        found = [("content-type", self.content_type), ("content-length", str(len(self.body)))]
        found += [("retry-after", "1")] if self.status == 503 else []
        # The rest of a body that is late is not waited for.
        return [*found, ("connection", "close")] if self.status == 408 else found


class RefusedError(Exception):
    """A request that is not run: what is wrong, where, why (expected and got), what to do."""

    def __init__(self, status: int, what: str, where: str, why: str, do: str) -> None:
        super().__init__(what)
        parts = {"what": what, "where": where, "why": why, "do": do}
        self.answer = Answer(status, json.dumps({"error": parts}).encode())


def no_route(method: str, path: str) -> RefusedError:
    """Return the error for what the service does not have."""
    why = "there are POST /run and GET /health"
    return RefusedError(404, f"no {method} {path}", path, why, "post the inputs to /run")


def length_of(text: str) -> int:
    """Return the number in a header ``content-length``."""
    if text.isascii() and text.isdigit():
        return int(text)
    why, do = f"expected bytes in content-length, got {text or 'nothing'!r}", "send the length"
    raise RefusedError(400, "the length of the body is not known", "the headers", why, do)


def too_slow(seconds: float) -> RefusedError:
    """Return the error for a request that has not arrived before its deadline."""
    why, do = f"expected all of it within {seconds} seconds", "send it faster, or a smaller one"
    return RefusedError(408, "the request takes too long to arrive", "the body", why, do)


class Service:
    """One loaded bundle with its counts."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.session = ingot_runtime.load(settings.bundle, sessions=settings.sessions)
        self._lock = threading.Lock()
        self._counts = {"running_or_waiting": 0, "served": 0, "refused": 0}

    def reload(self) -> None:
        """Go on with the weights of the file that has the bundle's path now, such as a fine-tune; say
        so, or why the old ones stay. Requests are answered meanwhile."""
        try:
            self.session.swap_weights(self.settings.bundle)
            said = f"serves {self.session.digest}"
        except ingot_runtime.BundleError as error:
            said = f"goes on with the old weights\nerror: {error}"
        print(said, file=sys.stderr, flush=True)

    @contextmanager
    def admitted(self, body_bytes: int) -> Generator[None, None, None]:
        """Count a request in and out; ``RefusedError`` where it is too large, or one too many."""
        self.require_size("the body", body_bytes)
        with self._lock:
            is_full = self._counts["running_or_waiting"] >= (
                self.settings.sessions + self.settings.waiting_max
            )
            self._counts["refused" if is_full else "running_or_waiting"] += 1
        if is_full:
            why = f"{self.settings.sessions} run, and {self.settings.waiting_max} may wait"
            do = "try again in a second"
            raise RefusedError(503, "too many requests are waiting", "POST /run", why, do)
        try:
            yield
        finally:
            with self._lock:
                self._counts["running_or_waiting"] -= 1
                self._counts["served"] += 1

    def require_size(self, what: str, size_bytes: int) -> None:
        """Raise ``RefusedError`` for more bytes than a body may have."""
        most = self.settings.body_bytes_max
        if size_bytes > most:
            why, do = f"expected at most {most} bytes, got {size_bytes}", "send smaller inputs"
            raise RefusedError(413, f"{what} is too large", "the body", why, do)

    def health(self) -> Answer:
        """Return which bundle is served, and the counts."""
        told = {"digest": self.session.digest, "sessions": self.settings.sessions, **self._counts}
        return Answer(200, json.dumps(told).encode())

    def decode(self, body: bytes) -> Arrays:
        """Return the arrays of an .npz file that does not unpack into more than a body may have."""
        try:
            return read_npz_bytes(body, self.settings.body_bytes_max)
        except ingot_runtime.InputError as error:
            what, do = (
                "the body is no .npz file",
                "send what numpy.savez writes, an array per input",
            )
            raise RefusedError(400, what, "the body", error.why, do) from error

    @staticmethod
    def encode(outputs: Arrays) -> Answer:
        """Return the arrays as an .npz file."""
        file = io.BytesIO()
        write_npz(file, dict(outputs))
        return Answer(200, file.getvalue(), "application/octet-stream")

    @staticmethod
    def answer_to(error: Exception) -> Answer:
        """Return what the client is told of an error."""
        if isinstance(error, RefusedError):
            return error.answer
        for kind, status in _STATUSES.items():
            if isinstance(error, ingot_runtime.BundleError) and isinstance(error, kind):
                where, do = error.where or "POST /run", error.do or "send other inputs"
                return RefusedError(status, error.what, where, error.why, do).answer
        why, do = "the log of the service says more", "tell those who run the service"
        return RefusedError(500, "the service failed", "POST /run", why, do).answer
