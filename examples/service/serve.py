"""Serve a bundle over HTTP: by threads, or by uvicorn in one process or several.

    python serve.py BUNDLE [--port N] [--how threads|uvicorn] [--processes N] [--sessions N]

In: a bundle and options. Out: a server on this machine's own address, until SIGTERM or Ctrl-C. Not
done here: HTTP (``app``, ``threads``), authentication, TLS: put a reverse proxy in front.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import socket
import sys


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    found = argparse.ArgumentParser(description="serve a bundle over HTTP")
    found.add_argument("bundle")
    found.add_argument("--how", choices=("threads", "uvicorn"), default="threads")
    found.add_argument("--host", default="127.0.0.1")
    found.add_argument("--port", type=int, default=8000)
    found.add_argument("--processes", type=count, default=1, help="with uvicorn")
    sessions = "per process (default: four per processor)"
    found.add_argument("--sessions", type=count, help=sessions)
    found.add_argument("--waiting", type=int, default=32, help="per process, then 503")
    found.add_argument("--timeout", type=float, default=30.0, help="seconds of a request")
    return found


def main() -> None:
    """Serve, or say why not."""
    import ingot_runtime

    options = parser().parse_args()
    try:
        serve(options)
    except ingot_runtime.BundleError as error:
        sys.exit(f"error: {error}")
    except (OSError, OverflowError) as error:
        sys.exit(f"error: cannot listen on {options.host}:{options.port}\n  why: {error}")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, whose connections send each part of an answer at once. Without
    that the second part waits for the client's acknowledgement, 40 ms. asyncio sets it for sockets
    that it has made itself, not for one of which it has the number alone."""
    found = socket.create_server((host, port), backlog=128)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def serve(options: argparse.Namespace) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    from service import Service, Settings

    missing = [name for name in ("uvicorn", "httptools") if not importlib.util.find_spec(name)]
    if options.how == "uvicorn" and missing:
        do = "pip install uvicorn httptools, or --how threads"
        sys.exit(f"error: {' and '.join(missing)} cannot be imported\n  do: {do}")
    if options.how == "threads" and options.processes > 1:
        sys.exit("error: threads serve in one process\n  do: --how uvicorn, or no --processes")
    processors = len(os.sched_getaffinity(0))
    # More than compute: a processor whose call ends goes on with another, and wakes nobody first.
    sessions = options.sessions or max(1, 4 * processors // options.processes)
    settings = Settings(options.bundle, sessions, options.waiting, options.timeout)
    service = Service(settings)  # a bundle that cannot be served is refused before anybody connects
    listening = listen(options.host, options.port)
    print(f"http://{options.host}:{listening.getsockname()[1]}", flush=True)
    if options.how == "threads":
        from threads import serve_with_threads

        serve_with_threads(service, listening)
        return
    service.session.close()  # each process loads its own
    import uvicorn
    from connection import Connection

    os.environ.update(settings.to_environment())
    uvicorn.run(
        "app:app",
        app_dir=os.path.dirname(os.path.abspath(__file__)),
        fd=listening.fileno(),
        workers=options.processes,
        http=Connection,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=int(options.timeout) + 2,
    )


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
