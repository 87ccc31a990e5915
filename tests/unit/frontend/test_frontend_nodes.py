"""The onnx package's node cases through frontend and interpreter: as they are, with sizes unknown,
with operands fixed."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cache

import pytest
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from tests.conformance.cases import RANDOM
from tests.harness.frontend_harness import Outcome, fixed, run_model, symbolic

BROAD_STRIDE = 10
# Translations that ask for sizes which the symbolic form of these cases does not give.
_FIXED_SIZES = ("_gru_", "_lstm_", "_rnn_", "_resize_", "_upsample_", "_gridsample_")
# What they expect is further from the truth than what they get: f16 values with the rounding of
# every intermediate result, and the f32 noise of numpy's transform in place of zeros.
_ROUGHER = frozenset(
    (
        "test_attention_4d_causal_fp16",
        "test_attention_4d_causal_fp16_expanded",
        "test_dft_inverse",
        "test_dft_inverse_opset19",
    )
)


@cache
def _cases() -> tuple[TestCase, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    return tuple(
        sorted(
            (case for case in cases if case.data_sets and len(case.data_sets) == 1),
            key=lambda case: case.name,
        )
    )


def _run(case: TestCase, form: str) -> Outcome:
    assert case.model is not None
    assert case.data_sets is not None
    model = case.model
    inputs: Sequence[object] = case.data_sets[0][0]
    expected: Sequence[object] = case.data_sets[0][1]
    if "fixed" in form:
        model, inputs = fixed(model, inputs)
    if "symbolic" in form:
        model = symbolic(model)
    return run_model(model, inputs, expected, case.rtol, case.atol)


def _wrong(cases: tuple[TestCase, ...], form: str) -> tuple[list[str], Counter[str]]:
    """Cases that neither agree nor are refused as unsupported, and how many there are of each
    kind."""
    outcomes = {case.name: _run(case, form) for case in cases}
    wrong = [
        f"{name}: {found.kind}, {found.detail}"
        for name, found in outcomes.items()
        if found.kind not in ("agrees", "unsupported")
        and not (found.kind == "differs" and (name in _ROUGHER or RANDOM.search(name)))
    ]
    return wrong, Counter(found.kind for found in outcomes.values())


@pytest.mark.parametrize("form", ["plain", "fixed"])
@pytest.mark.parametrize("stride", [50, pytest.param(BROAD_STRIDE, marks=pytest.mark.broad)])
def test_some_node_cases_agree(form: str, stride: int) -> None:
    """A case is right or refused by name; with operands fixed (axes, shapes), it takes the
    compile-time way."""
    wrong, counts = _wrong(_cases()[::stride], form)
    assert wrong == []
    assert counts["agrees"] >= 1250 // stride


@pytest.mark.broad
@pytest.mark.parametrize("form", ["symbolic", "fixed symbolic"])
def test_every_tenth_node_case_agrees_with_unknown_sizes(form: str) -> None:
    """No size of any input known at compile time: the same answers."""
    cases = tuple(
        case
        for case in _cases()[::BROAD_STRIDE]
        if not any(part in case.name for part in _FIXED_SIZES)
    )
    wrong, counts = _wrong(cases, form)
    assert wrong == []
    assert counts["agrees"] >= 110


@pytest.mark.slow
def test_all_node_cases_agree() -> None:
    """All node cases: none wrong, at least 1400 right."""
    wrong, counts = _wrong(_cases(), "plain")
    assert wrong == []
    assert counts["agrees"] >= 1400
