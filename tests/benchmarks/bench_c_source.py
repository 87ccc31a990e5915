"""A model as C, compiled by the pinned ``zig cc -O2`` for this machine, beside our machine code.

In: nothing, or a model and inputs. Out: for each form of C the median processor time of a call, its
ratio to that of the bundle's code on one thread, what a call needs. Not done here: other compilers.

    taskset -c 1 python tests/benchmarks/bench_c_source.py [MODEL.onnx INPUTS.npz] [--form F] [--runs N]

Without a model: MobileNet, width 1, 224 x 224, as ``examples/microcontroller/make_model.py`` makes
it. The networks of ``export_models.py`` have inputs beside them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.measured_page import add_page_option, write_section  # noqa: E402
from tests.c_source import export  # noqa: E402

import ingot  # noqa: E402
import ingot_runtime  # noqa: E402
from ingot_compiler.backends.c.c_forms import C_FORMS  # noqa: E402
from ingot_compiler.backends.host.zig import run_zig  # noqa: E402
from ingot_runtime.executor.numpy_dtypes import dtype_of  # noqa: E402
from ingot_runtime.format.dtypes import DTYPE_CODES  # noqa: E402

ROUND_COUNT = 15
_FLAGS = (
    "-target", "x86_64-linux-gnu", "-mcpu=native", "-O2", "-g0", "-fPIC", "-shared", "-nostdlib",
    "-fno-sanitize=all",
)  # fmt: skip


def main() -> None:
    """Print a line for each form, ``--runs`` times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("inputs", type=Path, nargs="?")
    names = [form.name for form in C_FORMS]
    parser.add_argument("--form", action="append", choices=names, help="these alone")
    parser.add_argument("--runs", type=int, default=1)
    add_page_option(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, inputs = options.model, options.inputs
        if inputs is None:
            model, inputs = _mobilenet(folder)
        with np.load(inputs) as archive:
            given = {key: archive[key] for key in archive.files}
        bundle = folder / "m.ingot"
        ingot.compile(model).save(bundle)
        with ingot_runtime.load(bundle, threads=1) as session:
            calls: dict[str, Callable[[], Any]] = {"native": lambda: session.run(given)}
            facts: dict[str, dict[str, Any]] = {}
            for form in options.form or names:
                calls[form], facts[form] = _c_call(model, folder / form, given)
            found = [_report(calls, facts) for _ in range(options.runs)]
    if options.page:
        ratios = {form: [run[form] for run in found] for form in facts}
        rows = ([f"`{form}`", _span(each)] for form, each in ratios.items())
        write_section(("form", "by our machine code"), rows)


def _span(ratios: Sequence[float]) -> str:
    least, most = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return least if least == most else f"{least} to {most}"


def _mobilenet(folder: Path) -> tuple[Path, Path]:
    script = ROOT / "examples" / "microcontroller" / "make_model.py"
    subprocess.run([sys.executable, script, "1", "224", "1000"], cwd=folder, check=True)
    return folder / "dist" / "person.onnx", folder / "dist" / "person.npz"


def _c_call(
    model: Path, folder: Path, given: dict[str, Any]
) -> tuple[Callable[[], Any], dict[str, Any]]:
    """A call of the model in C, and what it needs."""
    header = export(model, folder, "--target", folder.name, "--name", "m")
    facts: dict[str, Any] = json.loads(header.with_suffix(".json").read_text())
    sources = sorted(path.name for path in folder.glob("*.c"))
    done = run_zig(("cc", *_FLAGS, *sources, "-o", "m.so"), str(folder))
    assert done.returncode == 0, done.stderr
    run = ctypes.CDLL(str(folder / "m.so")).m_run
    taken = [np.zeros(o["shape"], dtype_of(DTYPE_CODES[o["dtype"]])) for o in facts["outputs"]]
    arrays = [np.ascontiguousarray(given[each["name"]]) for each in facts["inputs"]]
    tables = [
        (ctypes.c_void_p * len(each))(*(array.ctypes.data for array in each))
        for each in (arrays, taken)
    ]
    facts["arrays"] = arrays, taken  # as long as the call
    return lambda: run(*tables), facts


def _report(
    calls: dict[str, Callable[[], Any]], facts: dict[str, dict[str, Any]]
) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUND_COUNT):
        for name, call in calls.items():
            started = time.process_time()
            call()
            times[name].append(time.process_time() - started)
    base = statistics.median(times["native"])
    print(f"native {base * 1e3:8.2f} ms, load {os.getloadavg()[0]:.1f}")
    for name, needs in facts.items():
        seconds = statistics.median(times[name])
        ram, weights = needs["ram_bytes"], needs["weights_bytes"]
        print(f"{name:6} {seconds * 1e3:8.2f} ms, {seconds / base:.2f} x; {ram=} {weights=}")
    return {name: statistics.median(times[name]) / base for name in facts}


if __name__ == "__main__":
    main()
