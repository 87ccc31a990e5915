"""A PyTorch module or program as an ONNX file, made by PyTorch's own exporter.

In: a module with example inputs, a program of ``torch.export``, or what ``torch.onnx.export`` gave.
Out: ``ExportedModel``. Not done here: compiling. ``torch`` is imported by nobody but its user: who
has a module has imported it.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from ingot_compiler.ir.errors import ModelError, UserError


class TorchModel(Protocol):
    """A ``torch.nn.Module`` or a ``torch.export.ExportedProgram``, by what both have."""

    def named_parameters(self) -> Iterable[tuple[str, Any]]:
        """Return its parameters by name."""
        ...


class TorchOnnxProgram(Protocol):
    """A ``torch.onnx.ONNXProgram``: what ``torch.onnx.export(..., dynamo=True)`` gives."""

    @property
    def model_proto(self) -> Any:
        """The ``onnx.ModelProto``."""
        ...


class ExportedModel:
    """A model in a folder of its own, which goes with the last reference: ``path``."""

    def __init__(self) -> None:
        """Make the folder."""
        folder = tempfile.mkdtemp(prefix="ingot-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = os.path.join(folder, "model.onnx")


_MODULE = ("torch.nn", "Module")
_PROGRAM = ("torch.export", "ExportedProgram")
_ONNX_PROGRAM = ("torch.onnx", "ONNXProgram")


def is_torch_model(model: object) -> bool:
    """Whether ``export_torch`` takes it."""
    return any(_is(model, kind) for kind in (_MODULE, _PROGRAM, _ONNX_PROGRAM))


def export_torch(model: Any, example_inputs: object, dynamic_shapes: object) -> ExportedModel:
    """Export a model into a folder of its own.

    Raises:
        UserError: wrong example inputs, a module in training mode, a package that is missing.
        ModelError: PyTorch cannot export it, in PyTorch's words.
    """
    where = f"module {type(model).__name__}"
    if not _is(model, _MODULE):
        _refuse_inputs(where, example_inputs, dynamic_shapes)
    elif example_inputs is None:
        why = "PyTorch follows one call of a module to export it; expected tensors, got nothing"
        do = "give what the module is called with: ingot.compile(module, (x,))"
        raise UserError("a PyTorch module needs example inputs", where, why, do)
    elif model.training:
        why = "dropout and batch normalisation would be those of training"
        raise UserError("the module is in training mode", where, why, "call module.eval() first")
    program = (
        model
        if _is(model, _ONNX_PROGRAM)
        else _onnx_program(model, example_inputs, dynamic_shapes, where)
    )
    exported = ExportedModel()
    program.save(exported.path, external_data=True)
    return exported


def _is(model: object, kind: tuple[str, str]) -> bool:
    """Whether an object is of a class of a module that somebody has imported."""
    found = getattr(sys.modules.get(kind[0]), kind[1], None)
    return isinstance(found, type) and isinstance(model, found)


def _refuse_inputs(where: str, example_inputs: object, dynamic_shapes: object) -> None:
    for name, value in (("example_inputs", example_inputs), ("dynamic_shapes", dynamic_shapes)):
        if value is not None:
            why = "the program has been exported, with its inputs and their shapes"
            raise UserError(f"{name} of an exported program", where, why, f"leave {name} out")


def _onnx_program(model: Any, example_inputs: object, dynamic_shapes: object, where: str) -> Any:
    arguments, by_name = _call(example_inputs, where)
    try:
        program = importlib.import_module("torch.onnx").export(
            model, arguments, kwargs=by_name, dynamic_shapes=dynamic_shapes, dynamo=True,
            verbose=False,
        )  # fmt: skip
    except ImportError as error:
        do = "pip install 'ingot-compiler[torch]'"
        what = "PyTorch's exporter lacks a package"
        raise UserError(what, where, str(error), do) from error
    except Exception as error:  # whatever PyTorch raises: the user's module and PyTorch disagree
        do = (
            "change the module until torch.export.export(module, example_inputs) succeeds"
            f"{', or dynamic_shapes' if dynamic_shapes is not None else ''}; "
            "or export it in another way, and give the .onnx file"
        )
        raise ModelError("PyTorch cannot export the module", where, _words(error), do) from error
    _forget_paths(program.model, type(model).__name__)
    return program


def _call(example_inputs: object, where: str) -> tuple[tuple[object, ...], dict[str, object]]:
    """Arguments by position and by name."""
    arguments: tuple[object, ...] = ()
    by_name: dict[str, object] = {}
    if isinstance(example_inputs, Mapping):
        by_name = dict(cast("Mapping[str, object]", example_inputs))
    elif isinstance(example_inputs, tuple | list):
        arguments = tuple(cast("Sequence[object]", example_inputs))
    elif example_inputs is not None:
        arguments = (example_inputs,)
    if any(isinstance(value, np.ndarray) for value in (*arguments, *by_name.values())):
        why = "expected tensors, got an array of numpy, which would become a constant of the model"
        do = "give torch.from_numpy(x)"
        raise UserError("wrong example inputs", where, why, do)
    return arguments, by_name


def _words(error: Exception) -> str:
    """What PyTorch says: the cause, where its exporter wraps one, without empty lines."""
    cause = error.__cause__ or error
    lines = [line for line in f"{type(cause).__name__}: {cause}".splitlines() if line.strip()]
    return "\n".join(lines)


def _forget_paths(model: Any, name: str) -> None:
    """Leave out what depends on where the module's code lies: the same module gives the same model
    on every machine."""
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    for part in (model, *graphs, *(node for graph in graphs for node in graph.all_nodes())):
        part.metadata_props.clear()
    model.graph.name = name
