"""A decoder of real proportions whose caches have a fixed length, for ``bench_decode``.

In: a folder; PyTorch and transformers as ``tests/models/make_decoders.py`` needs them. Out:
``llama_64.static.onnx``: the sizes of ``llama_64`` of ``export_decoders``, a ``StaticCache`` of 4,160
rows that is given and returned. Not done here: measuring.

    python tests/benchmarks/export_static_cache.py FOLDER
"""

# torch and transformers are not in the environment of the checks.
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

ROWS, LAYERS, GROUPS, DEPTH = 4160, 6, 8, 64
SIZES = {"vocab_size": 8192, "hidden_size": 1024, "intermediate_size": 2816}
HEADS = {"num_attention_heads": 16, "num_key_value_heads": GROUPS, "head_dim": DEPTH}


class WithCaches(torch.nn.Module):
    """The network with its caches as arguments and results."""

    def __init__(self) -> None:
        """Draw the weights."""
        super().__init__()
        torch.manual_seed(0)
        layers = {"num_hidden_layers": LAYERS, "max_position_embeddings": 8192}
        config = LlamaConfig(**SIZES, **HEADS, **layers)
        config._attn_implementation = "sdpa"
        self.model = LlamaForCausalLM(config).eval()

    def forward(
        self, input_ids: torch.Tensor, cache_position: torch.Tensor, past: list[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Write the rows of ``cache_position``, and read all of them."""
        cache = StaticCache(config=self.model.config, max_cache_len=ROWS)
        for layer, keys, values in zip(cache.layers, past[::2], past[1::2], strict=True):
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
            first = cache_position[:1] if layer.cumulative_length.dim() else cache_position[0]
            layer.cumulative_length = first.clone()
        positions = cache_position[None]
        result = self.model(input_ids=input_ids, position_ids=positions, past_key_values=cache)
        return result.logits, *(x for layer in cache.layers for x in (layer.keys, layer.values))


def export(path: Path) -> None:
    """One file, of any number of tokens."""
    names = [f"{layer}.{what}" for layer in range(LAYERS) for what in ("key", "value")]
    past = [torch.zeros(1, GROUPS, ROWS, DEPTH) for _ in names]
    tokens = torch.export.Dim("sequence_length", min=1, max=ROWS)
    with torch.no_grad():
        torch.onnx.export(
            WithCaches(),
            (torch.ones(1, 3, dtype=torch.int64), torch.arange(3), past),
            dynamo=True,
            input_names=["input_ids", "cache_position", *(f"past.{name}" for name in names)],
            output_names=["logits", *(f"present.{name}" for name in names)],
            dynamic_shapes=({1: tokens}, {0: tokens}, [{} for _ in names]),
        ).save(str(path))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    export(folder / "llama_64.static.onnx")
