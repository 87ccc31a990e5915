"""The speed and size table: what must be, what is measured here and now.

In: a folder of models (``NAME/model.onnx``, ``inputs.npz``, ``outputs.npz``), an interpreter with
onnxruntime. Out: a table; the exit code is 1 when a row fails. Not done here: single kernels
(``bench_kernels``).

    python tests/benchmarks/bench_speed_table.py --models FOLDER [--peer-python PYTHON] [--rounds N]
    [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section
from tests.benchmarks.peers.turns import interleave
from tests.benchmarks.process_tree import run_measured

from ingot_build_rules.tools.view.peer import Peer

COMPILED = ("resnet50", "mobilenet_v2", "bert_base")
DUELS = ("resnet50", "bert_base")
RATIO_MAX, ERROR_MAX = 1.25, 1e-4
COMPILE_SECONDS_MAX, IMPORT_SECONDS_MAX, COLD_SECONDS_MAX, CALL_SECONDS_MAX = 15, 25e-3, 40e-3, 6e-6
WHEEL_BYTES_MAX = 100_000
REPEATS = 15


@dataclass(frozen=True, slots=True)
class Row:
    """One line: ``measured`` must not exceed ``must``; both in ``unit``."""

    what: str
    must: float
    measured: float
    unit: str

    @property
    def passed(self) -> bool:
        """Whether the promise holds."""
        return self.measured <= self.must

    def cells(self) -> tuple[str, ...]:
        """The texts of the table's columns."""
        verdict = "ok" if self.passed else "FAILS"
        return (
            self.what,
            f"<= {self.must:.4g} {self.unit}",
            f"{self.measured:.4g} {self.unit}",
            verdict,
        )


@dataclass(frozen=True, slots=True)
class Setting:
    """Where models, bundles and peers are."""

    models: str
    folder: str
    peer_python: str
    rounds: int

    def model(self, name: str, file: str = "model.onnx") -> str:
        """Path of a file of a model."""
        return os.path.join(self.models, name, file)

    def bundle(self, name: str) -> str:
        """Path of a model's bundle."""
        return os.path.join(self.folder, f"{name}.ingot")

    def cache(self, name: str) -> str:
        """A cache in which nothing is."""
        return os.path.join(self.folder, f"cache-{name}")


def parameter_bytes(path: str) -> int:
    """f32 bytes of the parameters: the model file holds little else."""
    return os.path.getsize(path)


def compile_rows(setting: Setting) -> Iterator[Row]:
    """Seconds and peak memory of the whole process tree, cold."""
    for name in COMPILED:
        model = setting.model(name)
        command = [
            sys.executable,
            "-m",
            "ingot",
            "compile",
            model,
            "-o",
            setting.bundle(name),
            "-q",
        ]
        measured = run_measured([*command, "--cache", setting.cache(name)])
        yield Row(f"compile {name}, cold", COMPILE_SECONDS_MAX, measured.seconds, "s")
        limit = (2 * parameter_bytes(model) + 1e9) / 1e6
        yield Row(
            f"compile {name}, peak PSS of the tree", limit, measured.peak_pss_bytes / 1e6, "MB"
        )


def duel_rows(setting: Setting) -> Iterator[Row]:
    """Medians of interleaved calls beside ONNX Runtime, one thread."""
    for name in DUELS:
        inputs = setting.model(name, "inputs.npz")
        peers = [
            Peer("ingot", sys.executable, setting.bundle(name), inputs, 1),
            Peer("onnxruntime", setting.peer_python, setting.model(name), inputs, 1),
        ]
        ours, theirs = interleave(peers, setting.rounds, 0.2)
        for peer in peers:
            peer.close()
        print(
            f"{name}: ingot {ours * 1e3:.2f} ms, onnxruntime {theirs * 1e3:.2f} ms", file=sys.stderr
        )
        yield Row(f"{name}, 1 thread, by ONNX Runtime", RATIO_MAX, ours / theirs, "x")


def answer_rows(setting: Setting) -> Iterator[Row]:
    """Errors against the reference outputs; differing bits between threads and executors."""
    import ingot_runtime

    for name in COMPILED:
        inputs, expected = (
            dict(np.load(setting.model(name, file))) for file in ("inputs.npz", "outputs.npz")
        )
        outputs = [
            ingot_runtime.load(setting.bundle(name), threads=threads, executor=executor).run(inputs)
            for executor in ("aot", "vm")
            for threads in (1, 2)
        ]
        error = max(
            float(np.abs(outputs[0][key] - want).max() / np.abs(want).max())
            for key, want in expected.items()
        )
        yield Row(f"{name}, relative error", ERROR_MAX, error, "")
        different = sum(
            not np.array_equal(one[key], outputs[0][key]) for one in outputs for key in one
        )
        yield Row(f"{name}, outputs that differ over threads and executors", 0, different, "")


def loader_rows(setting: Setting) -> Iterator[Row]:
    """Import time, wheel size, cold start, memory, cost of a call."""

    def child_seconds(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    pairs = [(child_seconds("import ingot_runtime"), child_seconds("pass")) for _ in range(REPEATS)]
    extra = statistics.median(pair[0] for pair in pairs) - statistics.median(
        pair[1] for pair in pairs
    )
    yield Row(
        "import ingot_runtime, beyond an empty process", IMPORT_SECONDS_MAX * 1e3, extra * 1e3, "ms"
    )
    yield Row("loader wheel", WHEEL_BYTES_MAX / 1e3, wheel_bytes(setting.folder) / 1e3, "kB")
    cold = [child_number(_COLD, setting, "mobilenet_v2") for _ in range(REPEATS)]
    yield Row(
        "mobilenet_v2, load to outputs", COLD_SECONDS_MAX * 1e3, statistics.median(cold) * 1e3, "ms"
    )
    limit = 1.15 * parameter_bytes(setting.model("bert_base")) / 1e6 + 80
    resident = child_number(_RESIDENT, setting, "bert_base")
    yield Row("bert_base, resident while running", limit, resident / 1e6, "MB")
    yield Row(
        "a call of a trivial model, main included",
        CALL_SECONDS_MAX * 1e6,
        call_seconds(setting) * 1e6,
        "us",
    )


_COLD = """
import sys, time, numpy as np
inputs = dict(np.load(sys.argv[2]))
started = time.perf_counter()
import ingot_runtime
ingot_runtime.load(sys.argv[1]).run(inputs)
print(time.perf_counter() - started)
"""
_RESIDENT = """
import sys, numpy as np, ingot_runtime
inputs = dict(np.load(sys.argv[2]))
session = ingot_runtime.load(sys.argv[1])
for _ in range(3):
    session.run(inputs)
for line in open("/proc/self/smaps_rollup"):
    if line.startswith("Rss:"):
        print(int(line.split()[1]) * 1024)
"""


def child_number(code: str, setting: Setting, name: str) -> float:
    """Run a piece of code in a fresh process; return the number that it prints."""
    command = [sys.executable, "-c", code, setting.bundle(name), setting.model(name, "inputs.npz")]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def wheel_bytes(folder: str) -> int:
    """Build the loader's wheel; return its size."""
    runtime = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runtime")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        folder,
        runtime,
    ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    (wheel,) = [name for name in os.listdir(folder) if name.endswith(".whl")]
    return os.path.getsize(os.path.join(folder, wheel))


def call_seconds(setting: Setting) -> float:
    """Median of a whole ``session.run`` of a model that adds four numbers; its ``main`` takes about
    0.1 us."""
    import ingot
    import ingot_runtime

    tensor = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "trivial",
        [tensor],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    path = setting.bundle("trivial")
    ingot.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])).save(path)
    session, inputs = ingot_runtime.load(path), {"x": np.ones(4, np.float32)}
    return statistics.median(
        _seconds_per_call(lambda: session.run(inputs), 2000) for _ in range(REPEATS)
    )


def _seconds_per_call(call: Callable[[], object], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - started) / count


def main() -> int:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", required=True, metavar="FOLDER")
    parser.add_argument(
        "--peer-python",
        default=sys.executable,
        metavar="PYTHON",
        help="interpreter with onnxruntime",
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    add_page_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        setting = Setting(arguments.models, folder, arguments.peer_python, arguments.rounds)
        rows = [
            row
            for part in (compile_rows, answer_rows, duel_rows, loader_rows)
            for row in part(setting)
        ]
    if arguments.page:
        write_section(("what", "required", "measured", ""), (row.cells() for row in rows))
    if arguments.json:
        print(
            json.dumps(
                [
                    {"what": row.what, "must": row.must, "measured": row.measured, "unit": row.unit}
                    for row in rows
                ]
            )
        )
    else:
        cells = [("what", "must", "measured", ""), *(row.cells() for row in rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(4)]
        for row in cells:
            print(
                "  ".join(
                    cell.ljust(width) for cell, width in zip(row, widths, strict=True)
                ).rstrip()
            )
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
