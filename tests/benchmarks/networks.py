"""Networks of the measurements as PyTorch modules: real architectures, seeded random weights.

In: a name. Out: a ``Network``. Not done here: exporting (``export_models``, the engines of
``peers``), modules that no library has (``network_modules``).

It runs in an environment with ``torch`` and ``transformers``, for ``unet_small`` with ``diffusers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tests.benchmarks.network_modules import dlrm, returning, returning_step, superres, tagger

SPEED_TABLE = ("bert_base", "mobilenet_v2", "resnet50")
"""Those of the speed table."""


@dataclass(frozen=True, slots=True)
class Network:
    """``module`` takes the values of ``inputs`` in their order, and returns a tensor, or as many as
    there are ``outputs``; ``exporting`` are options of ``torch.onnx.export``."""

    module: Any
    inputs: Mapping[str, Any]
    outputs: tuple[str, ...]
    exporting: Mapping[str, Any] = field(default_factory=dict[str, Any])


def network(name: str) -> Network:
    """Make one, as it is evaluated: it has the same weights and inputs every time."""
    torch: Any = import_module("torch")
    torch.manual_seed(sum(map(ord, name)))
    torch.set_grad_enabled(False)
    made = NETWORKS[name]()
    made.module.eval()
    _randomise_statistics(made.module, torch)
    return made


def _randomise_statistics(module: Any, torch: Any) -> None:
    """Give batch normalisation something to do: fresh statistics are those of the identity."""
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)


def _torch() -> Any:
    return import_module("torch")


def _hub() -> Any:
    return import_module("transformers")


def _sizes(width: int, layers: int, heads: int, inner: int) -> dict[str, int]:
    """The words of transformers' configurations."""
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
    }


def _image(kind: str, size: int = 224, **configuration: Any) -> Network:
    """A network of transformers that takes one image, by the first words of its classes' names."""
    family, _, task = kind.partition("For")
    config = getattr(_hub(), f"{family}Config")(**configuration)
    model = getattr(_hub(), f"{family}For{task}")(config)
    inputs = {"pixel_values": _torch().randn(1, 3, size, size)}
    return Network(returning(model, tuple(inputs), "logits"), inputs, ("logits",))


def _bert(sizes: Mapping[str, int] | None = None, used: int = 100, **exporting: Any) -> Network:
    """An encoder of 128 tokens, of which all but the first ``used`` are masked."""
    model = _hub().BertModel(_hub().BertConfig(**(sizes or {})), add_pooling_layer=False)
    torch, output = _torch(), "last_hidden_state"
    mask = torch.ones(1, 128, dtype=torch.int64)
    mask[:, used:] = 0
    inputs = {"input_ids": torch.randint(0, 30522, (1, 128)), "attention_mask": mask}
    return Network(returning(model, tuple(inputs), output), inputs, (output,), exporting)


def _bert_base_dyn() -> Network:
    dim = _torch().export.Dim
    sizes = {0: dim("batch", min=1, max=8), 1: dim("seq", min=2, max=512)}
    return _bert(dynamic_shapes=((sizes, sizes),))


def _gpt2_prefill() -> Network:
    model = _hub().GPT2LMHeadModel(_hub().GPT2Config())
    inputs = {"input_ids": _torch().randint(0, 50257, (1, 64))}
    module = returning(model, tuple(inputs), "logits", use_cache=False)
    return Network(module, inputs, ("logits",))


def _llama_decode() -> Network:
    """One token behind 127, with the caches as inputs and outputs."""
    torch, layers, heads, past = _torch(), 12, 3, 127
    config = _hub().LlamaConfig(
        **_sizes(576, layers, 9, 1536),
        num_key_value_heads=heads,
        vocab_size=49152,
        max_position_embeddings=2048,
        attn_implementation="eager",
    )
    module = returning_step(_hub().LlamaForCausalLM(config), layers)
    inputs = {
        "input_ids": torch.randint(0, 49152, (1, 1)),
        "position_ids": torch.full((1, 1), past),
        "past_k": torch.randn(layers, 1, heads, past, 64),
        "past_v": torch.randn(layers, 1, heads, past, 64),
    }
    return Network(module, inputs, ("logits", "k", "v"))


def _lstm_tagger() -> Network:
    module = tagger(_torch())
    inputs = {"ids": _torch().randint(0, 10000, (1, 50))}
    return Network(module, inputs, ("tags",), {"dynamo": False, "opset_version": 17})


def _dlrm_mlp() -> Network:
    module, torch = dlrm(_torch()), _torch()
    inputs = {"dense": torch.randn(32, 13), "cats": torch.randint(0, 1000, (32, 26))}
    return Network(module, inputs, ("p",))


def _unet_small() -> Network:
    torch = _torch()
    model = import_module("diffusers").UNet2DModel(
        sample_size=32,
        in_channels=3,
        out_channels=3,
        layers_per_block=2,
        block_out_channels=(64, 128, 128),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    )
    inputs = {"sample": torch.randn(1, 3, 32, 32), "timestep": torch.tensor([10])}
    return Network(returning(model, tuple(inputs), "sample"), inputs, ("eps",))


def _superres() -> Network:
    return Network(superres(_torch()), {"image": _torch().randn(1, 3, 128, 128)}, ("result",))


def _wav2vec2() -> Network:
    model, output = _hub().Wav2Vec2Model(_hub().Wav2Vec2Config()), "last_hidden_state"
    inputs = {"input_values": _torch().randn(1, 16000)}
    return Network(returning(model, tuple(inputs), output), inputs, (output,))


def _whisper_encoder() -> Network:
    model, output = _hub().WhisperModel(_hub().WhisperConfig()).encoder, "last_hidden_state"
    inputs = {"input_features": _torch().randn(1, 80, 3000)}
    return Network(returning(model, tuple(inputs), output), inputs, (output,))


def _efficientnet_b0() -> Network:
    return _image(
        "EfficientNetForImageClassification",
        width_coefficient=1.0,
        depth_coefficient=1.0,
        image_size=224,
        hidden_dim=1280,
        num_labels=1000,
    )


def _yolos_tiny() -> Network:
    sizes = _sizes(192, 12, 3, 768)
    return _image("YolosForObjectDetection", 256, **sizes, image_size=[256, 256], num_labels=91)


def _classifier(family: str, size: int = 224) -> Callable[[], Network]:
    return lambda: _image(f"{family}ForImageClassification", size, num_labels=1000)


NETWORKS: dict[str, Callable[[], Network]] = {
    "bert_base": _bert,
    "bert_base_dyn": _bert_base_dyn,
    "bert_base_unmasked": lambda: _bert(used=128),
    "convnext_tiny": _classifier("ConvNext"),
    "dlrm_mlp": _dlrm_mlp,
    "efficientnet_b0": _efficientnet_b0,
    "gpt2_prefill": _gpt2_prefill,
    "llama_decode": _llama_decode,
    "lstm_tagger": _lstm_tagger,
    "minilm": lambda: _bert(_sizes(384, 6, 12, 1536)),
    "mobilenet_v2": _classifier("MobileNetV2"),
    "mobilevit": _classifier("MobileViT", 256),
    "resnet50": _classifier("ResNet"),
    "segformer_b0": lambda: _image("SegformerForSemanticSegmentation", 512, num_labels=150),
    "superres": _superres,
    "swin_tiny": _classifier("Swin"),
    "unet_small": _unet_small,
    "vit_base": _classifier("ViT"),
    "wav2vec2": _wav2vec2,
    "whisper_encoder": _whisper_encoder,
    "yolos_tiny": _yolos_tiny,
}
