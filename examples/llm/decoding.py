"""Tokens of a decoder, one after the other: numpy and the loader, nothing else.

In: a session of a decoder with caches, numbers of tokens. Out: the next ones, as they come. Not
done here: text (``generate``).
"""

from collections.abc import Iterator

import numpy as np

import ingot_runtime


def chosen(logits: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    """The most probable token, or with a temperature one by chance."""
    if not temperature:
        return int(logits.argmax())
    weights = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def generated(
    session: ingot_runtime.Session,
    prompt: list[int],
    count: int,
    temperature: float = 0.0,
    seed: int = 0,
    end: int | None = None,
    sizes: dict[str, int] | None = None,
) -> Iterator[int]:
    """Yield up to ``count`` tokens behind a prompt, until the token ``end`` comes; ``sizes``: those
    that the model leaves open, by name, such as the length of caches of a sliding window."""
    ranks = {tensor.name: len(tensor.shape) for tensor in session.inputs}
    sequence, rng = session.sequence(sizes=sizes), np.random.default_rng(seed)
    tokens, stop = prompt, 0  # a sequence whose caches have one length does not tell it
    for _ in range(count):
        start, stop = stop, stop + len(tokens)
        positions = np.arange(start, stop)[None]
        inputs = {
            "input_ids": np.array([tokens]),
            "attention_mask": np.ones((1, stop), np.int64),
            # Models that see have three: in time, down and across.
            "position_ids": np.stack([positions] * 3)
            if ranks.get("position_ids") == 3
            else positions,
        }
        # Of the three, a model has those that its exporter kept.
        result = sequence.run({name: inputs[name] for name in inputs if name in ranks})
        token = chosen(result["logits"][0, -1], temperature, rng)
        if token == end:
            return
        yield token
        tokens = [token]
