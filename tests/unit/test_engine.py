"""The engine without a cache: each key runs once, keys follow the named ingredients and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from ingot_build_rules.engine.content import digest, key_of
from ingot_build_rules.engine.naive import Build
from ingot_build_rules.engine.rule import Context, Rule


@dataclass(frozen=True, slots=True)
class Number:
    """A number, and a hint that does not decide the result."""

    value: int
    hint: str = ""


def _double(_: Context, inputs: Number) -> int:
    return inputs.value * 2


DOUBLE = Rule("double", 1, ("value",), _double)


def _sum_to(context: Context, inputs: Number) -> int:
    if inputs.value == 0:
        return 0
    return inputs.value + context.need(SUM_TO, Number(inputs.value - 1))


SUM_TO: Rule[Number, int] = Rule("sum_to", 1, ("value",), _sum_to)


def test_a_key_runs_once() -> None:
    """Equal ingredients give the first result again, and the counts say so."""
    build = Build((DOUBLE,))
    assert build.need(DOUBLE, Number(4)) == 8
    assert build.need(DOUBLE, Number(4, hint="other")) == 8
    assert (build.counts["double"].ran, build.counts["double"].hit) == (1, 1)


def test_rules_ask_for_rules() -> None:
    """A rule's dependencies are found while it runs, and shared."""
    build = Build((SUM_TO,))
    assert build.need(SUM_TO, Number(4)) == 10
    assert build.need(SUM_TO, Number(3)) == 6
    assert (build.counts["sum_to"].ran, build.counts["sum_to"].hit) == (5, 1)


def test_need_all_runs_each_distinct_key_once_and_keeps_the_order() -> None:
    """Duplicates in one request run once; a rule's own way of running many is used."""
    calls: list[int] = []

    def together(_: Context, inputs: Sequence[Number]) -> list[int]:
        calls.append(len(inputs))
        return [item.value + 1 for item in inputs]

    rule: Rule[Number, int] = Rule("next", 1, ("value",), lambda _, item: item.value + 1, together)
    build = Build((rule,))
    assert build.need_all(rule, [Number(1), Number(2), Number(1)]) == (2, 3, 2)
    assert calls == [2]
    assert (build.counts["next"].ran, build.counts["next"].hit) == (2, 1)


def test_a_transient_result_is_computed_again() -> None:
    """Large results do not stay in memory."""
    rule: Rule[Number, bytes] = Rule("big", 1, ("value",), lambda _, item: bytes(item.value), transient=True)
    build = Build((rule,))
    assert build.need(rule, Number(3)) == build.need(rule, Number(3)) == bytes(3)
    assert build.counts["big"].ran == 2


def test_a_rule_that_needs_itself_is_refused() -> None:
    """A cycle is an error that names the chain, not an endless recursion."""

    def compute(context: Context, inputs: Number) -> int:
        return context.need(rule, inputs)

    rule: Rule[Number, int] = Rule("loop", 1, ("value",), compute)
    with pytest.raises(RuntimeError, match="loop -> loop"):
        Build((rule,)).need(rule, Number(1))


def test_a_failed_rule_can_be_asked_again() -> None:
    """An error leaves no half-done state behind."""
    attempts: list[int] = []

    def compute(_: Context, inputs: Number) -> int:
        attempts.append(inputs.value)
        if len(attempts) == 1:
            raise ValueError("first")
        return 7

    rule: Rule[Number, int] = Rule("flaky", 1, ("value",), compute)
    build = Build((rule,))
    with pytest.raises(ValueError, match="first"):
        build.need(rule, Number(1))
    assert build.need(rule, Number(1)) == 7


def test_the_key_follows_name_version_and_ingredients() -> None:
    """Every part of a key changes it; an attribute that is no ingredient does not."""
    base, named = key_of(DOUBLE, Number(1))
    assert list(named) == ["value"]
    assert key_of(DOUBLE, Number(1, hint="x"))[0] == base
    others = [
        key_of(DOUBLE, Number(2))[0],
        key_of(Rule("double", 2, ("value",), _double), Number(1))[0],
        key_of(Rule("triple", 1, ("value",), _double), Number(1))[0],
        key_of(Rule("double", 1, ("value", "hint"), _double), Number(1))[0],
    ]
    assert len({base, *others}) == 5


def test_digests_tell_values_apart() -> None:
    """Values that differ in kind, order, nesting or borders have different digests."""
    values: list[object] = [
        None, True, False, 0, 1, 1.0, -0.0, 0.0, "", "1", b"", b"1", (), (1,), (1, 2), (2, 1), ((1,), 2), ((1, 2),),
        ("ab", "c"), ("a", "bc"), {"a": 1}, {"a": 2}, {"b": 1}, frozenset((1, 2)), Number(1), Number(1, "h"),
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)


def test_digests_do_not_depend_on_the_hash_seed() -> None:
    """Sets and mappings are written in sorted order."""
    code = (
        "from ingot_build_rules.engine.content import digest;"
        "print(digest((frozenset({'a', 'b', 'c', 'd'}), {'y': 1, 'x': 2})))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1


def test_a_value_without_encoding_is_refused() -> None:
    """Nothing is keyed by an address."""
    with pytest.raises(TypeError, match="no canonical encoding of object"):
        digest(object())
