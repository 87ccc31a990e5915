"""PyTorch modules as models: which are taken, and how a mistake is told. PyTorch itself is played by
stand-ins here; ``test_torch_export`` has the real one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.hostile.model_builder import relu_chain

import ingot
import ingot_runtime


class Module:
    """Stands in for ``torch.nn.Module``."""

    training = False

    def named_parameters(self) -> list[tuple[str, Any]]:
        """None."""
        return []


class ExportedProgram(Module):
    """Stands in for that of ``torch.export``."""


class Graph:
    """A graph of one node whose metadata name a file."""

    def __init__(self) -> None:
        self.name = "main_graph"
        self.metadata_props: dict[str, str] = {}
        self.nodes = [Node()]

    def all_nodes(self) -> list[Node]:
        """All nodes."""
        return self.nodes


class Node:
    """A node that says where its line of code is."""

    def __init__(self) -> None:
        self.metadata_props = {"pkg.torch.onnx.stack_trace": 'File "/home/somebody/net.py"'}


class Written:
    """Stands in for a model of ``onnx_ir``."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.functions: dict[str, Graph] = {}
        self.metadata_props = {"producer": "PyTorch"}


class ONNXProgram(Module):
    """Stands in for what the exporter gives."""

    model_proto: Any = None

    def __init__(self) -> None:
        self.model = Written()

    def save(self, path: str, *, external_data: bool) -> None:
        """Write a model."""
        assert external_data
        Path(path).write_bytes(relu_chain().SerializeToString())


class DynamoError(Exception):
    """One of the many kinds of errors of PyTorch."""


class Network(Module):
    """A module of the user's."""


class InTraining(Network):
    """The same, as it is made."""

    training = True


class Torch:
    """The modules of PyTorch that are looked for, and what the exporter was called with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[object, dict[str, object]]] = []
        self.error: Exception | None = None
        self.program = ONNXProgram()
        contents: dict[str, dict[str, object]] = {
            "torch.nn": {"Module": Module},
            "torch.export": {"ExportedProgram": ExportedProgram},
            "torch.onnx": {"ONNXProgram": ONNXProgram, "export": self.export},
        }
        for name, values in contents.items():
            module = ModuleType(name)
            module.__dict__.update(values)
            monkeypatch.setitem(sys.modules, name, module)
        # ExportedProgram and ONNXProgram are no modules in PyTorch.
        monkeypatch.setattr(sys.modules["torch.nn"], "Module", Network)

    def export(self, model: object, arguments: object, **options: object) -> ONNXProgram:
        """Stand in for ``torch.onnx.export``."""
        del model
        self.calls.append((arguments, options))
        if self.error is not None:
            raise self.error from self.error.__cause__
        return self.program


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    """PyTorch is there."""
    return Torch(monkeypatch)


def refused(*arguments: Any, **options: Any) -> ingot.UserError:
    """Compile what must be refused."""
    with pytest.raises(ingot.UserError) as caught:
        ingot.compile(*arguments, **options)
    return caught.value


def test_a_module_is_exported_and_compiled(torch: Torch) -> None:
    """What the exporter writes is compiled, and can be looked at as long as the bundle is there;
    where its code lies is not in it."""
    bundle = ingot.compile(Network(), "a tensor", dynamic_shapes=({0: "n"},), targets="x86-64-v2")
    with ingot_runtime.load(bundle.to_bytes()) as session:
        y = session.run({"x": np.ones((2, 3), np.float32)})["y"]
    np.testing.assert_array_equal(y, np.ones((2, 3)) @ np.arange(3 * 512).reshape(3, 512))
    assert "Relu" in bundle.text("imported")
    graph = torch.program.model.graph
    assert graph.name == "Network"
    assert graph.nodes[0].metadata_props == {}


@pytest.mark.parametrize(
    ("example_inputs", "arguments", "by_name"),
    [
        ("x", ("x",), {}),
        (("x", "y"), ("x", "y"), {}),
        (["x"], ("x",), {}),
        ({"x": "x"}, (), {"x": "x"}),
    ],
)
def test_example_inputs(
    torch: Torch, example_inputs: object, arguments: object, by_name: object
) -> None:
    """One, several, or by name; dynamic shapes are passed on."""
    ingot.compile(Network(), example_inputs, dynamic_shapes="shapes", targets="x86-64-v2")
    ((got, options),) = torch.calls
    assert got == arguments
    assert options["kwargs"] == by_name
    assert options["dynamic_shapes"] == "shapes"


def test_programs_are_taken_as_they_are(torch: Torch) -> None:
    """A program of ``torch.export`` needs no inputs; one of ``torch.onnx`` is only written."""
    exported = ingot.compile(ExportedProgram(), targets="x86-64-v2")
    assert torch.calls[0][0] == ()
    written = ingot.compile(ONNXProgram(), targets="x86-64-v2")
    assert len(torch.calls) == 1
    assert exported.digest == written.digest


def test_an_export_that_fails_is_told_in_pytorchs_words(torch: Torch) -> None:
    """The cause, without the exporter's advice to debug PyTorch, and what to do."""
    torch.error = RuntimeError("Failed to export the model. Create an issue.")
    torch.error.__cause__ = DynamoError("Could not guard on Eq(u0, 1)\n\nif x.sum() > 0:")
    with pytest.raises(ingot.ModelError) as caught:
        ingot.compile(Network(), "x")
    assert caught.value.what == "PyTorch cannot export the module"
    assert caught.value.where == "module Network"
    assert caught.value.why == "DynamoError: Could not guard on Eq(u0, 1)\nif x.sum() > 0:"
    assert "torch.export.export(module, example_inputs)" in caught.value.do
    assert "dynamic_shapes" not in caught.value.do
    with pytest.raises(ingot.ModelError) as caught:
        ingot.compile(Network(), "x", dynamic_shapes={})
    assert "or dynamic_shapes" in caught.value.do


def test_a_missing_package_is_named(torch: Torch) -> None:
    """PyTorch's exporter needs one that PyTorch does not bring."""
    torch.error = ModuleNotFoundError("No module named 'onnxscript'")
    error = refused(Network(), "x")
    assert error.what == "PyTorch's exporter lacks a package"
    assert error.why == "No module named 'onnxscript'"
    assert error.do == "pip install 'ingot-compiler[torch]'"


MISTAKES: dict[str, tuple[Callable[[], ingot.UserError], str, str]] = {
    "no inputs": (
        lambda: refused(Network()),
        "a PyTorch module needs example inputs",
        "ingot.compile(module, (x,))",
    ),
    "in training": (
        lambda: refused(InTraining(), "x"),
        "the module is in training mode",
        "call module.eval() first",
    ),
    "arrays of numpy": (
        lambda: refused(Network(), {"x": np.zeros(3)}),
        "wrong example inputs",
        "give torch.from_numpy(x)",
    ),
    "inputs of a program": (
        lambda: refused(ExportedProgram(), "x"),
        "example_inputs of an exported program",
        "leave example_inputs out",
    ),
    "shapes of a program": (
        lambda: refused(ONNXProgram(), dynamic_shapes={}),
        "dynamic_shapes of an exported program",
        "leave dynamic_shapes out",
    ),
    "graph of a module": (
        lambda: refused(Network(), "x", graph="decoder"),
        "graph with another model",
        "leave graph out",
    ),
    "inputs of bytes": (
        lambda: refused(b"", ["x86-64-v3"]),
        "example_inputs with another model",
        "targets, shapes and the like are given by name",
    ),
    "shapes of bytes": (
        lambda: refused(b"", dynamic_shapes={}),
        "dynamic_shapes with another model",
        "leave dynamic_shapes out",
    ),
}


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told(mistake: str) -> None:
    """Each before anything is exported."""
    make, what, do = MISTAKES[mistake]
    error = make()
    assert error.what == what
    assert do in error.do
