"""Which variant runs: the best that the machine can, never one that it cannot, and the missing
names otherwise."""

import ctypes
import os
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.format.features import LEVELS
from ingot_runtime.format.plan import BundlePlan, DevicePlan, VariantPlan
from ingot_runtime.loader import cpu
from ingot_runtime.loader.choose import choose_variant, level_of

V2, V3, V4 = (frozenset(LEVELS[f"x86-64-v{level}"]) for level in (2, 3, 4))
AMX = ("amx-bf16", "amx-tile")


def plan_of(*variants: tuple[str, int, frozenset[str]]) -> BundlePlan:
    made = tuple(
        VariantPlan(target, rank, tuple(sorted(needs)), 0, (0,), ())
        for target, rank, needs in variants
    )
    return BundlePlan("m", (DevicePlan("host", "host", 0),), (), (), (), (), made)


PLAN = plan_of(("x86-64-v2", 100, V2), ("x86-64-v4", 300, V4), ("x86-64-v3", 200, V3))


def never() -> bool:
    raise AssertionError("AMX was asked for without need")


def no_model() -> str:
    raise AssertionError("the model was read without need")


def chosen(features: frozenset[str], plan: BundlePlan = PLAN, wished: str | None = None) -> str:
    return plan.variants[
        choose_variant(plan.variants, features, "x86-64", wished, "m.ingot", never, no_model)
    ].target


def test_best_that_is_left() -> None:
    """Taking one feature away takes exactly the variants that need it."""
    assert chosen(V4) == "x86-64-v4"
    assert chosen(V4 | {"avx512bf16"}) == "x86-64-v4"
    for feature in V4 - V3:
        assert chosen(V4 - {feature}) == "x86-64-v3"
    for feature in V3 - V2:
        assert chosen(V4 - {feature}) == "x86-64-v2"


def test_refusal_names_what_is_missing() -> None:
    """The message names every missing feature, what the machine is, and what to compile for; exit
    code 5."""
    plan = plan_of(("x86-64-v3", 200, V3), ("x86-64-v4", 300, V4))
    with pytest.raises(ingot_runtime.IncompatibleError) as caught:
        chosen(V3 - {"fma", "movbe"} | {"avx512f"}, plan)
    assert str(caught.value) == (
        "no variant of m.ingot can run here: x86-64-v4 lacks avx512bw, avx512cd, avx512dq, avx512vl, fma, movbe; "
        "x86-64-v3 lacks fma, movbe\n"
        "  where: m.ingot\n"
        "  why: this machine: x86-64-v2 (avx, avx2, avx512f, bmi1, bmi2, cx16, f16c, lahf, lzcnt, popcnt, sse3, sse4.1, "
        "sse4.2, ssse3)\n"
        "  do: `ingot compile MODEL --target x86-64-v2` makes one"
    )
    assert caught.value.exit_code == 5


def test_wish_may_only_go_down() -> None:
    """A wished variant is taken if it can run, refused if not, and suggested if misspelled."""
    assert chosen(V4, wished="x86-64-v2") == "x86-64-v2"
    with pytest.raises(ingot_runtime.IncompatibleError, match="x86-64-v4 lacks avx512bw"):
        chosen(V3, wished="x86-64-v4")
    with pytest.raises(ingot_runtime.InputError, match="did you mean 'x86-64-v4'"):
        chosen(V4, wished="x86-64-v5")


def test_other_architecture() -> None:
    """A variant of another architecture never runs, even one that names no feature."""
    plan = plan_of(("aarch64", 100, frozenset()))
    with pytest.raises(
        ingot_runtime.IncompatibleError, match=r"aarch64 lacks this processor \(x86-64\)"
    ):
        chosen(V4, plan)


@pytest.mark.parametrize("granted", [True, False])
def test_amx_permission(granted: bool) -> None:
    """AMX is asked for once, only when it would be used; a refusal is a missing feature."""
    name = "x86-64-v4+amx-bf16+amx-tile"
    plan = plan_of(
        (name, 302, V4 | set(AMX)),
        ("x86-64-v4+amx-tile", 301, V4 | {"amx-tile"}),
        ("x86-64-v4", 300, V4),
    )
    asked: list[int] = []

    def request() -> bool:
        asked.append(1)
        return granted

    index = choose_variant(plan.variants, V4 | set(AMX), "x86-64", None, "m", request, no_model)
    assert plan.variants[index].target == (name if granted else "x86-64-v4")
    assert len(asked) == 1
    assert chosen(V4, plan) == "x86-64-v4"


@pytest.mark.parametrize(
    ("model", "features", "target"),
    [
        ("AuthenticAMD 1a 44", V4, "zen5"),
        ("GenuineIntel 6 cf", V4, "intel"),
        ("GenuineIntel 6 c", V4, "all"),
        ("AuthenticAMD 1 a4", V4, "all"),
        ("", V4, "all"),
        ("AuthenticAMD 1a 44", V4 | {"avx512vnni"}, "vnni"),
        ("AuthenticAMD 1a 44", V4 - {"avx512bw"}, "below"),
    ],
)
def test_variants_for_classes_of_processors(
    model: str, features: frozenset[str], target: str
) -> None:
    """Of variants of one rank, that for this processor is taken, then that for all; a higher rank
    comes first, and no class stands for a feature."""
    made = plan_of(
        ("below", 200, V3),
        ("zen5", 300, V4),
        ("all", 300, V4),
        ("intel", 300, V4),
        ("vnni", 301, V4 | {"avx512vnni"}),
    )
    made.variants[1].processors = ("AuthenticAMD 1a 0", "AuthenticAMD 1a 4")
    made.variants[3].processors = ("GenuineIntel 6 8f", "GenuineIntel 6 cf")
    for variant in made.variants:
        variant.target = f"x86-64 {variant.target}"
    index = choose_variant(made.variants, features, "x86-64", None, "m", never, lambda: model)
    assert made.variants[index].target == f"x86-64 {target}"


def test_probe_agrees_with_the_kernel() -> None:
    """CPUID and XCR0 tell what the kernel tells in /proc/cpuinfo."""
    spelled = {
        "sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "lahf": "lahf_lm", "lzcnt": "abm", "amx-bf16": "amx_bf16",
        "amx-tile": "amx_tile", "amx-int8": "amx_int8", "avxvnni": "avx_vnni", "avx512bf16": "avx512_bf16",
        "avx512vnni": "avx512_vnni", "avx512fp16": "avx512_fp16",
    }  # fmt: skip
    if cpu.machine_architecture() != "x86-64":
        spelled = {}
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = set(
        next(line for line in lines if line.startswith(("flags", "Features"))).split(":")[1].split()
    )
    known = (
        cpu.X86_BITS
        if cpu.machine_architecture() == "x86-64"
        else cpu.HWCAPS[cpu.machine_architecture()]
    )
    assert cpu.machine_features() == {name for name in known if spelled.get(name, name) in flags}


OSXSAVE = (1, 0, 2, 27)


class Cpuid:
    """A processor with every feature but some, whose registers the operating system saves or
    not."""

    def __init__(self, without: Collection[str], saved: int) -> None:
        words = {place[:2]: [0, 0, 0, 0] for place in cpu.X86_BITS.values()}
        places = [place for name, place in cpu.X86_BITS.items() if name not in without]
        for leaf, subleaf, word, bit in (*places, OSXSAVE):
            words[leaf, subleaf][word] |= 1 << bit
        self._words, self._saved = {key: tuple(each) for key, each in words.items()}, saved

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Let the probe read it."""

        def leaves(*_: object) -> dict[tuple[int, int], tuple[int, ...]]:
            return self._words

        def put(address: int) -> None:
            words = (ctypes.c_uint32 * 2).from_address(address)
            words[0], words[1] = self._saved & 0xFFFFFFFF, self._saved >> 32

        def function(*_: object) -> Callable[[int], Callable[[int], None]]:
            return lambda _: put

        patch.setattr(cpu, "_read_leaves", leaves)
        patch.setattr(ctypes, "CFUNCTYPE", function)


STATES = {"avx": 0x6, "avx512": 0xE6, "amx": 0x60000}
ALL_SAVED = 0x600E7


@pytest.mark.parametrize("name", cpu.X86_BITS)
def test_a_feature_that_is_cleared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It alone is missing, of every feature that has a name."""
    Cpuid([name], ALL_SAVED).install(monkeypatch)
    monkeypatch.setattr(os, "uname", x86_64)
    assert cpu.machine_features() == set(cpu.X86_BITS) - {name}


@pytest.mark.parametrize("lost", STATES)
def test_registers_that_are_not_saved(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What uses them is not there, whatever CPUID says."""
    Cpuid([], ALL_SAVED & ~STATES[lost] | (0x6 if lost == "avx512" else 0)).install(monkeypatch)
    monkeypatch.setattr(os, "uname", x86_64)
    missing = set(cpu.X86_BITS) - cpu.machine_features()
    using = {"avx": ("avx", "fma", "f16c"), "avx512": ("avx512",), "amx": ("amx",)}[lost]
    assert missing == {name for name in cpu.X86_BITS if name.startswith(using)}


def x86_64() -> os.uname_result:
    """What the kernel says of such a machine."""
    return os.uname_result(("Linux", "host", "6", "1", "x86_64"))


def test_every_level_can_be_probed() -> None:
    """Each feature that a level of an architecture needs is one that the loader can find."""
    for level, needs in LEVELS.items():
        known = cpu.X86_BITS if level.startswith("x86-64") else cpu.HWCAPS[level]
        assert set(needs) <= set(known)


def test_level_of() -> None:
    """The level is the highest one covered."""
    assert level_of(V4, "x86-64") == "x86-64-v4"
    assert level_of(V3 | {"avx512f"}, "x86-64") == "x86-64-v3"
    assert level_of(frozenset(), "x86-64") == ""


def test_three_variants_of_one_bundle(tmp_path: Path) -> None:
    """Each variant that this machine has, forced or left by a mask, gives the same right answer."""
    targets = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    write_bundle(tiny_contents(targets=targets), tmp_path / "m.ingot", tree_entry)
    x = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
    here = cpu.machine_features()
    for target, features in zip(targets, (V2, V3, V4), strict=True):
        if features <= here:
            for session in (
                ingot_runtime.load(tmp_path / "m.ingot", variant=target),
                ingot_runtime.load(tmp_path / "m.ingot", features=features),
            ):
                assert session.loaded.variant.target == target
                assert (session.run({"x": x})["y"] == tiny_reference(x)).all()
    for feature in V2:
        with pytest.raises(ingot_runtime.IncompatibleError, match=f"x86-64-v2 lacks {feature}"):
            ingot_runtime.load(tmp_path / "m.ingot", features=V4 - {feature})
