"""Exports the networks of the speed table: real architectures, seeded random weights, PyTorch's own
answers beside them.

In: a folder, names. Out: ``NAME/model.onnx``, ``inputs.npz``, ``outputs.npz``. Not done here:
measuring.

Needs an environment of its own:
``pip install torch==2.13.0 onnx onnxscript transformers onnxruntime``.

    python tests/benchmarks/export_models.py FOLDER [NAME ...]
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import numpy as np


def _randomise_statistics(model: Any, torch: Any) -> None:
    """Give batch normalisation something to do: fresh statistics are those of the identity."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.1)


def _networks(torch: Any) -> dict[str, Any]:
    """name -> () -> (model, inputs by name, name of the output)."""
    hub: Any = import_module("transformers")

    def image(model: Any) -> Any:
        return model, {"pixel_values": torch.randn(1, 3, 224, 224)}, "logits"

    def bert() -> Any:
        ids = torch.randint(0, 30522, (1, 128))
        mask = torch.ones(1, 128, dtype=torch.int64)
        mask[:, 100:] = 0
        model = hub.BertModel(hub.BertConfig(), add_pooling_layer=False)
        return model, {"input_ids": ids, "attention_mask": mask}, "last_hidden_state"

    return {
        "bert_base": bert,
        "mobilenet_v2": lambda: image(
            hub.MobileNetV2ForImageClassification(hub.MobileNetV2Config(num_labels=1000))
        ),
        "resnet50": lambda: image(
            hub.ResNetForImageClassification(hub.ResNetConfig(num_labels=1000))
        ),
    }


def export(name: str, folder: str) -> None:
    """Write one network with its inputs and outputs."""
    torch: Any = import_module("torch")
    torch.manual_seed(sum(map(ord, name)))
    torch.set_grad_enabled(False)
    model, inputs, output = _networks(torch)[name]()
    inputs = dict[str, Any](inputs)
    model.eval()
    _randomise_statistics(model, torch)

    class Single(torch.nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
        """One output instead of a dictionary; the network itself is seen from outside."""

        inner = model

        def forward(self, *values: Any) -> Any:
            """Call the network by its own argument names."""
            return self.inner(**dict(zip(inputs, values, strict=True)), return_dict=True)[output]

    place = os.path.join(folder, name)
    os.makedirs(place, exist_ok=True)
    single, values = Single(), tuple(inputs.values())
    wanted = single(*values)
    path = os.path.join(place, "model.onnx")
    torch.onnx.export(
        single,
        values,
        path,
        input_names=list(inputs),
        output_names=[output],
        dynamo=True,
        external_data=False,
    )
    np.savez(
        os.path.join(place, "inputs.npz"), **{key: value.numpy() for key, value in inputs.items()}
    )
    np.savez(os.path.join(place, "outputs.npz"), **{output: wanted.numpy()})
    print(f"{path}: {os.path.getsize(path) / 1e6:.0f} MB")


if __name__ == "__main__":
    for wanted_name in sys.argv[2:] or ("bert_base", "mobilenet_v2", "resnet50"):
        export(wanted_name, sys.argv[1])
