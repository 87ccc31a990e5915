"""What builds of projects cost: nothing changed (ninja beside it), hits, new weights, one layer of
a hundred, Ctrl-C.

In: ``--model FILE.onnx`` for the row of new weights, ``--folder`` to work in. Out: one line per
number with its limit; status 1 if one is above. Not done here: the engine alone (``bench_engine``),
the store alone (``bench_store``).

The commands run from a copy of the packages, which nobody edits meanwhile. Projects of 1,000 and
10,000 bundles are made of ten models of two small layers: each model is compiled once, each bundle
is a file of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.measured_page import add_page_option, write_section  # noqa: E402
from tests.harness.build_harness import TARGET, Workbench, chain, model_of, new_weight  # noqa: E402

PACKAGES = ("build_rules/ingot", "build_rules/ingot_build_rules", "compiler/ingot_compiler", "artifacts/ingot_artifacts",
            "runtime/ingot_runtime")  # fmt: skip
NINJA = Path(sys.executable).with_name("ninja")
NO_OP_LIMITS_MS = {1_000: 40, 10_000: 100}
MODELS = 10
ROUNDS = 15
LAYERS = 100
ACTIVATIONS = ("Sigmoid", "Tanh", "Elu", "Softplus", "Selu")
Row = tuple[str, float, str, float | None]
"""Name, value, unit, limit."""


class Bench:
    """Commands over one folder, one copy of the code, caches of their own."""

    def __init__(self, folder: Path) -> None:
        """Copy the packages, and compile them to bytecode as an installation does."""
        self.folder, self.code = folder, folder / "code"
        for package in PACKAGES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, self.code / Path(package).name, ignore=ignored)
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(self.code)], check=True)

    def project(self, name: str, cache: str = "") -> Workbench:
        """A project in a folder of its own, over a cache of its own or a shared one."""
        return Workbench(self.folder / name, self.folder / f"cache of {cache or name}")

    def command(self, bench: Workbench, *texts: str) -> list[str]:
        """A command line on a project."""
        return [sys.executable, "-m", "ingot", "build", "--cache", str(bench.cache), *texts]

    def environment(self) -> dict[str, str]:
        """The copy of the code before all others."""
        return {**os.environ, "PYTHONPATH": str(self.code)}

    def build(self, bench: Workbench, *texts: str) -> tuple[float, dict[str, Any]]:
        """Seconds of the whole process, and its report."""
        seconds, out = timed(
            self.command(bench, "--json", *texts), bench.folder, self.environment()
        )
        return seconds, json.loads(out)


def timed(
    line: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> tuple[float, str]:
    """Run a command; return its seconds and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(
        line, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return time.perf_counter() - started, done.stdout


def ran(report: dict[str, Any]) -> dict[str, int]:
    """What ran, by rule."""
    return {name: count["ran"] for name, count in report["rules"].items() if count["ran"]}


# -- many bundles ----------------------------------------------------------------------------------


def write_many(bench: Workbench, count: int) -> None:
    """Write a project of ``count`` bundles, and a ``build.ninja`` of as many edges from the same
    models."""
    for index in range(MODELS):
        bench.write(f"m{index}.onnx", chain([4, 8 + index, 4], seed=index).SerializeToString())
    models = (f'[model.m{index}]\nsource = "m{index}.onnx"\n' for index in range(MODELS))
    bundles = (f'[bundle.b{index}]\nmodel = "m{index % MODELS}"\n' for index in range(count))
    bench.write(
        "ingot.toml", f'[defaults]\ntargets = ["{TARGET}"]\n' + "".join((*models, *bundles))
    )
    edges = (f"build out/b{index}: make m{index % MODELS}.onnx\n" for index in range(count))
    bench.write("build.ninja", "rule make\n  command = touch $out\n" + "".join(edges))


def many(run: Bench, count: int) -> Iterator[Row]:
    """A project of so many bundles: built, not changed, one bundle gone, one model changed."""
    bench = run.project(f"{count} bundles")
    write_many(bench, count)
    seconds, _ = run.build(bench, "-q")
    yield f"{count:,} bundles, first build", seconds, "s", None
    timed([str(NINJA), "--quiet"], bench.folder)
    time.sleep(2.5)  # sources that are younger than two seconds are not trusted
    run.build(bench, "-q")
    yield from no_op(run, bench, count)
    (bench.folder / "dist/b7.ingot").unlink()
    seconds, report = run.build(bench, "-q")
    assert not ran(report)
    yield f"{count:,} bundles, one is gone", seconds, "s", None
    bench.edit("m3", new_weight)
    seconds, report = run.build(bench, "-q")
    yield (
        f"{count:,} bundles, new weight in {count // MODELS:,}, {sum(ran(report).values())} actions",
        seconds,
        "s",
        None,
    )


def no_op(run: Bench, bench: Workbench, count: int) -> Iterator[Row]:
    """Whole processes, ours and ninja's in turn."""
    lines = {
        "ingot build": [sys.executable, "-m", "ingot", "build", "--cache", str(bench.cache), "-q"],
        "ninja": [str(NINJA), "--quiet"],
    }
    found: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(ROUNDS):
        for name, line in lines.items():
            seconds, _ = timed(line, bench.folder, run.environment())
            found[name].append(seconds * 1e3)
    for name, times in found.items():
        limit = NO_OP_LIMITS_MS[count] if name == "ingot build" else None
        yield (
            f"{count:,} targets, nothing changed: {name}, median of {ROUNDS}",
            statistics.median(times),
            "ms",
            limit,
        )
        yield f"{count:,} targets, nothing changed: {name}, best", min(times), "ms", None


# -- models ----------------------------------------------------------------------------------------


def convolutions(sizes: Sequence[int], side: int) -> onnx.ModelProto:
    """A chain of 3x3 convolutions and activations, each of its own number of channels: f32[1,
    sizes[0], side, side] in."""
    numbers = np.random.default_rng(1)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    for index, (width, height) in enumerate(itertools.pairwise(sizes)):
        weight = numbers.standard_normal((height, width, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        names = [f"a{index}" if index else "x", f"w{index}"]
        nodes.append(
            helper.make_node("Conv", names, [f"c{index}"], name=f"/layer{index}/Conv", pads=[1] * 4)
        )
        value = f"a{index + 1}" if index < len(sizes) - 2 else "y"
        nodes.append(helper.make_node("Relu", [f"c{index}"], [value], name=f"/layer{index}/Relu"))
    return model_of(nodes, [1, sizes[0], side, side], [1, sizes[-1], side, side], weights)


def activation(model: onnx.ModelProto, kind: str) -> None:
    """Make the activation in the middle another one."""
    model.graph.node[LAYERS + 1].op_type = kind


def layers(run: Bench) -> Iterator[Row]:
    """A model of a hundred different convolutions: cold, one layer changed; then four of them from
    a warm cache."""
    bench = run.project("layers")
    sizes = list(range(8, 8 + LAYERS + 1))
    models = {name: convolutions(sizes, 14 + index) for index, name in enumerate("abcd")}
    bench.project(models, targets=["native"])
    cold, _ = run.build(bench, "a")
    yield f"{LAYERS} layers, cold", cold, "s", None

    found: list[float] = []
    for kind in ACTIVATIONS:
        bench.edit("a", partial(activation, kind=kind))
        seconds, report = run.build(bench, "a")
        assert ran(report)["codegen"] <= 5
        found.append(seconds)
    yield (
        f"one layer of {LAYERS} changed, at most 5 kernels, median of {len(found)}",
        statistics.median(found),
        "s",
        cold / 10,
    )
    run.build(bench)
    clone = run.project("clone", "layers")
    shutil.copytree(bench.folder, clone.folder, ignore=shutil.ignore_patterns("dist", ".ingot"))
    seconds, report = run.build(clone)
    hits = sum(count["hit"] for count in report["rules"].values())
    assert not ran(report)
    yield (
        f"fresh clone, {hits:,} hits, per hit without the start of the process",
        report["seconds"] / hits * 1e3,
        "ms",
        1.0,
    )
    yield f"fresh clone, {hits:,} hits, whole process", seconds, "s", None


def interrupt(run: Bench) -> Iterator[Row]:
    """Ctrl-C while two workers compile."""
    bench = run.project("interrupted")
    bench.project({"a": chain(range(8, 108))})
    process = subprocess.Popen(
        run.command(bench, "-j2"),
        cwd=bench.folder,
        env=run.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    while "codegen" not in process.stderr.readline():
        assert process.poll() is None
    started = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    yield "Ctrl-C in a build", time.perf_counter() - started, "s", 1.0


def examples(run: Bench) -> Iterator[Row]:
    """The demonstration: three models, two targets each, one test each."""
    bench = run.project("demonstration")
    subprocess.run(
        [sys.executable, str(ROOT / "examples/project/make_models.py"), str(bench.folder)],
        check=True,
        stdout=-3,
    )
    seconds, report = run.build(bench)
    yield f"3 models, 2 targets each, cold, {sum(ran(report).values())} actions", seconds, "s", None
    clone = run.project("demonstration clone", "demonstration")
    shutil.copytree(bench.folder, clone.folder, ignore=shutil.ignore_patterns("dist", ".ingot"))
    seconds, report = run.build(clone)
    assert not ran(report)
    yield "3 models, 2 targets each, fresh clone, warm cache", seconds, "s", None


def new_weights(run: Bench, model: Path) -> Iterator[Row]:
    """Every float tensor of a model reversed: other weights with the same facts."""
    bench = run.project("weights")
    shutil.copytree(model.parent, bench.folder)
    bench.write("ingot.toml", f'[model.a]\nsource = "{model.name}"\n[bundle.a]\nmodel = "a"\n')
    cold, _ = run.build(bench)
    yield f"{model.parent.name}, cold", cold, "s", None
    path = bench.folder / model.name
    loaded = onnx.ModelProto.FromString(path.read_bytes())
    for tensor in loaded.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.size > 1:
            tensor.CopyFrom(
                numpy_helper.from_array(
                    array.ravel()[::-1].reshape(array.shape).copy(), tensor.name
                )
            )
    path.write_bytes(loaded.SerializeToString())
    seconds, report = run.build(bench)
    assert set(ran(report)) <= {"import_model", "pack_constant", "digest_weights", "bundle"}, ran(
        report
    )
    started = time.perf_counter()
    content = path.read_bytes()
    hashlib.sha256(content).hexdigest()
    (bench.folder / "copy").write_bytes((bench.folder / "dist/a.ingot").read_bytes())
    transfer = time.perf_counter() - started
    yield (
        f"{model.parent.name}, new weights, {sum(ran(report).values())} actions",
        seconds,
        "s",
        1.0 + transfer,
    )
    yield (
        f"{model.parent.name}, I/O alone: read and hash the model, copy the bundle",
        transfer,
        "s",
        None,
    )


def main() -> int:
    """Measure everything, or the parts that are named."""
    parser = argparse.ArgumentParser(description="Measure builds of projects.")
    parser.add_argument(
        "parts", nargs="*", help="many, layers, interrupt, examples, weights (default: all)"
    )
    parser.add_argument(
        "--model", type=Path, help="an ONNX file for the row of new weights, in a folder of its own"
    )
    parser.add_argument("--folder", help="where to work; 2 GB")
    add_page_option(parser)
    arguments = parser.parse_args()
    above = False
    cells: list[list[str]] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        run = Bench(Path(folder))
        parts: dict[str, Callable[[], Iterator[Row]]] = {
            "examples": lambda: examples(run),
            "layers": lambda: layers(run),
            "interrupt": lambda: interrupt(run),
            "many": lambda: (row for count in NO_OP_LIMITS_MS for row in many(run, count)),
        }
        if arguments.model is not None:
            parts["weights"] = lambda: new_weights(run, arguments.model.resolve())
        for part in arguments.parts or parts:
            for name, value, unit, limit in parts[part]():
                above |= limit is not None and value > limit
                must = "" if limit is None else f"<= {limit:.3g} {unit}"
                cells.append([name, must, f"{value:.3f} {unit}"])
                told = (
                    ""
                    if limit is None
                    else f"limit {limit:.3g} {unit}{'   ABOVE' if value > limit else ''}"
                )
                print(f"{name:78} {value:9.3f} {unit:2}   {told}".rstrip(), flush=True)
    if arguments.page:
        write_section(("what", "required", "measured"), cells)
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
