"""Targets: spelling, canonical form, closure of features, what code generation reads from them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_compiler.ir.errors import UserError
from ingot_compiler.targets import TARGETS
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target, native_target, parse_target
from ingot_runtime.format.features import LEVELS
from ingot_runtime.loader import cpu, system
from ingot_runtime.loader.cpu import machine_architecture

_LEVELS = [level for family in TARGETS for level, _ in family.levels]


@pytest.mark.parametrize(
    "text",
    [*_LEVELS, "x86-64-v4+amx-bf16+amx-tile", "aarch64:neoverse-n1+bf16", "x86-64-v3:znver3"],
)
def test_canonical_text_reads_back(text: str) -> None:
    """A canonical spelling prints as itself."""
    assert str(parse_target(text)) == text


@given(st.sampled_from(TARGETS), st.data())
def test_any_spelling_has_one_canonical_form(family: object, data: st.DataObject) -> None:
    """Printing and parsing again gives the same target, in whatever order features are written."""
    known = next(f for f in TARGETS if f is family)
    level = data.draw(st.sampled_from([name for name, _ in known.levels]))
    added = data.draw(
        st.permutations([f.name for f in known.features]).map(lambda names: names[:4])
    )
    target = parse_target(level + "".join(f"+{name}" for name in added))
    assert parse_target(str(target)) == target
    assert parse_target(level + "".join(f"+{name}" for name in reversed(added))) == target
    assert target.features == tuple(sorted(target.features))
    assert known.closed(frozenset(target.features)) == frozenset(target.features)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("x86-64-v4+amx-bf16", "x86-64-v4+amx-bf16+amx-tile"),
        ("x86-64-v4-avx512f", "x86-64-v3"),
        ("x86-64-v4-avx512vl", "x86-64-v3+avx512bw+avx512cd+avx512dq+avx512f"),
        ("x86-64-v2+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe", "x86-64-v3"),
        ("x86-64-v4:znver4-avx512f+avxvnni", "x86-64-v3:znver4+avxvnni"),
    ],
)
def test_features_bring_and_take_others(text: str, canonical: str) -> None:
    """Adding a feature adds what it builds on, removing one removes what builds on it; the level
    follows."""
    assert str(parse_target(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x86-64-v4+amx-tlie", "unknown feature 'amx-tlie'\n  where: target x86-64-v4+amx-tlie\n"),
        ("x86-64-v4:znver9", "unknown cpu 'znver9'\n"),
        ("x86_64", "unknown target 'x86_64'\n"),
        ("", "unknown target ''\n"),
        ("x86-64-v4+", "unknown feature ''\n"),
        ("x86-64-v2-sse3", "target below x86-64-v2\n"),
    ],
)
def test_unknown_names_are_user_errors(text: str, message: str) -> None:
    """The name, the choices and a suggestion are in the message."""
    with pytest.raises(UserError) as caught:
        parse_target(text)
    assert str(caught.value).startswith(message)
    assert "  do: " in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(("text", "meant"), [("x86-64-v4+amx-tlie", "amx-tile"), ("v3", "x86-64-v3")])  # fmt: skip
def test_a_suggestion_is_made(text: str, meant: str) -> None:
    """A misspelled feature gets the nearest known one, the end of a name the whole of it."""
    with pytest.raises(UserError, match=f"did you mean '{meant}'"):
        parse_target(text)


def test_native_takes_the_highest_level_it_covers() -> None:
    """A machine's features decide the level; a feature without its base is not used."""
    assert str(native_target(LEVELS["x86-64-v3"])) == "x86-64-v3"
    assert (
        str(native_target([*LEVELS["x86-64-v4"], "avx512vnni", "unheard-of"]))
        == "x86-64-v4+avx512vnni"
    )
    assert str(native_target([*LEVELS["x86-64-v3"], "avx512vl"])) == "x86-64-v3"
    assert str(native_target(LEVELS["aarch64"], "aarch64")) == "aarch64"
    with pytest.raises(UserError, match="target below x86-64-v2"):
        native_target(["sse3"])


def test_the_machine_that_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is what the loader's probe finds: of an ARM processor all that the kernel tells, also what
    LLVM has never found on one, and its model, where there is such a file."""
    usable = [*cpu.permitted_features()]
    assert host_target() == native_target(usable, machine_architecture(), cpu.processor_model())
    monkeypatch.setattr(cpu, "_MIDR", str(tmp_path / "midr_el1"))
    machine = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*machine[:4], "aarch64")))
    words = {16: 1 << 0 | 1 << 1 | 1 << 20, 26: 1 << 13}
    monkeypatch.setattr(system, "auxiliary_value", words.__getitem__)
    assert str(host_target()) == "aarch64+asimddp+i8mm"
    (tmp_path / "midr_el1").write_text("0x00000000413fd0c1\n")
    assert str(host_target()) == "aarch64:neoverse-n1+asimddp+i8mm"
    (tmp_path / "midr_el1").write_text("nothing\n")
    assert cpu.processor_model() == ""


def test_a_class_is_found_by_the_model() -> None:
    """Of the level that the machine reaches: one that hides AVX-512 is of no class of it, and what
    the table does not have is of none."""
    v3, v4 = (LEVELS[f"x86-64-v{level}"] for level in (3, 4))
    for features, model, wanted in (
        (v4, "GenuineIntel 6 8f", "x86-64-v4:sapphirerapids"),
        (v4, "AuthenticAMD 19 11", "x86-64-v4:znver4"),
        (v3, "AuthenticAMD 19 11", "x86-64-v3"),
        (v3, "AuthenticAMD 19 21", "x86-64-v3:znver3"),
        (v4, "GenuineIntel 6 fe", "x86-64-v4"),
        (v4, "", "x86-64-v4"),
    ):
        assert str(native_target(features, model=model)) == wanted


def test_amx_is_left_out_where_the_system_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may not use tiles has a target without them."""
    monkeypatch.setattr(cpu, "machine_features", lambda: frozenset(("avx512f", "amx-tile")))
    for granted, wanted in ((True, {"avx512f", "amx-tile"}), (False, {"avx512f"})):
        monkeypatch.setattr(system, "request_amx", lambda granted=granted: granted)
        assert cpu.permitted_features() == wanted


def facts(target: Target) -> tuple[int, int, bool, int]:
    """What kernels are generated from."""
    return target.f32_lanes, target.vector_register_count, target.has_fma, target.page_bytes


def test_what_kernels_read() -> None:
    """Lanes, registers, FMA and page size per level."""
    assert facts(parse_target("x86-64-v2")) == (4, 16, False, 4096)
    assert facts(parse_target("x86-64-v3")) == (8, 16, True, 4096)
    assert facts(parse_target("x86-64-v4")) == (16, 32, True, 4096)
    assert facts(parse_target("aarch64")) == (4, 32, True, 65536)


def test_rank_prefers_levels_then_features() -> None:
    """A higher level beats any number of features; among equals, more features win."""
    texts = [
        "x86-64-v2",
        "x86-64-v2+avx",
        "x86-64-v3",
        "x86-64-v3+avxvnni",
        "x86-64-v4",
        "x86-64-v4+amx-bf16",
    ]
    ranks = [parse_target(text).rank for text in texts]
    assert ranks == sorted(set(ranks))
    # The longest list of extras stays below the next level.
    assert max(len(family.features) for family in TARGETS) < 100


def test_the_loader_knows_every_feature() -> None:
    """Every feature a target may require has a name in the loader's vocabulary, and levels are made
    of known ones."""
    for family in TARGETS:
        names = {feature.name for feature in family.features}
        for level, _ in family.levels:
            assert names.issuperset(LEVELS[level])
            assert family.closed(frozenset(LEVELS[level])) == frozenset(LEVELS[level])


def test_a_target_names_what_a_machine_lacks() -> None:
    """Empty where the code can run, else the missing features in order."""
    target = parse_target("x86-64-v3")
    assert target.missing_on(LEVELS["x86-64-v4"]) == ()
    assert target.missing_on(set(LEVELS["x86-64-v4"]) - {"fma", "avx2"}) == ("avx2", "fma")
