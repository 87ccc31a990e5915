"""Models compiled with the plug-ins of ``plugin_modules``.

In: nodes, names of plug-ins. Out: compilations. Not done here: assertions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto
from tests.harness.end_to_end_harness import Feed, make_model, node, run_all_ways, tensor

from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.options.plugins import read_plugins
from ingot_build_rules.making.stages.compile_model import CompiledModel, compile_model

FOLDER = Path(__file__).parents[1] / "unit" / "plugin_modules"
EXAMPLES = Path(__file__).parents[2] / "examples" / "plugin"


def texts(*names: str) -> list[str]:
    """The plug-ins of ``good_plugins``, found where this file lies."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return [name if ":" in name else f"good_plugins:{name}" for name in names]


def chain(*ops: str) -> ModelProto:
    """Unary ops, and binary ones of the value and the input, one after the other."""
    nodes: list[NodeProto] = []
    value = "x"
    for number, op in enumerate(ops):
        operands = value if op in ("Relu", "Neg", "Tanh") else f"{value} x"
        made = "y" if number == len(ops) - 1 else f"v{number}"
        nodes.append(node(op, operands, made, name=f"/{op.lower()}{number}"))
        value = made
    return make_model(nodes, [tensor("x", ["n", 3])], [tensor("y", ["n", 3])])


def compiled(
    model: ModelProto, *names: str, targets: Sequence[str] = ("x86-64-v3",)
) -> CompiledModel:
    """A compilation in memory."""
    options = make_options(targets, plugins=read_plugins(texts(*names)))
    return compile_model(model.SerializeToString(), options)


def outputs(made: CompiledModel, path: Path, x: Sequence[float]) -> list[float]:
    """What every way of running gives for ``n`` rows that begin with the numbers of ``x``."""
    made.save(str(path))
    feed: Feed = {"x": np.repeat(np.asarray(x, np.float32)[:, None], 3, axis=1)}
    (found,) = run_all_ways(path, [feed])
    return [float(number) for number in found["y"][:, 0]]


def composites(made: CompiledModel) -> list[tuple[str, str]]:
    """Plug-in and name of every composite."""
    nodes = [each for each in made.placed.graph.nodes if each.op == "composite"]
    return [(each.text("plugin"), each.text("name")) for each in nodes]
