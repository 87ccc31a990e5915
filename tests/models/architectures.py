"""The architectures of ``tests/models``: twenty-two common ones and six from other families, as
small as they go.

In: nothing. Out: ``ARCHITECTURES``, name -> ``Architecture``. Not done here: export
(``make_models.py``).
"""

# torch, transformers and diffusers are not in the environment of the checks.
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Architecture:
    """How one network is made and fed.

    Attributes:
        build: makes the module.
        feed: sizes -> inputs by name, drawn from torch's generator.
        outputs: names of the outputs.
        sizes: sizes of the static export.
        ranges: size -> smallest and largest of the dynamic export; empty without one.
        axes: input -> axis -> size that is open.
        options: further arguments of ``torch.onnx.export``.
    """

    build: Callable[[], nn.Module]
    feed: Callable[[Mapping[str, int]], dict[str, Tensor]]
    outputs: tuple[str, ...]
    sizes: Mapping[str, int]
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


class Pick(nn.Module):
    """The named tensors of a transformers model's answer."""

    def __init__(
        self, model: nn.Module, inputs: tuple[str, ...], outputs: tuple[str, ...], **options: Any
    ) -> None:
        """Wrap ``model``; its arguments are ``inputs``, in order."""
        super().__init__()
        self.model, self.inputs, self.outputs, self.options = model, inputs, outputs, options

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Return ``outputs``."""
        answer = self.model(
            **dict(zip(self.inputs, values, strict=True)), **self.options, return_dict=True
        )
        return tuple(answer[name] for name in self.outputs)


BATCH = {"batch": (1, 3)}
TOKENS = {"batch": (1, 4), "length": (2, 16)}
PICTURES = {"batch": (1, 2), "height": (33, 48), "width": (33, 48)}
VOCABULARY = 67


def picture(batch: int, height: int, width: int) -> Tensor:
    """Pictures [batch, 3, height, width], f32 around zero, in steps of 1/8: files stay small."""
    return (torch.randn(batch, 3, height, width) * 8).round() / 8


def pixels(side: int) -> Callable[[Mapping[str, int]], dict[str, Tensor]]:
    """Pictures of a fixed side."""
    return lambda sizes: {"pixel_values": picture(sizes["batch"], side, side)}


def any_pixels(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Pictures of any size."""
    return {"pixel_values": picture(sizes["batch"], sizes["height"], sizes["width"])}


def tokens(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Token ids."""
    return {"input_ids": torch.randint(3, VOCABULARY, (sizes["batch"], sizes["length"]))}


def masked_tokens(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Token ids and a mask that hides the end of all rows but the last."""
    mask = torch.ones(sizes["batch"], sizes["length"], dtype=torch.int64)
    mask[:-1, sizes["length"] - sizes["length"] // 3 :] = 0
    return {**tokens(sizes), "attention_mask": mask}


def transformer(
    module: str,
    config: dict[str, Any],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    **options: Any,
) -> Callable[[], nn.Module]:
    """Make ``transformers.MODULE`` with the configuration that belongs to it."""

    def build() -> nn.Module:
        import transformers

        kind: Any = getattr(transformers, module)
        return Pick(kind(kind.config_class(**config)), inputs, outputs, **options)

    return build


BATCH_AXES = {"pixel_values": {0: "batch"}}
PICTURE_AXES = {"pixel_values": {0: "batch", 2: "height", 3: "width"}}
TOKEN_AXES = {"input_ids": {0: "batch", 1: "length"}}
MASKED_AXES = {**TOKEN_AXES, "attention_mask": {0: "batch", 1: "length"}}
EAGER = {"attn_implementation": "eager"}
ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
PATCHES = {**ENCODER, "image_size": 32, "patch_size": 8}
DECODER = {
    **ENCODER,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}
SPEECH = {
    **ENCODER,
    "vocab_size": 32,
    "conv_dim": (16, 16, 16),
    "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3),
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4,
    "apply_spec_augment": False,
}


def vision(
    module: str, config: dict[str, Any], outputs: tuple[str, ...] = ("logits",)
) -> Callable[[], nn.Module]:
    """A network from pictures."""
    return transformer(module, config, ("pixel_values",), outputs)


def causal(module: str, config: dict[str, Any]) -> Callable[[], nn.Module]:
    """A language model without a cache."""
    return transformer(module, config, ("input_ids",), ("logits",), use_cache=False)


def residual(layers: str) -> dict[str, Any]:
    """Four stages of one block."""
    return {
        "embedding_size": 8,
        "hidden_sizes": [8, 8, 16, 16],
        "depths": [1, 1, 1, 1],
        "layer_type": layers,
    }


def detr() -> nn.Module:
    """DETR over a residual network."""
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    backbone = ResNetConfig(**residual("basic"), out_features=["stage4"])
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 24))
    }
    config = DetrConfig(backbone_config=backbone, d_model=16, num_queries=6, num_labels=5, **sides)
    return Pick(DetrForObjectDetection(config), ("pixel_values",), ("logits", "pred_boxes"))


def rt_detr() -> nn.Module:
    """RT-DETR: hybrid encoder, deformable decoder, top-k of the queries."""
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    backbone = RTDetrResNetConfig(**residual("basic"), out_features=["stage2", "stage3", "stage4"])
    config = RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 16, 16],
        feat_strides=[8, 16, 32],
        encoder_ffn_dim=32,
        encoder_attention_heads=2,
        hidden_expansion=0.5,
        d_model=16,
        num_queries=6,
        decoder_in_channels=[16, 16, 16],
        decoder_ffn_dim=16,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_n_points=2,
        num_labels=5,
        num_denoising=0,
        anchor_image_size=None,
    )
    return Pick(RTDetrForObjectDetection(config), ("pixel_values",), ("logits", "pred_boxes"))


def clip() -> nn.Module:
    """CLIP: both towers and their product."""
    from transformers import CLIPConfig, CLIPModel

    text = {
        **ENCODER,
        "num_hidden_layers": 1,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 32,
        "eos_token_id": VOCABULARY - 1,
        "bos_token_id": 1,
        "pad_token_id": 0,
    }
    config = CLIPConfig(
        text_config=text,
        vision_config={**PATCHES, "num_hidden_layers": 1, "image_size": 24, "patch_size": 6},
        projection_dim=16,
    )
    names = ("input_ids", "pixel_values", "attention_mask")
    return Pick(CLIPModel(config), names, ("logits_per_image", "text_embeds", "image_embeds"))


def clip_feed(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Texts that end with the last token of the vocabulary, and pictures."""
    ids = torch.randint(3, VOCABULARY - 1, (sizes["batch"], sizes["length"]))
    ids[:, -1] = VOCABULARY - 1
    mask = torch.ones_like(ids)
    return {
        "input_ids": ids,
        "pixel_values": picture(sizes["pictures"], 24, 24),
        "attention_mask": mask,
    }


class Tagger(nn.Module):
    """A bidirectional recurrent network over tokens."""

    def __init__(self) -> None:
        """Two layers in both directions."""
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.recurrent = nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 7)

    def forward(self, ids: Tensor) -> Tensor:
        """Return scores of the tags."""
        return self.head(self.recurrent(self.embedding(ids))[0])


def wav2vec2_feed(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """A sound."""
    return {"input_values": torch.randn(sizes["batch"], sizes["samples"])}


WHISPER = {
    "vocab_size": VOCABULARY,
    "num_mel_bins": 8,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_source_positions": 16,
    "max_target_positions": 24,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def whisper_feed(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """A mel spectrogram and the tokens so far."""
    ids = torch.randint(3, VOCABULARY, (sizes["batch"], sizes["length"]))
    return {"input_features": torch.randn(sizes["batch"], 8, 32), "decoder_input_ids": ids}


def translation_feed(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Tokens of both languages."""
    ids = torch.randint(3, VOCABULARY, (sizes["batch"], sizes["answer"]))
    return {**masked_tokens(sizes), "decoder_input_ids": ids}


TRANSLATION = ("input_ids", "attention_mask", "decoder_input_ids")
TRANSLATION_AXES = {**MASKED_AXES, "decoder_input_ids": {0: "batch", 1: "answer"}}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 1,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "decoder_start_token_id": 0,
    **EAGER,
}
BART = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 32,
}


class Diffusion(nn.Module):
    """A denoising network with cross attention to a text, as Stable Diffusion has it."""

    def __init__(self) -> None:
        """Two levels."""
        super().__init__()
        from diffusers import UNet2DConditionModel

        self.model = UNet2DConditionModel(
            sample_size=8,
            in_channels=4,
            out_channels=4,
            layers_per_block=1,
            block_out_channels=(8, 16),
            norm_num_groups=4,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=16,
            attention_head_dim=4,
        )

    def forward(self, sample: Tensor, timestep: Tensor, text: Tensor) -> Tensor:
        """Return the noise."""
        return self.model(sample, timestep, text, return_dict=False)[0]


def diffusion_feed(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """A noisy latent, its time, and a text."""
    return {
        "sample": torch.randn(1, 4, 8, 8),
        "timestep": torch.tensor([37]),
        "text": torch.randn(1, 5, 16),
    }


class GraphNetwork(nn.Module):
    """Two layers of attention over the edges of a graph: gather, softmax over a node's edges,
    scattered sums."""

    def __init__(self) -> None:
        """Sixteen features, twenty-four hidden."""
        super().__init__()
        self.into = nn.ModuleList([nn.Linear(16, 24), nn.Linear(24, 24)])
        self.score = nn.ModuleList([nn.Linear(48, 1), nn.Linear(48, 1)])
        self.head = nn.Linear(24, 4)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Return scores per node and of the whole graph."""
        source, target = edges[0], edges[1]
        for into, score in zip(self.into, self.score, strict=True):
            hidden = into(nodes)
            raw = torch.nn.functional.leaky_relu(
                score(torch.cat([hidden[source], hidden[target]], -1)), 0.2
            )
            top = torch.full((nodes.shape[0], 1), -1e9).scatter_reduce(
                0, target[:, None], raw, "amax"
            )
            weight = (raw - top[target]).exp()
            total = torch.zeros(nodes.shape[0], 1).index_add(0, target, weight)
            message = hidden[source] * (weight / (total[target] + 1e-6))
            nodes = torch.nn.functional.elu(
                hidden + torch.zeros_like(hidden).index_add(0, target, message)
            )
        return self.head(nodes)


def graph_feed(sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Features of the nodes, and edges as pairs of nodes."""
    nodes, edges = sizes["nodes"], sizes["edges"]
    return {"nodes": torch.randn(nodes, 16), "edges": torch.randint(0, nodes, (2, edges))}


@torch.library.custom_op("models::suppress", mutates_args=())
def suppress(boxes: Tensor, scores: Tensor) -> Tensor:
    """Non-maximum suppression as ONNX NonMaxSuppression-11 has it, at overlap 0.5, score 0.3 and
    eight boxes a class."""
    chosen: list[list[int]] = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            order = torch.argsort(-scores[batch, kind], stable=True).tolist()
            kept: list[int] = []
            for index in order:
                if scores[batch, kind, index] <= 0.3 or len(kept) == 8:
                    break
                if all(_overlap(boxes[batch, index], boxes[batch, other]) <= 0.5 for other in kept):
                    kept.append(index)
            chosen += [[batch, kind, index] for index in kept]
    return torch.tensor(chosen, dtype=torch.int64).reshape(-1, 3)


@suppress.register_fake
def _(boxes: Tensor, scores: Tensor) -> Tensor:
    count = torch.library.get_ctx().new_dynamic_size()
    return torch.empty(count, 3, dtype=torch.int64)


def _overlap(first: Tensor, second: Tensor) -> float:
    corner, opposite = torch.maximum(first[:2], second[:2]), torch.minimum(first[2:], second[2:])
    common = float((opposite - corner).clamp(min=0).prod())
    union = float((first[2:] - first[:2]).prod() + (second[2:] - second[:2]).prod()) - common
    return common / union if union > 0 else 0.0


class Detector(nn.Module):
    """A single-shot detector: features, boxes around anchors, scores, suppression, and the chosen
    boxes."""

    def __init__(self) -> None:
        """One anchor per place of an 8 x 8 map, three kinds."""
        super().__init__()
        convolution, norm = nn.Conv2d, nn.BatchNorm2d
        self.features = nn.Sequential(
            convolution(3, 12, 3, 2, 1),
            norm(12),
            nn.Hardswish(),
            convolution(12, 12, 3, 2, 1, groups=12),
            norm(12),
            nn.Hardswish(),
            convolution(12, 24, 1),
            norm(24),
            nn.LeakyReLU(0.1),
        )
        self.boxes, self.scores = convolution(24, 4, 1), convolution(24, 3, 1)
        grid = (torch.arange(8) + 0.5) / 8
        self.register_buffer(
            "anchors", torch.stack(torch.meshgrid(grid, grid, indexing="ij"), -1).reshape(64, 2)
        )

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return chosen (picture, kind, box), their boxes and scores."""
        features = self.features(pixel_values)
        raw = self.boxes(features).flatten(2).transpose(1, 2)
        centre, size = self.anchors + raw[..., :2].tanh() / 8, raw[..., 2:].clamp(max=1.0).exp() / 4
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1)
        scores = self.scores(features).flatten(2).sigmoid()
        chosen = torch.ops.models.suppress(boxes, scores)
        picture, kind, index = chosen[:, 0], chosen[:, 1], chosen[:, 2]
        return chosen, boxes[picture, index], scores[picture, kind, index]


def detector_options() -> dict[str, Any]:
    """Translate our suppression to the operator of ONNX."""
    import onnxscript

    opset: Any = onnxscript.opset18

    def translate(boxes: Any, scores: Any) -> Any:
        limit = opset.Constant(value_ints=[8])
        overlap, score = opset.Constant(value_floats=[0.5]), opset.Constant(value_floats=[0.3])
        return opset.NonMaxSuppression(boxes, scores, limit, overlap, score)

    return {"custom_translation_table": {torch.ops.models.suppress.default: translate}}


ARCHITECTURES: dict[str, Architecture] = {
    "resnet": Architecture(
        vision("ResNetForImageClassification", {**residual("bottleneck"), "num_labels": 10}),
        any_pixels,
        ("logits",),
        {"batch": 1, "height": 40, "width": 48},
        PICTURES,
        PICTURE_AXES,
    ),
    "mobilenet_v2": Architecture(
        vision(
            "MobileNetV2ForImageClassification",
            {
                "depth_multiplier": 0.1,
                "finegrained_output": False,
                "num_labels": 10,
                "image_size": 32,
            },
        ),
        pixels(32),
        ("logits",),
        {"batch": 1},
    ),
    "efficientnet": Architecture(
        vision(
            "EfficientNetForImageClassification",
            {
                "image_size": 32,
                "width_coefficient": 0.1,
                "depth_coefficient": 0.1,
                "hidden_dim": 128,
                "num_labels": 10,
                "kernel_sizes": [3, 3, 5],
                "in_channels": [32, 16, 24],
                "out_channels": [16, 24, 40],
                "depthwise_padding": [],
                "strides": [1, 2, 2],
                "num_block_repeats": [1, 2, 2],
                "expand_ratios": [1, 6, 6],
            },
        ),
        pixels(32),
        ("logits",),
        {"batch": 1},
    ),
    "convnext": Architecture(
        vision(
            "ConvNextForImageClassification",
            {"hidden_sizes": [8, 16, 16, 24], "depths": [1, 1, 1, 1], "num_labels": 10},
        ),
        any_pixels,
        ("logits",),
        {"batch": 1, "height": 40, "width": 48},
        PICTURES,
        PICTURE_AXES,
    ),
    "vit": Architecture(
        vision("ViTForImageClassification", {**PATCHES, "num_labels": 10}),
        pixels(32),
        ("logits",),
        {"batch": 1},
        BATCH,
        BATCH_AXES,
    ),
    "swin": Architecture(
        vision(
            "SwinForImageClassification",
            {
                "image_size": 32,
                "patch_size": 2,
                "embed_dim": 8,
                "depths": [2, 1],
                "num_heads": [2, 4],
                "window_size": 4,
                "num_labels": 10,
                **EAGER,
            },
        ),
        pixels(32),
        ("logits",),
        {"batch": 1},
        BATCH,
        BATCH_AXES,
    ),
    "bert": Architecture(
        transformer(
            "BertModel",
            {**ENCODER, "vocab_size": VOCABULARY, "max_position_embeddings": 32},
            ("input_ids", "attention_mask"),
            ("last_hidden_state", "pooler_output"),
        ),
        masked_tokens,
        ("last_hidden_state", "pooler_output"),
        {"batch": 2, "length": 12},
        TOKENS,
        MASKED_AXES,
    ),
    "distilbert": Architecture(
        transformer(
            "DistilBertModel",
            {
                "vocab_size": VOCABULARY,
                "max_position_embeddings": 32,
                "dim": 32,
                "n_layers": 2,
                "n_heads": 4,
                "hidden_dim": 64,
            },
            ("input_ids", "attention_mask"),
            ("last_hidden_state",),
        ),
        masked_tokens,
        ("last_hidden_state",),
        {"batch": 2, "length": 12},
    ),
    "gpt2": Architecture(
        causal(
            "GPT2LMHeadModel",
            {
                "vocab_size": VOCABULARY,
                "n_positions": 32,
                "n_embd": 32,
                "n_inner": 64,
                "n_layer": 2,
                "n_head": 4,
            },
        ),
        tokens,
        ("logits",),
        {"batch": 1, "length": 12},
        TOKENS,
        TOKEN_AXES,
    ),
    "lstm": Architecture(
        Tagger,
        lambda sizes: {"ids": tokens(sizes)["input_ids"]},
        ("tags",),
        {"batch": 1, "length": 12},
        options={"dynamo": False, "opset_version": 17},
    ),
    "segformer": Architecture(
        vision(
            "SegformerForSemanticSegmentation",
            {
                "hidden_sizes": [8, 16, 16, 24],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 2, 2, 4],
                "decoder_hidden_size": 16,
                "mlp_ratios": [2, 2, 2, 2],
                "num_labels": 7,
            },
        ),
        pixels(64),
        ("logits",),
        {"batch": 1},
    ),
    "clip": Architecture(
        clip,
        clip_feed,
        ("logits_per_image", "text_embeds", "image_embeds"),
        {"batch": 2, "length": 8, "pictures": 1},
        {**TOKENS, "pictures": (1, 3)},
        {**MASKED_AXES, "pixel_values": {0: "pictures"}},
    ),
    "yolos": Architecture(
        vision(
            "YolosForObjectDetection",
            {**PATCHES, "image_size": [32, 32], "num_detection_tokens": 5, "num_labels": 6},
            ("logits", "pred_boxes"),
        ),
        pixels(32),
        ("logits", "pred_boxes"),
        {"batch": 1},
    ),
    "detr": Architecture(
        detr, pixels(40), ("logits", "pred_boxes"), {"batch": 1}, BATCH, BATCH_AXES
    ),
    "rt_detr": Architecture(rt_detr, pixels(64), ("logits", "pred_boxes"), {"batch": 1}),
    "wav2vec2": Architecture(
        transformer("Wav2Vec2ForCTC", SPEECH, ("input_values",), ("logits",)),
        wav2vec2_feed,
        ("logits",),
        {"batch": 1, "samples": 400},
        {"batch": (1, 3), "samples": (200, 900)},
        {"input_values": {0: "batch", 1: "samples"}},
    ),
    "whisper": Architecture(
        transformer(
            "WhisperForConditionalGeneration",
            WHISPER,
            ("input_features", "decoder_input_ids"),
            ("logits",),
            use_cache=False,
        ),
        whisper_feed,
        ("logits",),
        {"batch": 1, "length": 6},
        TOKENS,
        {"input_features": {0: "batch"}, "decoder_input_ids": {0: "batch", 1: "length"}},
    ),
    "t5": Architecture(
        transformer("T5ForConditionalGeneration", T5, TRANSLATION, ("logits",), use_cache=False),
        translation_feed,
        ("logits",),
        {"batch": 2, "length": 10, "answer": 6},
        {**TOKENS, "answer": (2, 12)},
        TRANSLATION_AXES,
    ),
    "llama": Architecture(
        causal("LlamaForCausalLM", DECODER),
        tokens,
        ("logits",),
        {"batch": 1, "length": 12},
        TOKENS,
        TOKEN_AXES,
    ),
    "qwen2": Architecture(
        causal("Qwen2ForCausalLM", DECODER), tokens, ("logits",), {"batch": 1, "length": 12}
    ),
    "mamba": Architecture(
        causal(
            "MambaForCausalLM",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": 24,
                "state_size": 4,
                "num_hidden_layers": 1,
                "intermediate_size": 48,
                "time_step_rank": 4,
            },
        ),
        tokens,
        ("logits",),
        {"batch": 1, "length": 6},
    ),
    "sd_unet": Architecture(Diffusion, diffusion_feed, ("noise",), {"batch": 1}),
    "bart": Architecture(
        transformer(
            "BartForConditionalGeneration", BART, TRANSLATION, ("logits",), use_cache=False
        ),
        translation_feed,
        ("logits",),
        {"batch": 2, "length": 10, "answer": 6},
        {**TOKENS, "answer": (2, 12)},
        TRANSLATION_AXES,
    ),
    "wavlm": Architecture(
        transformer(
            "WavLMForCTC",
            {**SPEECH, "num_buckets": 16, "max_bucket_distance": 32},
            ("input_values",),
            ("logits",),
        ),
        wav2vec2_feed,
        ("logits",),
        {"batch": 1, "samples": 400},
    ),
    "detector": Architecture(
        Detector,
        pixels(32),
        ("chosen", "boxes", "scores"),
        {"batch": 2},
        BATCH,
        BATCH_AXES,
        {"detector": True},
    ),
    "mamba2": Architecture(
        causal(
            "Mamba2ForCausalLM",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": 16,
                "state_size": 8,
                "num_hidden_layers": 1,
                "expand": 2,
                "head_dim": 8,
                "num_heads": 4,
                "n_groups": 2,
                "chunk_size": 4,
            },
        ),
        tokens,
        ("logits",),
        {"batch": 1, "length": 8},
    ),
    "graph_attention": Architecture(
        GraphNetwork,
        graph_feed,
        ("scores",),
        {"nodes": 12, "edges": 40},
        {"nodes": (3, 30), "edges": (2, 90)},
        {"nodes": {0: "nodes"}, "edges": {1: "edges"}},
    ),
    "swin2sr": Architecture(
        vision(
            "Swin2SRForImageSuperResolution",
            {
                "image_size": 8,
                "embed_dim": 16,
                "depths": [2],
                "num_heads": [2],
                "window_size": 4,
                "upscale": 2,
                "upsampler": "pixelshuffledirect",
                **EAGER,
            },
            ("reconstruction",),
        ),
        pixels(8),
        ("reconstruction",),
        {"batch": 1},
    ),
}
