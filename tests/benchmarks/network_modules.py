"""Modules of networks that no library has, and what makes those of libraries return tensors.

In: ``torch``, or a module. Out: modules that take and return tensors. Not done here: inputs, names
(``networks``).
"""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any


def returning(model: Any, inputs: tuple[str, ...], output: str, **options: Any) -> Any:
    """A network of transformers or diffusers, with one output instead of a dictionary; its inputs
    have these names."""

    class Single(import_module("torch").nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
        """One output."""

        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.inner = model

        def forward(self, *values: Any) -> Any:
            """Call the network by its own argument names."""
            named = dict(zip(inputs, values, strict=True))
            return self.inner(**named, return_dict=True, **options)[output]

    return Single()


def returning_step(model: Any, layers: int) -> Any:
    """A decoder that makes one step: its caches are one tensor of keys and one of values."""
    torch: Any = import_module("torch")
    cache_class: Any = import_module("transformers").DynamicCache

    class Step(torch.nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
        """Caches as tensors."""

        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.inner = model

        def forward(self, ids: Any, positions: Any, keys: Any, values: Any) -> Any:
            """Return the logits and the longer caches."""
            cache = cache_class()
            for layer in range(layers):
                cache.update(keys[layer], values[layer], layer)
            found = self.inner(
                input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True
            )
            longer = [cache.layers[layer] for layer in range(layers)]
            return (
                found.logits,
                torch.stack([layer.keys for layer in longer]),
                torch.stack([layer.values for layer in longer]),
            )

    return Step()


def tagger(torch: Any) -> Any:
    """Two layers of LSTM in both directions over words."""
    nn: Any = torch.nn

    class Tagger(nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
        """Words to tags."""

        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.words = nn.Embedding(10000, 128)
            self.layers = nn.LSTM(128, 256, 2, batch_first=True, bidirectional=True)
            self.tags = nn.Linear(512, 50)

        def forward(self, ids: Any) -> Any:
            """Return a row of scores for each word."""
            return self.tags(self.layers(self.words(ids))[0])

    return Tagger()


def dlrm(torch: Any) -> Any:
    """A recommender: rows of 26 tables, their products with each other, two perceptrons."""
    nn: Any = torch.nn
    width, tables = 64, 26

    def perceptron(*widths: int) -> list[Any]:
        pairs = itertools.pairwise(widths)
        return [layer for pair in pairs for layer in (nn.Linear(*pair), nn.ReLU())]

    class Recommender(nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
        """A probability for each sample."""

        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.below = nn.Sequential(*perceptron(13, 512, 256, width))
            self.tables = nn.ModuleList(nn.Embedding(1000, width) for _ in range(tables))
            pairs = (tables + 1) * tables // 2
            above = perceptron(width + pairs, 512, 256)
            self.above = nn.Sequential(*above, nn.Linear(256, 1), nn.Sigmoid())
            self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

        def forward(self, dense: Any, cats: Any) -> Any:
            """Return the probabilities."""
            first = self.below(dense)
            rows = [table(cats[:, at]) for at, table in enumerate(self.tables)]
            stacked = torch.stack([first, *rows], 1)
            products = stacked @ stacked.transpose(1, 2)
            chosen = products[:, self.pairs[0], self.pairs[1]]
            return self.above(torch.cat([first, chosen], 1))

    return Recommender()


def superres(torch: Any) -> Any:
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

        def forward(self, image: Any) -> Any:
            """Return the larger image."""
            first = found = self.head(image)
            for block in self.blocks:
                found = found + block(found)
            return self.tail(first + self.last(found))

    return SuperResolution()
