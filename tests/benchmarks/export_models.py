"""Exports networks of the measurements: real architectures, seeded random weights, PyTorch's own
answers beside them. Without names, those of the speed table.

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

    def image(model: Any, size: int = 224) -> Any:
        return model, {"pixel_values": torch.randn(1, 3, size, size)}, "logits"

    def bert(**sizes: int) -> Any:
        ids = torch.randint(0, 30522, (1, 128))
        mask = torch.ones(1, 128, dtype=torch.int64)
        mask[:, 100:] = 0
        model = hub.BertModel(hub.BertConfig(**sizes), add_pooling_layer=False)
        return model, {"input_ids": ids, "attention_mask": mask}, "last_hidden_state"

    return {
        **_further(torch, hub, image, bert),
        "bert_base": bert,
        "mobilenet_v2": lambda: image(
            hub.MobileNetV2ForImageClassification(hub.MobileNetV2Config(num_labels=1000))
        ),
        "resnet50": lambda: image(
            hub.ResNetForImageClassification(hub.ResNetConfig(num_labels=1000))
        ),
    }


def _further(torch: Any, hub: Any, image: Any, bert: Any) -> dict[str, Any]:
    """The networks that were measured beside those of the speed table."""

    def efficientnet() -> Any:
        config = hub.EfficientNetConfig(
            width_coefficient=1.0,
            depth_coefficient=1.0,
            image_size=224,
            hidden_dim=1280,
            num_labels=1000,
        )
        return image(hub.EfficientNetForImageClassification(config))

    def yolos() -> Any:
        config = hub.YolosConfig(**_sizes(192, 12, 3, 768), image_size=[256, 256], num_labels=91)
        return image(hub.YolosForObjectDetection(config), 256)

    def wav2vec2() -> Any:
        model = hub.Wav2Vec2Model(hub.Wav2Vec2Config())
        return model, {"input_values": torch.randn(1, 16000)}, "last_hidden_state"

    def whisper() -> Any:
        model = hub.WhisperModel(hub.WhisperConfig()).encoder
        return model, {"input_features": torch.randn(1, 80, 3000)}, "last_hidden_state"

    return {
        "efficientnet_b0": efficientnet,
        "minilm": lambda: bert(**_sizes(384, 6, 12, 1536)),
        "mobilevit": lambda: image(
            hub.MobileViTForImageClassification(hub.MobileViTConfig(num_labels=1000)), 256
        ),
        "superres": lambda: (_superres(torch), {"image": torch.randn(1, 3, 128, 128)}, "result"),
        "swin_tiny": lambda: image(hub.SwinForImageClassification(hub.SwinConfig(num_labels=1000))),
        "wav2vec2": wav2vec2,
        "whisper_encoder": whisper,
        "yolos_tiny": yolos,
    }


def _sizes(width: int, layers: int, heads: int, inner: int) -> dict[str, int]:
    """The words of transformers' configurations."""
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
    }


def _superres(torch: Any) -> Any:
    """Eight residual blocks of 64 channels, then twice as many pixels."""
    nn: Any = torch.nn

    def convolution(channels: int, results: int) -> Any:
        return nn.Conv2d(channels, results, 3, padding=1)

    class SuperResolution(nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
        """Convolutions of 3x3 all the way."""

        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.head, self.last = convolution(3, 64), convolution(64, 64)
            self.blocks = nn.ModuleList(
                nn.Sequential(convolution(64, 64), nn.ReLU(), convolution(64, 64)) for _ in range(8)
            )
            self.tail = nn.Sequential(convolution(64, 256), nn.PixelShuffle(2), convolution(64, 3))

        def forward(self, image: Any, *, return_dict: bool) -> Any:
            """Return ``result`` in a dictionary, as transformers' networks do."""
            assert return_dict
            first = found = self.head(image)
            for block in self.blocks:
                found = found + block(found)
            return {"result": self.tail(first + self.last(found))}

    return SuperResolution()


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
