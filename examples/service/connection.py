"""A connection of uvicorn's that nobody can hold for ever: a request has one deadline, from its first
byte to the last one of its answer.

In: bytes from a client. Out: what uvicorn makes of them, with the deadline for the application; an
end of the connection where it passes. Not done here: the deadline of body and call (``app``), which
has an answer.

A client that sends its headers slowly, or does not read its answer, would keep the connection, and
the server's shutdown, waiting.
"""

from __future__ import annotations

import asyncio
from typing import Any

from service import Settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ANSWER_SECONDS = 1.0  # for what is said at the deadline
HEAD_BYTES_MAX = 64 << 10


class Connection(HttpToolsProtocol):
    """One connection, with a clock for the request that is on it."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._seconds = Settings.from_environment().timeout_seconds
        self._application, self.app = self.app, self._timed
        self._deadline, self._is_busy, self._has_answered = 0.0, False, False
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = -1  # of headers that are not complete, or -1

    async def _timed(self, scope: Any, receive: Any, send: Any) -> None:
        if not self._is_busy:  # it came together with the one before
            self._begin()
        scope["deadline"] = self._deadline
        await self._application(scope, receive, send)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first byte."""
        super().connection_made(transport)
        self._begin()
        self._is_busy = False

    def data_received(self, data: bytes) -> None:
        """Take bytes; the first ones of a request start its clock."""
        if not self._is_busy:
            self._begin()
        super().data_received(data)
        if self._head_bytes >= 0:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.send_400_response(f"The headers have more than {HEAD_BYTES_MAX} bytes.")

    def on_message_begin(self) -> None:
        """Begin to count the bytes of headers, which are kept until they are complete."""
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count no longer."""
        self._head_bytes = -1
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Be ready for the next request; the answer may still be on its way."""
        self._is_busy, self._has_answered = False, True
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the clock."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_busy = True
        self._deadline = self.loop.time() + self._seconds
        self._timer = self.loop.call_at(self._deadline + ANSWER_SECONDS, self._end)

    def _end(self) -> None:
        """Cut the connection off, unless it waits for another request."""
        if not self._has_answered or self._is_busy or self.transport.get_write_buffer_size():
            self.transport.abort()
