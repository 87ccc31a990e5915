"""CTranslate2 in f32: encoders of BERT without masks and of Whisper, by its converter for
transformers' modules.

In: a network's folder, of which the name counts; then the made file, inputs. Out: a folder; calls.
Not done here: what runs them (``convert``, ``peer_child``).
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from collections.abc import Callable
from typing import Any

PACKAGES = ("ctranslate2==4.8.5", "torch==2.13.0", "transformers==5.24.0")
MODULE = "ctranslate2"
SUFFIX = ".ct2"


def convert(folder: str, made: str) -> None:
    """Write the engine's folder. Its converter reads a saved model with its words, on which the
    results of an encoder do not depend."""
    from tests.benchmarks.networks import network

    model = network(os.path.basename(folder)).module.inner
    kind = model.config.model_type
    if kind not in _SAVERS:
        raise ValueError(f"no converter for an encoder of the kind {kind}")
    converters = importlib.import_module("ctranslate2.converters")
    with tempfile.TemporaryDirectory() as work:
        _SAVERS[kind](model, work)
        converters.TransformersConverter(work).convert(made)


def _save_bert(model: Any, folder: str) -> None:
    model.config.position_embedding_type = "absolute"  # which the converter asks for
    model.save_pretrained(folder)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *(f"w{at}" for at in range(len(special), model.config.vocab_size))]
    _write(folder, "vocab.txt", "\n".join(words))
    _write(folder, "tokenizer_config.json", json.dumps({"tokenizer_class": "BertTokenizer"}))


def _save_whisper(model: Any, folder: str) -> None:
    """The converter knows it with a decoder alone."""
    whole = importlib.import_module("transformers").WhisperForConditionalGeneration(model.config)
    whole.model.encoder = model
    whole.save_pretrained(folder)
    words = ["<|endoftext|>", *(f"w{at}" for at in range(1, model.config.vocab_size))]
    _write(folder, "vocab.json", json.dumps({word: at for at, word in enumerate(words)}))
    _write(folder, "merges.txt", "#version: 0.2\n")
    _write(folder, "tokenizer_config.json", json.dumps({"tokenizer_class": "WhisperTokenizer"}))


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


_SAVERS: dict[str, Callable[[Any, str], None]] = {"bert": _save_bert, "whisper": _save_whisper}


def open_model(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Callable[[], object]:
    """Load it for one caller; inputs are taken and results copied in each call."""
    import numpy as np

    engine = importlib.import_module(MODULE)
    settings = {
        "compute_type": "float32",
        "intra_threads": options["threads"],
        "inter_threads": 1,
    }
    view = engine.StorageView.from_array
    if "input_features" in inputs:
        whisper, features = engine.models.Whisper(path, **settings), inputs["input_features"]
        return lambda: [np.array(whisper.encode(view(features), to_cpu=True))]
    encoder = engine.Encoder(path, **settings)
    tokens = inputs["input_ids"].astype(np.int32)
    lengths = np.full(len(tokens), tokens.shape[1], np.int32)
    return lambda: [np.array(encoder.forward_batch(view(tokens), view(lengths)).last_hidden_state)]
