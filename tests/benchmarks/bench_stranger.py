"""Networks on two threads while a stranger keeps one of the processors busy, beside one thread of
ours and two of other engines.

In: a folder of models (``NAME/model.onnx``, ``inputs.npz``), an interpreter with the engines. Out:
a table; the exit code is 1 where two threads of ours take more than ``OWN_MAX`` of the time of one,
or longer than the better engine. Not done here: quiet machines (``bench_zoo``), real-time priority:
there a thread that sleeps between two calls waits for a whole slice of the stranger's, 0.1 seconds,
so that who spins has two processors half of the time, and who sleeps one.

    taskset -c 0,1 python tests/benchmarks/bench_stranger.py --models FOLDER [--peer-python PYTHON]
    [--rounds N] [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section
from tests.benchmarks.peers.turns import interleave

from ingot_build_rules.tools.view.peer import PEERS, Peer

OWN_MAX = 1.1
NAMES = ("mobilenet_v2", "dlrm_mlp", "lstm_tagger", "bert_base")
SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@contextmanager
def stranger(cpu: int) -> Generator[None]:
    """A process that does nothing but use processor ``cpu``."""
    process = subprocess.Popen([sys.executable, "-c", SPIN, str(cpu)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(name: str, options: argparse.Namespace, work: str) -> tuple[float, ...]:
    """Median seconds: one thread of ours, two of ours, two of each other engine."""
    folder = os.path.join(options.models, name)
    model, inputs = os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.npz")
    bundle = os.path.join(work, f"{name}.ingot")
    subprocess.run(
        [sys.executable, "-m", "ingot", "compile", model, "-o", bundle, "-q"], check=True
    )
    peers = [Peer("ingot", sys.executable, bundle, inputs, threads) for threads in (1, 2)]
    peers += [Peer(kind, options.peer_python, model, inputs, 2) for kind in PEERS]
    with stranger(max(os.sched_getaffinity(0))):
        seconds = interleave(peers, options.rounds, 0.15)
    for peer in peers:
        peer.close()
    return tuple(seconds)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--models", required=True)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=12)
    add_page_option(parser)
    options = parser.parse_args()
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        parser.error("expected an ordinary priority, got a real-time one: leave out chrt")
    print(f"{'network':16}  1 thread  2 threads  {'  '.join(PEERS)}  by own  by better peer")
    good = True
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as work:
        for name in options.names:
            one, two, *theirs = measure(name, options, work)
            own, ratio = two / one, two / min(theirs)
            rows.append([name, f"{own:.2f}", f"{ratio:.2f}"])
            good &= own <= OWN_MAX and ratio <= 1
            times = "  ".join(f"{seconds * 1e3:9.3f}" for seconds in (one, two, *theirs))
            print(f"{name:16} {times}  {own:6.3f}  {ratio:6.3f}", flush=True)
    if options.page:
        write_section(("network", "by one thread of ours", "by the faster peer"), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
