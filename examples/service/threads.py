"""The service with a thread per connection, by the standard library alone.

In: a service, a listening socket. Out: ``serve_with_threads``: responses to POST /run, GET /health, until
SIGTERM or Ctrl-C. Not done here: what a request means (``service``).

All threads call one session: as many as it has sessions run, the others wait their turn.
"""

from __future__ import annotations

import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType

from service import Answer, Service, length_of, no_route


class Server(ThreadingHTTPServer):
    """Waits, when it is closed, for the threads whose requests are being answered."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, service: Service, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.service = service


class Handler(BaseHTTPRequestHandler):
    """One connection, closed after each response so that shutting down waits for no idle client."""

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
                self.log_error("%r", error)
        try:
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
        except ConnectionError:
            self.close_connection = True  # the client has gone

    def _found(self) -> Answer:
        assert isinstance(self.server, Server)
        service, route = self.server.service, (self.command, self.path)
        if route == ("GET", "/health"):
            return service.health()
        if route != ("POST", "/run"):
            raise no_route(*route)
        length = length_of(self.headers["content-length"] or "")
        with service.admitted(length):
            inputs = service.decode(self.rfile.read(length))
            return service.encode(service.session.run(inputs, service.settings.timeout_seconds))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Say nothing of requests that went well."""


def serve_with_threads(service: Service, listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; then answer what was accepted, and close the session. SIGHUP
    brings the weights of the file that is there then."""
    with Server(service, listening) as server:

        def stop(_number: int, _frame: FrameType | None) -> None:
            threading.Thread(target=server.shutdown).start()  # which waits for this thread

        def reload(_number: int, _frame: FrameType | None) -> None:
            threading.Thread(target=service.reload).start()  # calls go on

        signal.signal(signal.SIGHUP, reload)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        server.serve_forever()
    service.session.close()
