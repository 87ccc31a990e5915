"""Call the service from several threads, and print how long that took.

    python client.py URL INPUTS.npz [--callers N] [--requests N]

In: a URL, an .npz file of inputs. Out: requests per second, median and 99th percentile. Not done
here: checking the numbers. A refusal (503) is tried again, as its answer says.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

START_SECONDS_MAX = 20


def connected(url: str) -> http.client.HTTPConnection:
    """Return a connection to a server, which may still be starting."""
    address = urlsplit(url)
    if address.scheme != "http" or not address.hostname:
        sys.exit(f"error: {url!r} is no address of a service; expected http://HOST:PORT")
    end = time.monotonic() + START_SECONDS_MAX
    while True:
        connection = http.client.HTTPConnection(address.hostname, address.port)
        try:
            connection.connect()
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"error: nobody answers at {url}: {error}")
            time.sleep(0.05)
        else:
            return connection


def call(url: str, body: bytes, count: int) -> list[float]:
    """Send that many requests one after the other; return the seconds of each."""
    connection, times = connected(url), list[float]()
    while len(times) < count:
        start = time.perf_counter()
        connection.request("POST", "/run", body)
        response = connection.getresponse()
        answer = response.read()
        if response.status == 503:
            time.sleep(float(response.headers["retry-after"]))
            continue
        if response.status != 200:
            sys.exit(f"{response.status}: {answer.decode()}")
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    """Call and print."""
    parser = argparse.ArgumentParser(description="call a service from several threads")
    parser.add_argument("url")
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--requests", type=int, default=100, help="of each caller")
    options = parser.parse_args()
    try:
        body = options.inputs.read_bytes()
    except OSError as error:
        sys.exit(f"error: cannot read {options.inputs}: {error.strerror}")
    connected(options.url).close()
    start = time.perf_counter()
    with ThreadPoolExecutor(options.callers) as threads:
        calls = [
            threads.submit(call, options.url, body, options.requests)
            for _ in range(options.callers)
        ]
        times = sorted(seconds for each in calls for seconds in each.result())
    rate = len(times) / (time.perf_counter() - start)
    median, slow = statistics.median(times), times[int(0.99 * (len(times) - 1))]
    print(f"{len(times)} requests, {rate:.0f} per second, ", end="")
    print(f"median {median * 1e3:.1f} ms, p99 {slow * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
