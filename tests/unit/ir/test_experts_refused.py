"""Mixtures of experts and layers with a state that contradict themselves: refused by node, never read
outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.contrib import cases_experts, cases_states
from tests.contrib.contrib_case import Array

import ingot
from ingot_compiler.ir.errors import ModelError, UnsupportedError

_CASES = {case.name: case for case in (*cases_experts.CASES, *cases_states.CASES)}
_MIXTURE, _SHARED = "MoE silu, 3 of 5, as they are", "QMoE 4 bits, blocks of 16, with other shares"
_BLOCKS, _COLUMNS = "QMoE 4 bits, blocks of 16", "QMoE 4 bits, columns, with zero points"
_LINEAR = "LinearAttention gated_delta, heads 2, 2 and 4"
_CAUSAL = "CausalConvWithState of a prompt"
Change = Callable[[Array], Array | None]


def _fewer(x: Array) -> Array:
    return x[:3]


def _narrower(x: Array) -> Array:
    return x[..., :-2]


def _doubled(x: Array) -> Array:
    return np.concatenate([x, x], 1)


def _fewer_bytes(x: Array) -> Array:
    return x[:, :, :-3]


def _fewer_rows(x: Array) -> Array:
    return x[:, :-2]


def _shorter(x: Array) -> Array:
    return x[:, :, :-1]


def _fewer_channels(x: Array) -> Array:
    return x[:, :-1]


def _absent(_: Array) -> None:
    return None


@pytest.mark.parametrize(
    ("name", "position", "change", "words"),
    [
        (_MIXTURE, 0, _narrower, "equal inner sizes"),
        (_MIXTURE, 1, _fewer, "equal element counts"),
        (_MIXTURE, 1, _narrower, "expected 3 experts, as scores have, got 5"),
        (_MIXTURE, 1, _doubled, "expected 10 experts"),
        (_MIXTURE, 3, _fewer, "expected 5 experts, as scores have, got 3"),
        (_MIXTURE, 4, _fewer, "expected 5 experts, as scores have, got 3"),
        (_SHARED, 14, _narrower, "expected 5 experts, as scores have, got 3"),
        (_SHARED, 14, _fewer, "expected 7 tokens, as scores have, got 3"),
        (_BLOCKS, 2, _fewer_bytes, "block_size"),
        (_BLOCKS, 3, _fewer_rows, "a parameter for each"),
        (_BLOCKS, 3, _absent, "operand 3"),
        (_COLUMNS, 11, _fewer, "expected 5 experts, as scores have, got 3"),
        (_COLUMNS, 11, _narrower, "expected indices in"),
        (_LINEAR, 3, _shorter, "equal"),
        (_LINEAR, 4, _absent, "decay, which the rule needs"),
        (_CAUSAL, 0, _fewer_channels, "6 channels"),
        (_CAUSAL, 3, _shorter, "3 elements"),
    ],
)
def test_operands_that_do_not_fit(name: str, position: int, change: Change, words: str) -> None:
    """Of sizes that the file tells."""
    case = _CASES[name]
    operands: Sequence[Array | None] = list(case.operands)
    given = operands[position]
    assert given is not None
    changed = [*operands[:position], change(given), *operands[position + 1 :]]
    with pytest.raises(ModelError, match=words):
        ingot.compile(replace(case, operands=changed).model())


@pytest.mark.parametrize(
    ("name", "attributes", "words"),
    [
        (_MIXTURE, {"k": 9}, "k of 1 to 5, got 9"),
        (_MIXTURE, {"k": 0}, "k of 1 to 5, got 0"),
        (_MIXTURE, {"activation_type": "tanhh"}, "tanhh"),
        (_BLOCKS, {"block_size": 24}, "block_size"),
        (_BLOCKS, {"expert_weight_bits": 3}, "numbers of 3 bits"),
        (_BLOCKS, {"quant_type": "fp4"}, "floats of a few bits"),
        (_BLOCKS, {"weights_prepacked": 1}, "packed for a GPU"),
        (_LINEAR, {"q_num_heads": 3}, "3 heads"),
        (_LINEAR, {"update_rule": "x"}, "update_rule"),
        (_LINEAR, {"state_window": 2}, "window of states"),
        (_CAUSAL, {"dilation": 0}, "a dilation of at least 1"),
        (_CAUSAL, {"ndim": 2}, "images and volumes"),
    ],
)
def test_attributes_that_do_not_fit(name: str, attributes: dict[str, Any], words: str) -> None:
    """Out of range, or what ONNX Runtime has on GPUs alone."""
    case = _CASES[name]
    changed = replace(case, attributes={**case.attributes, **attributes})
    with pytest.raises((ModelError, UnsupportedError), match=words):
        ingot.compile(changed.model())
