"""What the cache costs: microseconds per blob, record and lease, nanoseconds per byte.

In: nothing, or a folder to work in. Out: one line per operation: median and 90th percentile. Not
done here: judging them.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.collect import gc
from ingot_artifacts.store.scrub import verify
from ingot_artifacts.store.stats import stat
from ingot_runtime.format.msgpack_canonical import pack

COUNT = 3000
LARGE_BYTES = 64 << 20


def measure(name: str, call: Callable[[int], object]) -> None:
    """Time each of COUNT calls."""
    seconds: list[float] = []
    for number in range(COUNT):
        started = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - started)
    seconds.sort()
    print(
        f"{name:32} {seconds[COUNT // 2] * 1e6:8.1f} us   p90 {seconds[COUNT * 9 // 10] * 1e6:8.1f} us"
    )


def once(name: str, call: Callable[[], object], size_bytes: int = 0) -> None:
    """Time one call."""
    started = time.perf_counter()
    call()
    seconds = time.perf_counter() - started
    each = (
        f"{seconds / size_bytes * 1e9:8.2f} ns/byte" if size_bytes else f"{seconds * 1e3:8.1f} ms"
    )
    print(f"{name:32} {each}")


def main() -> None:
    """Measure in a temporary folder below the first argument."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        cache = Cache(folder)
        once("open the index, with its import", lambda: cache.index)
        contents = [os.urandom(1000) for _ in range(COUNT)]
        digests = [hashlib.sha256(content).hexdigest() for content in contents]
        keys = [hashlib.sha256(content + b"key").digest() for content in contents]
        values = [
            pack({"refs": [digest], "rule": "rule", "ingredients": {"one": digest}})
            for digest in digests
        ]
        measure("put 1 kB", lambda number: cache.blobs.put(contents[number]))
        measure("put 1 kB that is there", lambda number: cache.blobs.put(contents[number]))
        measure("get 1 kB", lambda number: cache.blobs.get(digests[number]))
        measure("has", lambda number: cache.blobs.has(digests[number]))
        measure("index put", lambda number: cache.index.put(keys[number], values[number]))
        once(
            f"index put_many, {COUNT}",
            lambda: cache.index.put_many(list(zip(keys, values, strict=True))),
        )
        measure("index get", lambda number: cache.index.get(keys[number]))
        once(f"touch, {COUNT}", lambda: cache.index.touch(keys))
        measure("lease", lambda number: cache.leases.try_acquire(keys[number]))
        measure("release", lambda number: cache.leases.release(keys[number]))
        large = os.urandom(1 << 20) * (LARGE_BYTES >> 20)
        digest = cache.blobs.put(large)
        once("get 64 MiB, verified", lambda: Cache(folder).blobs.get(digest), LARGE_BYTES)
        cache.blobs.get(digest)
        once("get 64 MiB, again", lambda: cache.blobs.get(digest), LARGE_BYTES)
        once("stat", lambda: stat(cache))
        once("verify", lambda: verify(cache))
        once("gc to half", lambda: gc(cache, stat(cache).size_bytes // 2))
        cache.close()


if __name__ == "__main__":
    main()
