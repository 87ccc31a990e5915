"""What a service around one bundle does, whoever speaks HTTP for it: admit, decode, run, encode.

In: settings, request bodies. Out: ``Service``, ``Answer``. Not done here: HTTP (``app`` for ASGI
servers, ``threads`` for a server with a thread per connection).

A request is an .npz file of the inputs, its answer an .npz file of the outputs.
"""

from __future__ import annotations

import io
import json
import os
import threading
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import ingot_runtime

Arrays = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Settings:
    """`waiting_max`: callers beyond those whose calls run, before further ones are refused."""

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
        return [*found, ("retry-after", "1")] if self.status == 503 else found


class RefusedError(Exception):
    """A request that is not run; the argument is its answer."""

    def __init__(self, status: int, what: str, **more: str) -> None:
        super().__init__(what)
        self.answer = Answer(status, json.dumps({"error": {"what": what, **more}}).encode())


class Service:
    """One loaded bundle with its counts."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.session = ingot_runtime.load(settings.bundle, sessions=settings.sessions)
        self._lock = threading.Lock()
        self._counts = {"running_or_waiting": 0, "served": 0, "refused": 0}

    @contextmanager
    def admitted(self, body_bytes: int) -> Generator[None, None, None]:
        """Count a request in and out; ``RefusedError`` where it is too large, or one too many."""
        if body_bytes > self.settings.body_bytes_max:
            raise RefusedError(413, f"the body has more than {self.settings.body_bytes_max} bytes")
        with self._lock:
            is_full = self._counts["running_or_waiting"] >= (
                self.settings.sessions + self.settings.waiting_max
            )
            self._counts["refused" if is_full else "running_or_waiting"] += 1
        if is_full:
            raise RefusedError(503, "too many requests are waiting", do="try again in a second")
        try:
            yield
        finally:
            with self._lock:
                self._counts["running_or_waiting"] -= 1
                self._counts["served"] += 1

    def health(self) -> Answer:
        """Return which bundle is served, and the counts."""
        told = {"digest": self.session.digest, "sessions": self.settings.sessions, **self._counts}
        return Answer(200, json.dumps(told).encode())

    def decode(self, body: bytes) -> Arrays:
        """Return the arrays of an .npz file that does not unpack into more than a body may have."""
        try:
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                size_bytes = sum(member.file_size for member in archive.infolist())
            if size_bytes > self.settings.body_bytes_max:
                raise RefusedError(413, f"the arrays have {size_bytes} bytes")
            with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
                return dict(arrays)
        except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
            raise RefusedError(400, "the body is no .npz file", why=str(error)) from error

    @staticmethod
    def encode(outputs: Arrays) -> Answer:
        """Return the arrays as an .npz file."""
        file = io.BytesIO()
        np.savez(file, **outputs)  # type: ignore[arg-type]  # names are keywords
        return Answer(200, file.getvalue(), "application/octet-stream")

    @staticmethod
    def answer_to(error: Exception) -> Answer:
        """Return what the client is told of an error."""
        if isinstance(error, RefusedError):
            return error.answer
        if isinstance(error, ingot_runtime.InputError):
            return RefusedError(
                400, error.what, where=error.where, why=error.why, do=error.do
            ).answer
        if isinstance(error, ingot_runtime.TimedOutError):
            return RefusedError(504, error.what, why=error.why).answer
        if isinstance(error, ingot_runtime.BusyError):
            return RefusedError(503, error.what, why=error.why).answer
        return RefusedError(500, "the service failed").answer
