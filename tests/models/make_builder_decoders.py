"""Small decoders that the builder of ONNX Runtime GenAI wrote itself, and what ONNX Runtime answers:
``tests/unit/runtime/test_builder_decoders.py``.

In: a folder, names as ``gpt_oss`` (all without one); PyTorch, transformers, onnxruntime and the
builder, which the tests never need. Out: per name ``NAME.builder.onnx`` and ``NAME.builder.npz``:
inputs of ten calls and the answers. Not done here: graphs in the builder's form with other sizes
(``make_genai_decoders.py``).

    pip install torch==2.13.0 transformers==5.24.0 onnxruntime==1.32.0 onnxruntime-genai==0.18.0
    python tests/models/make_builder_decoders.py FOLDER [NAME ...]

Weights are random. The vocabulary is no other size of the network: the builder takes any matrix of so
many rows for that of the logits.
"""

# PyTorch, transformers and the builder are not in the environment of the checks.
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers as hf
from tokenizers import Tokenizer, models

TOKENS, WINDOW, DEPTH = 96, 8, 16
# New tokens, those before them, the batch: ONNX Runtime takes several new tokens behind others of
# one sequence only.
CALLS = (
    (1, 0, 1), (1, 1, 2), (1, 7, 1), (1, 8, 2), (1, 20, 1),
    (5, 0, 2), (3, 5, 1), (8, 1, 1), (17, 0, 1), (2, 18, 1),
)  # fmt: skip
_SIZES = {
    "vocab_size": TOKENS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": DEPTH,
    "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False,
}  # fmt: skip


def _gpt_oss() -> tuple[torch.nn.Module, str]:
    """Experts gated with limits, sinks, a cache of the size of a window beside a whole one."""
    config = hf.GptOssConfig(
        **_SIZES, num_local_experts=4, num_experts_per_tok=2, sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    return hf.GptOssForCausalLM(config), "GptOssForCausalLM"


def _qwen3_5_moe() -> tuple[torch.nn.Module, str]:
    """Linear attention and a causal convolution, rotary positions of three streams, experts."""
    rotary = {
        "rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1],
        "partial_rotary_factor": 0.5, "mrope_interleaved": True,
    }  # fmt: skip
    text = {
        **_SIZES, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "num_experts": 4,
        "layer_types": ["linear_attention", "full_attention"], "num_experts_per_tok": 2,
        "moe_intermediate_size": 24, "shared_expert_intermediate_size": 24,
        "rope_parameters": rotary,
    }  # fmt: skip
    vision = {
        "depth": 1, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "in_channels": 3,
        "patch_size": 4, "out_hidden_size": 32, "num_position_embeddings": 16,
    }  # fmt: skip
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    config = hf.Qwen3_5MoeConfig(
        text_config=text, vision_config=vision, **{name: 90 + i for i, name in enumerate(names)}
    )
    name = "Qwen3_5MoeForConditionalGeneration"
    return hf.Qwen3_5MoeForConditionalGeneration(config), name


NETWORKS = {"gpt_oss": _gpt_oss, "qwen3_5_moe": _qwen3_5_moe}


def _write_checkpoint(name: str, folder: Path) -> None:
    torch.manual_seed(0)
    network, architecture = NETWORKS[name]()
    for weights in network.parameters():
        middle = float(weights.mean()) if weights.dim() == 1 else 0.0
        torch.nn.init.normal_(weights, mean=middle, std=0.08 if weights.dim() > 1 else 0.05)
    network.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": [architecture]}))
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i for i in range(3, TOKENS)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)


def make(folder: Path, name: str) -> None:
    """One model and its cases."""
    path = folder / f"{name}.builder.onnx"
    with tempfile.TemporaryDirectory() as work:
        source, made = Path(work, "source"), Path(work, "made")
        _write_checkpoint(name, source)
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source)]
        command += ["-o", str(made), "-p", "fp32", "-e", "cpu", "-c", str(Path(work, "cache"))]
        subprocess.run([*command, "--extra_options", "hf_token=false"], check=True)
        onnx.save(onnx.load(made / "model.onnx"), path)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    arrays: dict[str, np.ndarray] = {}
    for number, call in enumerate(CALLS):
        feed = _feed(session, *call)
        arrays |= {f"{number}/in/{key}": array for key, array in feed.items()}
        for output, array in zip(session.get_outputs(), session.run(None, feed), strict=True):
            arrays[f"{number}/out/{output.name}"] = array
    np.savez_compressed(folder / f"{name}.builder.npz", allow_pickle=False, **arrays)


def _feed(session: ort.InferenceSession, new: int, past: int, batch: int) -> dict[str, np.ndarray]:
    """Numbers for all inputs; a cache of the size of a window has as many rows."""
    sizes = {
        "batch_size": batch, "sequence_length": new, "past_sequence_length": past,
        "total_sequence_length": past + new, "past_sliding_length": WINDOW, "kv_cache_dim": DEPTH,
    }  # fmt: skip
    rng, feed = np.random.default_rng([new, past, batch]), dict[str, np.ndarray]()
    for item in session.get_inputs():
        shape = [size if isinstance(size, int) else sizes[size] for size in item.shape]
        if item.name == "input_ids":
            feed[item.name] = rng.integers(3, 90, shape)
        elif item.name == "attention_mask":
            feed[item.name] = np.ones(shape, np.int64)
        elif item.name == "position_ids":
            feed[item.name] = np.broadcast_to(np.arange(past, past + new), shape).copy()
        else:
            feed[item.name] = rng.normal(0, 0.5, shape).astype(np.float32)
    return feed


def main() -> None:
    """Make what is asked for."""
    folder, *names = sys.argv[1:]
    for name in names or NETWORKS:
        make(Path(folder), name)


if __name__ == "__main__":
    main()
