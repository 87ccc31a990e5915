"""Small exports of decoders with caches, by both torch exporters: ``tests/unit/artifacts/test_decoders.py``.

In: a folder, names as ``llama.dynamo`` (all without one); PyTorch and transformers, which the tests
never need. Out: per name ``NAME.onnx`` and ``NAME.npz``: inputs at ten lengths and what PyTorch
answers, in f32. Not done here: networks without caches (``make_models.py``), models of the GenAI
builder (``make_genai_decoders.py``).

    pip install torch==2.13.0 transformers==5.23.0 onnxscript==0.7.2
    python tests/models/make_decoders.py FOLDER [NAME ...]

The names of inputs and outputs are those of optimum. Those that are kept in ``decoders`` are
``llama.torchscript`` and ``qwen3.dynamo``.
"""

# torch and transformers are not in the environment of the checks.
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
import transformers as hf
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

LAYERS, HEADS, WIDTH, TOKENS, FRAMES = 2, 4, 64, 48, 6
LENGTHS = ((1, 0), (1, 1), (1, 7), (1, 8), (1, 20), (5, 0), (3, 5), (8, 1), (17, 0), (2, 18))
"""New tokens, and those before them; every second case has a batch of two."""
_SIZES = {
    "vocab_size": TOKENS,
    "hidden_size": WIDTH,
    "intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GROUPED = {**_SIZES, "num_key_value_heads": 2}
_GEMMA = {**_SIZES, "head_dim": 16}
_WINDOW = {"sliding_window": 8, "query_pre_attn_scalar": 16}
_EXPERTS = {**_GROUPED, "num_experts_per_tok": 2}
_LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_WHISPER = {
    "vocab_size": TOKENS,
    "d_model": WIDTH,
    "encoder_layers": 1,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_source_positions": 32,
    "num_mel_bins": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_T5 = {
    "vocab_size": TOKENS,
    "d_model": WIDTH,
    "d_kv": 16,
    "d_ff": 64,
    "num_layers": 1,
    "num_decoder_layers": LAYERS,
    "num_heads": HEADS,
    "decoder_start_token_id": 0,
}
CAUSAL = {
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig, _GROUPED),
    "llama3": (hf.LlamaForCausalLM, hf.LlamaConfig, {**_GROUPED, "rope_parameters": _LLAMA_3}),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config, _GROUPED),
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config, {**_GROUPED, "head_dim": 16}),
    "gemma": (hf.GemmaForCausalLM, hf.GemmaConfig, {**_GEMMA, "num_key_value_heads": 1}),
    "gemma2": (
        hf.Gemma2ForCausalLM,
        hf.Gemma2Config,
        {**_GEMMA, **_WINDOW, "num_key_value_heads": 2},
    ),
    "gemma3": (
        hf.Gemma3ForCausalLM,
        hf.Gemma3TextConfig,
        {**_GEMMA, **_WINDOW, "num_key_value_heads": 1},
    ),
    "phi": (hf.PhiForCausalLM, hf.PhiConfig, _SIZES),
    "phi3": (hf.Phi3ForCausalLM, hf.Phi3Config, _GROUPED),
    "gpt2": (
        hf.GPT2LMHeadModel,
        hf.GPT2Config,
        {
            "vocab_size": TOKENS,
            "n_embd": WIDTH,
            "n_layer": LAYERS,
            "n_head": HEADS,
            "n_positions": 512,
        },
    ),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig, {**_GROUPED, "sliding_window": 8}),
    "mixtral": (hf.MixtralForCausalLM, hf.MixtralConfig, {**_EXPERTS, "num_local_experts": 4}),
    "qwen2_moe": (
        hf.Qwen2MoeForCausalLM,
        hf.Qwen2MoeConfig,
        {
            **_EXPERTS,
            "num_experts": 4,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 48,
        },
    ),
}
CROSSING = {
    "whisper": (hf.WhisperForConditionalGeneration, hf.WhisperConfig, _WHISPER),
    "t5": (hf.T5ForConditionalGeneration, hf.T5Config, _T5),
}
EXPORTERS = ("torchscript", "dynamo")
Caches = Sequence[Tensor]


def _cache(tensors: Caches) -> DynamicCache:
    return DynamicCache(list(zip(tensors[::2], tensors[1::2], strict=True)))


def _flat(cache: DynamicCache) -> tuple[Tensor, ...]:
    return tuple(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))


class Causal(nn.Module):
    """A language model whose caches are tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, past: Caches
    ) -> tuple[Tensor, ...]:
        """Return logits and caches."""
        result = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=_cache(past),
            use_cache=True,
        )
        return result.logits, *_flat(result.past_key_values)


class Crossing(nn.Module):
    """A decoder over the caches of its encoder, which it does not change."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, past: Caches, cross: Caches) -> tuple[Tensor, ...]:
        """Return logits and the caches that change."""
        caches = EncoderDecoderCache(_cache(past), _cache(cross))
        for layer in range(LAYERS):
            caches.is_updated[layer] = True
        encoded = torch.zeros(input_ids.shape[0], cross[0].shape[2], WIDTH)
        decoder = getattr(self.model, "model", self.model).decoder
        result = decoder(
            input_ids=input_ids,
            encoder_hidden_states=encoded,
            past_key_values=caches,
            use_cache=True,
        )
        head = getattr(self.model, "proj_out", None) or self.model.lm_head
        logits = head(result.last_hidden_state)
        return logits, *_flat(result.past_key_values.self_attention_cache)


def _draw_weights(model: nn.Module) -> None:
    """Weights that leave activations near one, so that attention is not uniform."""
    with torch.no_grad():
        for _, weight in sorted(model.named_parameters()):
            if weight.ndim >= 2:
                weight.normal_(0, weight[0].numel() ** -0.5)


class Decoder:
    """One architecture: its module, names and sizes of its inputs."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        made, config, sizes = {**CAUSAL, **CROSSING}[name]
        self.crosses = name in CROSSING
        self.config = config(**sizes)
        model = made(self.config).eval()
        if "moe" in name or name == "mixtral":
            model.set_experts_implementation("batched_mm")
        _draw_weights(model)
        self.module = (Crossing if self.crosses else Causal)(model).eval()
        part = ".decoder" if self.crosses else ""
        pairs = [(layer, kind) for layer in range(LAYERS) for kind in ("key", "value")]
        self.past = [f"past_key_values.{layer}{part}.{kind}" for layer, kind in pairs]
        self.cross = [f"past_key_values.{layer}.encoder.{kind}" for layer, kind in pairs]
        self.cross = self.cross if self.crosses else []
        first = ["input_ids"] if self.crosses else ["input_ids", "attention_mask", "position_ids"]
        self.inputs = [*first, *self.past, *self.cross]
        self.outputs = ["logits", *(f"present.{layer}{part}.{kind}" for layer, kind in pairs)]

    def feed(self, batch: int, new: int, past: int) -> dict[str, Tensor]:
        """Inputs of these sizes."""
        heads = getattr(self.config, "num_key_value_heads", None) or HEADS
        depth = getattr(self.config, "head_dim", None) or WIDTH // HEADS
        if self.crosses:
            heads, depth = HEADS, 16
        mask = torch.ones(batch, past + new, dtype=torch.int64)
        if batch == 2 and past > 2:
            mask[1, :2] = 0  # a shorter prompt is filled up on its left
        positions = torch.arange(past, past + new)[None].repeat(batch, 1)
        ids = torch.randint(3, TOKENS, (batch, new))
        first = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        lengths = {**dict.fromkeys(self.past, past), **dict.fromkeys(self.cross, FRAMES)}
        caches = {
            name: torch.randn(batch, heads, lengths[name], depth)
            for name in (*self.past, *self.cross)
        }
        return {name: (first | caches)[name] for name in self.inputs}

    def arguments(self, feed: dict[str, Tensor]) -> tuple[object, ...]:
        """What the module takes."""
        first = [feed[name] for name in self.inputs if not name.startswith("past")]
        caches = [[feed[name] for name in names] for names in (self.past, self.cross) if names]
        return (*first, *caches)

    def axes(self, *, sums: bool) -> dict[str, dict[int, str]]:
        """Names of open sizes; ``sums``: as older exports spell them."""
        whole = "past_sequence_length + sequence_length" if sums else "total_sequence_length"
        tokens = {0: "batch_size", 1: "sequence_length"}
        first = {"input_ids": tokens, "attention_mask": {0: "batch_size", 1: whole}}
        found = {**first, "position_ids": tokens, "logits": tokens}
        for name in (*self.past, *self.cross, *self.outputs[1:]):
            length = whole if name in self.outputs else "past_sequence_length"
            found[name] = {0: "batch_size", 2: "encoder_length" if name in self.cross else length}
        return {name: found[name] for name in (*self.inputs, *self.outputs)}

    def export(self, path: Path, exporter: str) -> None:
        """Write the model."""
        arguments = self.arguments(self.feed(2, 3, 5))
        axes = self.axes(sums=exporter == "torchscript")
        names = {"input_names": self.inputs, "output_names": self.outputs}
        if exporter == "torchscript":
            how = {"dynamo": False, "opset_version": 17, "dynamic_axes": axes}
        else:
            first = [axes[name] for name in self.inputs if not name.startswith("past")]
            caches = [[axes[name] for name in names] for names in (self.past, self.cross) if names]
            how = {"dynamo": True, "external_data": False, "dynamic_shapes": (*first, *caches)}
        torch.onnx.export(self.module, arguments, str(path), **names, **how)


def _without_traces(path: Path) -> None:
    """Take out what the exporter tells of its own run."""
    model = onnx.load(path)
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del model.metadata_props[:]
    del model.graph.value_info[:]
    onnx.save(model, path)


def make(folder: Path, name: str) -> None:
    """One export and its cases."""
    architecture, exporter = name.split(".")
    decoder = Decoder(architecture)
    decoder.export(folder / f"{name}.onnx", exporter)
    _without_traces(folder / f"{name}.onnx")
    kept = {item.name for item in onnx.load(folder / f"{name}.onnx").graph.input}
    arrays: dict[str, np.ndarray] = {}
    for number, (new, past) in enumerate(LENGTHS):
        feed = decoder.feed(2 if number % 2 else 1, new, past)
        answers = decoder.module(*decoder.arguments(feed))
        named = dict(zip(decoder.outputs, answers, strict=True))
        for side, tensors in (("in", feed), ("out", named)):
            for key, tensor in tensors.items():
                if side == "out" or key in kept:
                    arrays[f"{number}/{side}/{key}"] = tensor.numpy()
    np.savez_compressed(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]  # its stub takes a name for an option
    print(name)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    every = [f"{name}.{exporter}" for name in (*CAUSAL, *CROSSING) for exporter in EXPORTERS]
    with torch.no_grad():
        for wanted in sys.argv[2:] or every:
            make(Path(sys.argv[1]), wanted)
