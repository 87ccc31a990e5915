"""Serve a bundle over HTTP: by uvicorn in one process or several, or by threads alone.

    python serve.py BUNDLE [--port N] [--how uvicorn|threads] [--processes N] [--sessions N]

In: a bundle and options. Out: a server on this machine's own address, until SIGTERM or Ctrl-C. Not
done here: HTTP (``app``, ``threads``), authentication, TLS: put a reverse proxy in front.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    found = argparse.ArgumentParser(description="serve a bundle over HTTP")
    found.add_argument("bundle")
    found.add_argument("--how", choices=("uvicorn", "threads"), default="uvicorn")
    found.add_argument("--host", default="127.0.0.1")
    found.add_argument("--port", type=int, default=8000)
    found.add_argument("--processes", type=int, default=1, help="with uvicorn")
    found.add_argument("--sessions", type=int, default=0, help="per process; 0: all processors")
    found.add_argument("--waiting", type=int, default=32, help="per process, then 503")
    found.add_argument("--timeout", type=float, default=30.0, help="seconds, then 504")
    return found


def main() -> None:
    """Serve."""
    options = parser().parse_args()
    from service import Service, Settings

    processors = len(os.sched_getaffinity(0))
    sessions = options.sessions or max(1, processors // options.processes)
    settings = Settings(options.bundle, sessions, options.waiting, options.timeout)
    listening = socket.create_server((options.host, options.port), backlog=128)
    print(f"http://{options.host}:{listening.getsockname()[1]}", flush=True)
    if options.how == "threads":
        from threads import serve

        serve(Service(settings), listening)
        return
    import uvicorn

    os.environ.update(settings.to_environment())
    uvicorn.run(
        "app:app",
        app_dir=os.path.dirname(os.path.abspath(__file__)),
        fd=listening.fileno(),
        workers=options.processes,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=int(options.timeout) + 1,
    )


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
