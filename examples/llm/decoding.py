"""Tokens of a decoder, one after the other: numpy and the loader, nothing else.

In: a session of a decoder with caches, numbers of tokens. Out: the next ones, as they come. Not
done here: text (``generate``).
"""

from collections.abc import Iterator

import numpy as np

import ingot_runtime

TOKENS = ("input_ids", "attention_mask", "position_ids")


def chosen(logits: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    """The most probable token, or with a temperature one by chance."""
    if not temperature:
        return int(logits.argmax())
    weights = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def carried(session: ingot_runtime.Session, window: int) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return what a model continues beside its states, as it begins, and the outputs that continue
    it, both in the model's order: caches of ``window`` rows, states of linear attention."""
    given = [it for it in session.inputs if it.name not in session.states and it.name not in TOKENS]
    made = [it.name for it in session.outputs if it.name not in session.states.values()]
    begun: dict[str, np.ndarray] = {}
    for it in given:
        batch, *sizes = (size if isinstance(size, int) else 0 for size in it.shape)
        begun[it.name] = np.zeros((batch or 1, *(size or window for size in sizes)), it.dtype)
    return begun, [name for name in made if name != "logits"]


def generated(
    session: ingot_runtime.Session,
    prompt: list[int],
    count: int,
    temperature: float = 0.0,
    seed: int = 0,
    end: int | None = None,
    window: int = 0,
) -> Iterator[int]:
    """Yield up to ``count`` tokens behind a prompt, until the token ``end`` comes; ``window``: rows
    of caches that have the size of a sliding window, at least that of the model."""
    ranks = {tensor.name: len(tensor.shape) for tensor in session.inputs}
    sequence, rng = session.sequence(), np.random.default_rng(seed)
    others, made = carried(session, window)
    tokens, stop = prompt, 0
    for _ in range(count):
        start, stop = stop, stop + len(tokens)
        positions = np.arange(start, stop)[None]
        inputs = {
            "input_ids": np.array([tokens]),
            "attention_mask": np.ones((1, stop), np.int64),
            # Models that see have three: in time, down and across.
            "position_ids": np.stack([positions] * 3) if ranks.get(TOKENS[2]) == 3 else positions,
        }
        # Of the three, a model has those that its exporter kept.
        given = {name: inputs[name] for name in TOKENS if name in ranks}
        result = sequence.run(given | others)
        others = dict(zip(others, (result[name] for name in made), strict=True))
        token = chosen(result["logits"][0, -1], temperature, rng)
        if token == end:
            return
        yield token
        tokens = [token]
