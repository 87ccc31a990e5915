"""Decoders of real proportions with random weights, for ``bench_decode``.

In: a folder, names (all without any); for those that end in ``.torchscript`` and ``.dynamo`` PyTorch
and transformers as ``tests/models/make_decoders.py`` needs them. Out: ``NAME.onnx``. Not done here:
measuring.

    python tests/benchmarks/export_decoders.py FOLDER [NAME ...]
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))

TOKENS, POSITIONS, LAYERS = 8192, 8192, 6
# Heads, heads of keys, depth of a head.
LLAMAS = {"llama_64": (16, 8, 64), "llama_128": (8, 4, 128), "llama_32": (32, 8, 32)}
CACHES_ALONE = {"caches_64": (16, 8, 64), "caches_128": (8, 4, 128), "caches_own": (12, 12, 64)}
TORCH = [f"{name}.{how}" for name in (*LLAMAS, "gpt2") for how in ("torchscript", "dynamo")]
GENAI = [f"{name}.genai" for name in (*LLAMAS, *CACHES_ALONE)]


def export_genai(path: Path, name: str) -> None:
    """A model of the GenAI builder's form; one of caches alone has nearly no weights."""
    genai: Any = import_module("genai_decoder")
    heads, groups, depth = (LLAMAS | CACHES_ALONE)[name]
    width, inner, tokens = (64, 64, 64) if name in CACHES_ALONE else (1024, 2816, TOKENS)
    sizes = genai.GenaiSizes(LAYERS, width, heads, groups, depth, inner, tokens, POSITIONS)
    path.write_bytes(genai.genai_decoder(sizes).SerializeToString())


def export_torch(path: Path, name: str, exporter: str) -> None:
    """What an exporter of PyTorch makes of an architecture."""
    made: Any = import_module("make_decoders")
    made.LAYERS, made.TOKENS, made.WIDTH, made.HEADS = LAYERS, TOKENS, 768, 12
    sizes = {"vocab_size": TOKENS, "n_embd": 768, "n_layer": LAYERS, "n_head": 12}
    sizes["n_positions"] = POSITIONS
    if name in LLAMAS:
        heads, groups, depth = LLAMAS[name]
        made.WIDTH, made.HEADS = 1024, heads
        sizes = {"vocab_size": TOKENS, "hidden_size": 1024, "intermediate_size": 2816}
        sizes |= {"num_hidden_layers": LAYERS, "num_attention_heads": heads}
        sizes |= {"num_key_value_heads": groups, "head_dim": depth}
        sizes["max_position_embeddings"] = POSITIONS
    architecture = "llama" if name in LLAMAS else name
    made.CAUSAL[architecture] = (*made.CAUSAL[architecture][:2], sizes)
    with made.torch.no_grad():
        made.Decoder(architecture).export(path, exporter)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for wanted in sys.argv[2:] or [*GENAI, *TORCH]:
        model, how = wanted.split(".")
        if how == "genai":
            export_genai(folder / f"{wanted}.onnx", model)
        else:
            export_torch(folder / f"{wanted}.onnx", model, how)
        print(wanted, flush=True)
