"""The service as an ASGI application: ``uvicorn app:app``, or any other ASGI server.

In: ASGI events; settings from the environment (``service.Settings``). Out: responses: POST /run,
GET /health. Not done here: what a request means (``service``).

A call runs in a thread of the session while the event loop reads and writes other requests. A body
and its call have one deadline, which the server may give (``connection``). Where the client goes
away, its call ends. When the server shuts down, it waits for the requests that it
has accepted, and then the session is closed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from service import Answer, Service, Settings, length_of, no_route, too_slow

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
LEAST_SECONDS = 0.001  # a call without any time left says so itself
_LOG = logging.getLogger("uvicorn.error")


class App:
    """An ASGI application, whose service is there between startup and shutdown."""

    def __init__(self) -> None:
        self.service: Service | None = None

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Serve one connection's request, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            answer = await self._answer(scope, receive)
            if answer is not None:
                headers = [(name.encode(), value.encode()) for name, value in answer.headers]
                start = {"type": "http.response.start", "status": answer.status, "headers": headers}
                await send(start)
                await send({"type": "http.response.body", "body": answer.body})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Load before the first request, close after the last one."""
        await receive()
        try:
            settings = Settings.from_environment()
            self.service = await asyncio.to_thread(Service, settings)
        except Exception as error:  # noqa: BLE001  # the server says it, and ends
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        loop, service = asyncio.get_running_loop(), self.service
        loop.add_signal_handler(signal.SIGHUP, lambda: loop.run_in_executor(None, service.reload))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await asyncio.to_thread(self.service.session.close)
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Event, receive: Receive) -> Answer | None:
        """Return the answer to a request; None where nobody is there any more."""
        assert self.service is not None
        route = scope["method"], scope["path"]
        try:
            if route == ("GET", "/health"):
                return self.service.health()
            if route == ("POST", "/run"):
                return await self._run(self.service, scope, receive)
            raise no_route(*route)
        except Exception as error:  # noqa: BLE001  # each has its answer
            answer = Service.answer_to(error)
            if answer.status == 500:
                _LOG.exception("a request failed")
            return answer

    async def _run(self, service: Service, scope: Event, receive: Receive) -> Answer | None:
        # Of a body in chunks nobody knows the length before.
        length = dict(scope["headers"]).get(b"content-length", b"0")
        clock, seconds = asyncio.get_running_loop().time, service.settings.timeout_seconds
        deadline = scope.get("deadline", clock() + seconds)
        with service.admitted(length_of(length.decode("latin-1"))):
            try:
                async with asyncio.timeout_at(deadline):
                    body = await self._body(service, receive)
            except TimeoutError:
                raise too_slow(seconds) from None
            if body is None:
                return None
            inputs = service.decode(body)
            left = max(LEAST_SECONDS, deadline - clock())
            call = asyncio.ensure_future(service.session.arun(inputs, timeout=left))
            gone = asyncio.ensure_future(receive())  # the next event is that the client leaves
            gone.add_done_callback(lambda _: call.cancel())
            try:
                return service.encode(await call)
            except asyncio.CancelledError:
                if gone.done():
                    return None
                raise
            finally:
                gone.cancel()

    async def _body(self, service: Service, receive: Receive) -> bytes | None:
        """Return the body of a request; None where the client leaves before."""
        body = bytearray()
        more = True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return None
            body += event.get("body", b"")
            more = event.get("more_body", False)
            service.require_size("the body", len(body))
        return bytes(body)


app = App()
