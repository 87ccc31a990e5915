"""What the user gives ``ingot.compile`` as a model, as something that can be compiled.

In: a path, bytes, a message, a folder, a PyTorch module. Out: ``GivenModel``. Not done here: the
export itself (``torch_model``), which graphs a folder has (``stages.model_folder``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from ingot_build_rules.making.stages.kind_of_file import is_program
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.model_source import Model
    from ingot_build_rules.tools.api.torch_model import TorchModel, TorchOnnxProgram

    AnyModel = Model | TorchModel | TorchOnnxProgram


@dataclass(frozen=True, slots=True)
class GivenModel:
    """``keeps`` holds what the model needs as long as it may be read."""

    model: Model
    keeps: object = None


def given_model(
    model: AnyModel, example_inputs: object, dynamic_shapes: object, graph: str | None
) -> GivenModel:
    """Find or make the ONNX model.

    Raises:
        UserError: an argument that does not go with this kind of model, and whatever is wrong with
            a folder or with example inputs. ModelError: PyTorch cannot export it.
    """
    from ingot_build_rules.tools.api.torch_model import export_torch, is_torch_model

    if is_torch_model(model):
        _refuse("graph", graph, "a folder of several graphs")
        exported = export_torch(model, example_inputs, dynamic_shapes)
        return GivenModel(exported.path, exported)
    _refuse("example_inputs", example_inputs, "a PyTorch module")
    _refuse("dynamic_shapes", dynamic_shapes, "a PyTorch module")
    if isinstance(model, str | os.PathLike) and os.path.isdir(model):
        from ingot_build_rules.making.stages.model_folder import one_graph

        return GivenModel(one_graph(os.fspath(model), graph))
    _refuse("graph", graph, "a folder of several graphs")
    if isinstance(model, str | os.PathLike) and not is_program(model):
        from ingot_build_rules.making.stages.kind_of_file import check_model_kind

        check_model_kind(os.fspath(model))
    return GivenModel(cast("Model", model))


def _refuse(name: str, value: object, owner: str) -> None:
    if value is not None:
        why = f"it belongs to {owner}"
        do = f"leave {name} out; targets, shapes and the like are given by name"
        raise UserError(f"{name} with another model", f"argument {name}", why, do)
