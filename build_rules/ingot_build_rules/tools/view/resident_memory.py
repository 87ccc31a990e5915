"""How much memory a bundle takes in a process that has the loader alone.

In: a bundle, inputs. Out: ``ResidentMemory``. Not done here: what is planned (``evaluate_call``).

A process of its own measures, since freed memory of the command would hide what a load needs. It
runs this module: Linux tells a process its resident memory and, once it has been asked to begin
anew, the peak (proc_pid_status(5), proc_pid_clear_refs(5)).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ingot_compiler.ir.errors import BuildError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session

_CALLS = 3


@dataclass(frozen=True, slots=True)
class ResidentMemory:
    """Bytes that a load adds to the process, and the peak of calls beyond that; None where the
    system does not say."""

    load_bytes: int
    peak_beyond_load_bytes: int | None


def resident_memory(
    bundle: str, feed: dict[str, Any], threads: int, variant: str, devices: dict[str, str]
) -> ResidentMemory:
    """Load ``variant`` of a bundle in another process on the same ``devices``, and call it three
    times.

    Raises:
        BuildError: the process was ended, or could not start.
    """
    from ingot_runtime.npz import write_npz

    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        inputs = os.path.join(folder, "inputs.npz")
        with open(inputs, "wb") as file:
            write_npz(file, feed)
        words = (os.path.abspath(bundle), inputs, str(threads), variant, json.dumps(devices))
        done = subprocess.run(
            [sys.executable, "-m", __name__, *words], capture_output=True, text=True, check=False
        )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        do = "free memory, or use smaller inputs"
        raise BuildError("the process that measures memory ended early", bundle, why, do)
    return ResidentMemory(**json.loads(done.stdout))


def main() -> None:
    """Measure, and write what was found to standard output."""
    import ingot_runtime
    from ingot_runtime.npz import read_npz

    bundle, inputs, threads, variant, devices = sys.argv[1:]
    feed = read_npz(inputs)
    before = _status_bytes("VmRSS")
    session = ingot_runtime.load(
        bundle, threads=int(threads), devices=json.loads(devices), variant=variant
    )
    loaded = _status_bytes("VmRSS")
    peak = _peak_of_calls(session, feed)
    beyond = None if peak is None else max(0, peak - loaded)
    found = ResidentMemory(max(0, loaded - before), beyond)
    sys.stdout.write(json.dumps(asdict(found)))


def _peak_of_calls(session: Session, feed: dict[str, Any]) -> int | None:
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:  # a container may forbid it
        return None
    for _ in range(_CALLS):
        session.run(feed)
    return _status_bytes("VmHWM")


def _status_bytes(name: str) -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        (line,) = [line for line in file if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
