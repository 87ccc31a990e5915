"""The service with a thread per connection, by the standard library alone.

In: a service, a listening socket. Out: ``serve_with_threads``: responses to POST /run, GET /health, until
SIGTERM or Ctrl-C. Not done here: what a request means (``service``).

All threads call one session: as many as it has sessions run, the others wait their turn.
"""

from __future__ import annotations

import io
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any

from service import Answer, Service, length_of, no_route, too_slow

IDLE_SECONDS = 5.0  # between two requests of a connection, as uvicorn has it
LEAST_SECONDS = 0.001  # a wait without any time left says so itself
ANSWER_SECONDS = 1.0  # for what is said at the deadline


class Server(ThreadingHTTPServer):
    """Waits, when it is closed, for the threads whose requests are being answered."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, service: Service, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.service = service
        self.is_stopping = False
        self.not_yet: set[socket.socket] = set()
        """Connections whose request has not arrived as far as its headers."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own."""
        self.not_yet.add(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Take no further connection, and wait for no client that has not asked for anything."""
        self.is_stopping = True
        self.shutdown()
        for request in tuple(self.not_yet):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RD)


class Arriving(io.RawIOBase):
    """What comes on a connection, until a deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.deadline = connection, 0.0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, room: Any) -> int:
        """Wait for bytes, however few come at a time, no longer than until the deadline."""
        self._connection.settimeout(max(LEAST_SECONDS, self.deadline - time.monotonic()))
        return self._connection.recv_into(room)


class Handler(BaseHTTPRequestHandler):
    """One connection. Each request has one clock, from its first byte; after one that is refused, the
    connection ends."""

    protocol_version = "HTTP/1.1"  # the connection stays for further requests

    @property
    def its_server(self) -> Server:
        """The server that took the connection."""
        assert isinstance(self.server, Server)
        return self.server

    def setup(self) -> None:
        """Read with a deadline."""
        super().setup()
        self.arriving = Arriving(self.connection)
        self.rfile = self.reader = io.BufferedReader(self.arriving)

    def handle_one_request(self) -> None:
        """Wait for a request, which need not come, and answer it."""
        self.its_server.not_yet.add(self.connection)
        self.arriving.deadline = time.monotonic() + IDLE_SECONDS
        if self.its_server.is_stopping or not self._comes():
            self.close_connection = True
            return
        seconds = self.its_server.service.settings.timeout_seconds
        self.arriving.deadline = time.monotonic() + seconds
        super().handle_one_request()

    def _comes(self) -> bool:
        try:
            return bool(self.reader.peek(1))
        except OSError:
            return False

    def parse_request(self) -> bool:
        """Read the headers."""
        try:
            return super().parse_request()
        finally:
            self.its_server.not_yet.discard(self.connection)

    def finish(self) -> None:
        """End the connection; one that never sent headers is not waited for any more."""
        self.its_server.not_yet.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        """Answer GET /health."""
        self._answer()

    def do_POST(self) -> None:
        """Answer POST /run."""
        self._answer()

    def _answer(self) -> None:
        try:
            answer = self._found()
        except Exception as error:  # noqa: BLE001  # each has its answer
            answer = Service.answer_to(error)
            if answer.status == 500:
                print(f"a request failed: {error!r}", file=sys.stderr, flush=True)
        left = self.arriving.deadline - time.monotonic()
        self.connection.settimeout(max(ANSWER_SECONDS, left))  # of all that is sent
        # What is refused, and a health, may have a body that nobody has read.
        ends = answer.status != 200 or self.command != "POST" or self.its_server.is_stopping
        try:
            self.send_response(answer.status)
            headers = dict(answer.headers) | ({"connection": "close"} if ends else {})
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
            if answer.status != 200:
                self._read_on()
        except OSError:
            self.close_connection = True  # the client has gone, or does not read

    def _read_on(self) -> None:
        """Take for a moment what is still coming of a request that is refused: to close over it
        would take the answer away from the client."""
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        end = time.monotonic() + ANSWER_SECONDS
        self.connection.settimeout(ANSWER_SECONDS)
        while time.monotonic() < end and self.connection.recv(1 << 16):
            pass

    def _found(self) -> Answer:
        service, route = self.its_server.service, (self.command, self.path)
        if route == ("GET", "/health"):
            return service.health()
        if route != ("POST", "/run"):
            raise no_route(*route)
        lengths = self.headers.get_all("content-length", [])
        # One length, or it is not known where the next request begins.
        length = length_of("" if "transfer-encoding" in self.headers else ",".join(lengths))
        with service.admitted(length):
            try:
                body = self.rfile.read(length)
            except TimeoutError:
                raise too_slow(service.settings.timeout_seconds) from None
            inputs = service.decode(body)
            left = max(LEAST_SECONDS, self.arriving.deadline - time.monotonic())
            return service.encode(service.session.run(inputs, left))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Say nothing of requests that went well."""


def serve_with_threads(service: Service, listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; then answer what was accepted, and close the session. SIGHUP
    brings the weights of the file that is there then."""
    with Server(service, listening) as server:

        def stop(_number: int, _frame: FrameType | None) -> None:
            threading.Thread(target=server.stop).start()  # which waits for this thread

        def reload(_number: int, _frame: FrameType | None) -> None:
            threading.Thread(target=service.reload).start()  # calls go on

        signal.signal(signal.SIGHUP, reload)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        server.serve_forever()
    service.session.close()
