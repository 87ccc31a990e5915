"""GroupQueryAttention whose samples are padded, or whose cache has the size of its window.

In: nothing. Out: ``CASES``. Not done here: running them.

Rows of a cache that no position has are unspecified: NaN in the pasts here, 0 in the presents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.contrib.cases_attention import attention, heads_of, rotate, scores_of
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

_H, _G, _D = 4, 2, 16
_SINKS = drawn(_H, seed=16)


def _kept(total: int, window: int, held: int) -> int:
    """The schema's L: how many of the last positions a cache of ``held`` rows has."""
    slack = held - window + 1
    return total if total <= held else total - slack * -(-(total - held) // slack)


def _sample(
    q: Array, rows: Sequence[Array], past: int, total: int, window: int, added: Any, **how: Any
) -> Array:
    """Queries [1, H, S, D] at positions from ``past``, those behind the last one as if there, of
    the keys and values of all positions."""
    queries: Array = np.arange(int(q.shape[2])) + past
    places = np.minimum(queries, total - 1)[:, None]
    keys: Array = np.arange(total)
    kept: Any = (keys <= places) & ((keys > places - window) if window else True)
    scores = scores_of(q, rows[0])
    cap = how.get("cap", 0.0)
    scores = cap * np.tanh(scores / cap) if cap else scores
    sink = _SINKS[:, None, None] if how.get("sinks") else None
    return attention(scores, rows[1], np.where(kept, added, -np.inf), sink)


def _case(
    name: str,
    totals: Sequence[int],
    new: int,
    *,
    held: int = 6,
    window: int = 4,
    own: Sequence[int] | None = None,
    is_whole: bool = False,
    is_numpy_only: bool = False,
    **how: Any,
) -> ContribCase:
    """``totals``: positions of each sample after a call of ``new`` rows, of which ``own`` are real;
    ``held``: rows of the cache, all keys with ``is_whole``."""
    batch = len(totals)
    q, k, v = (drawn(batch, new, n * _D, seed=n) for n in (_H, _G, 3))
    v = v[..., : _G * _D].copy()
    history = [drawn(batch, _G, max(totals), _D, seed=seed) for seed in (20, 21)]
    pasts = [np.full((batch, _G, held, _D), np.nan, np.float32) for _ in history]
    presents = [np.zeros_like(past) for past in pasts]
    is_first = own is None and new == max(totals)
    bias = drawn(1, 1, new, max(totals), seed=22) if how.get("bias") else None
    results: list[Array] = []
    for b, total in enumerate(totals):
        past = 0 if is_first else total - (new if own is None else own[b])
        at = np.arange(new)[None] + past
        queries, keys, values = (heads_of(x[b : b + 1], n) for x, n in ((q, _H), (k, _G), (v, _G)))
        if how.get("rotary"):
            queries, keys = rotate(queries, at), rotate(keys, at)
        rows: list[Array] = []
        for old, fresh, before, after in zip(history, (keys, values), pasts, presents, strict=True):
            row = np.concatenate([old[b : b + 1, :, :past], fresh], 2)[:, :, :total]
            rows.append(row)
            for cache, count in ((before, past), (after, total)):
                length = count if is_whole else _kept(count, window, held)
                cache[b, :, :length] = row[0, :, count - length : count]
        added = 0.0 if bias is None else bias[..., :total]
        results.append(_sample(queries, rows, past, total, window, added, **how))
    operands: list[Array | None] = [q, k, v, *pasts]
    operands += [np.array(totals, np.int32) - 1, np.array(max(totals), np.int32)]
    operands += _tables() if how.get("rotary") else [None, None]
    operands += [None, bias, _SINKS if how.get("sinks") else None, None, None, None, None]
    operands += [None if own is None else np.array(own, np.int32)]
    while operands[-1] is None:
        operands.pop()
    attributes: dict[str, Any] = {"num_heads": _H, "kv_num_heads": _G}
    attributes |= {"local_window_size": window} if window else {}
    attributes |= {} if is_whole else {"sliding_window_cache": 1}
    attributes |= {"softcap": how["cap"]} if how.get("cap") else {}
    attributes |= {"do_rotary": 1} if how.get("rotary") else {}
    return ContribCase(
        f"GroupQueryAttention {name}",
        "GroupQueryAttention",
        operands,
        [np.concatenate(results), *(f32(present) for present in presents)],
        attributes,
        is_numpy_only=is_numpy_only,
    )


def _tables() -> list[Array | None]:
    angles = np.outer(np.arange(16), 10000.0 ** -(np.arange(8) / 8))
    return [f32(np.cos(angles)), f32(np.sin(angles))]


CASES = [
    _case("window cache, prompt", [3, 3], 3),
    _case("window cache, prompt that exceeds it", [9, 9], 9),
    _case("window cache, prompt that ends where it evicts", [7], 7),
    _case("window cache, token", [6, 6], 1),
    _case("window cache, tokens of different lengths", [11, 5], 1),
    _case("window cache without slack", [9, 3], 1, held=4),
    _case("window cache, several tokens", [12], 4),
    _case("window cache, more tokens than it holds", [14], 9, held=5, window=3),
    _case("window cache, softcap", [8, 8], 1, cap=0.5),
    _case("window cache, sinks", [8, 4], 1, sinks=True),
    _case("window cache, rotation", [8, 4], 1, rotary=True, sinks=True),
    _case("window cache, rotation in a prompt", [9], 9, rotary=True),
    _case("window cache, bias of scores", [9], 3, bias=True),
    _case("window cache, prompts of different lengths", [9, 2], 9, cap=0.5, is_numpy_only=True),
    _case("window cache, own rows", [9, 3, 7], 4, own=[3, 0, 4], rotary=True, is_numpy_only=True),
    _case(
        "own rows",
        [9, 3, 7],
        4,
        own=[3, 0, 4],
        held=12,
        window=0,
        is_whole=True,
        is_numpy_only=True,
    ),
    _case(
        "window in prompts of different lengths",
        [9, 2],
        9,
        held=9,
        cap=0.5,
        is_whole=True,
        is_numpy_only=True,
    ),
]
