"""One host CPU target: what the user writes after ``--target``, and what code generation asks of
it.

In: ``ARCH[:cpu][+feature|-feature]...``, or the feature names of a machine. Out: a ``Target``,
printed canonically. Not done here: probing a machine (the loader's job), device targets (cuda,
opencl).
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.types import DType
from ingot_compiler.targets import TARGETS
from ingot_compiler.targets.family import SCALAR, TargetFamily
from ingot_compiler.targets.processors import ProcessorClass, processor_class, processors_of
from ingot_runtime.format.features import LEVELS
from ingot_runtime.lazy_dataclass import dataclass

_WIDEST_BITS = 512
_SCALAR_BITS, _SCALAR_REGISTERS = 32, 8
_ENDS = ("", "+", "-")
_SPELLING = "ARCH[:cpu][+feature|-feature]..."


@dataclass(frozen=True, slots=True)
class Target:
    """A host CPU: highest ``level`` that ``features`` cover, tuning ``cpu`` ("" for none), sorted
    ``features``.

    ``features`` are all that the loader must find on the machine, by the names of
    ``ingot_runtime.format.features``; generated code uses no others.
    """

    arch: str
    level: str
    cpu: str
    features: tuple[str, ...]

    def __str__(self) -> str:
        """Return the canonical spelling: ``x86-64-v4+amx-bf16+amx-tile``; `parse_target` reads it
        back."""
        extra = sorted(set(self.features) - set(LEVELS[self.level]))
        return (
            self.level
            + (f":{self.cpu}" if self.cpu else "")
            + "".join(f"+{name}" for name in extra)
        )

    @property
    def family(self) -> TargetFamily:
        """The architecture's data."""
        return next(family for family in TARGETS if family.arch == self.arch)

    @property
    def processors(self) -> tuple[ProcessorClass, ...]:
        """The class of the processor that it is tuned for, or all of its level."""
        return processors_of(self.level, self.cpu)

    @property
    def triple(self) -> str:
        """LLVM target triple."""
        return self.family.triple

    @property
    def llvm_cpu(self) -> str:
        """LLVM cpu name of the level (tuning is a function attribute)."""
        return dict(self.family.levels)[self.level]

    @property
    def llvm_features(self) -> str:
        """LLVM feature string: every feature spelled out, e.g. ``+avx,+avx2``."""
        return ",".join(
            f"+{feature.llvm_name}"
            for feature in self.family.features
            if feature.name in self.features
        )

    @property
    def zig_triple(self) -> str:
        """The target as the C compiler calls it; without an operating system: nothing is linked
        to."""
        return f"{self.family.triple.split('-', 1)[0]}-freestanding-none"

    @property
    def zig_cpu(self) -> str:
        """The level and its features in the C compiler's spelling: ``x86_64_v3+avx+avx2``."""
        names = "+".join(
            (self.llvm_cpu, *(name.removeprefix("+") for name in self.llvm_features.split(",")))
        )
        return re.sub(r"[-.]", "_", names)

    @property
    def is_scalar(self) -> bool:
        """Whether loops are cut for a processor without vectors, where short code counts: numbers
        one by one, nothing unrolled."""
        return self.cpu == SCALAR

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector register: 128, 256 or 512; that of a number where loops are
        scalar."""
        if self.is_scalar:
            return _SCALAR_BITS
        if "avx512f" in self.features:
            return _WIDEST_BITS
        return 256 if "avx2" in self.features else 128

    @property
    def f32_lanes(self) -> int:
        """Number of f32 in the widest vector register: 1, 4, 8 or 16."""
        return self.vector_bits // 32

    @property
    def vector_register_count(self) -> int:
        """Number of vector registers: 16 or 32; of registers that a tile may use where loops are
        scalar."""
        if self.is_scalar:
            return _SCALAR_REGISTERS
        return 16 if self.arch == "x86-64" and "avx512f" not in self.features else 32

    @property
    def multiplies_bytes(self) -> bool:
        """Whether four products of 8-bit integers are added to an i32 by one instruction, in the
        widest vector register."""
        wide = "avx512vnni" if self.vector_bits == _WIDEST_BITS else "avxvnni"
        return wide in self.features or "asimddp" in self.features

    @property
    def multiplies_by_element(self) -> bool:
        """Whether a multiply-add takes one factor from any lane of a register, so that no element
        needs a register of its own."""
        return self.arch == "aarch64"

    @property
    def multiplies_bf16(self) -> bool:
        """Whether two products of bf16 are added to an f32 by one instruction, in the widest vector
        register."""
        if self.arch == "aarch64":
            return "bf16" in self.features
        return self.vector_bits == _WIDEST_BITS and "avx512bf16" in self.features

    @property
    def widens_f16(self) -> bool:
        """Whether f16 becomes f32 by one instruction."""
        return "f16c" in self.features or self.arch == "aarch64"

    @property
    def shuffles_bytes(self) -> bool:
        """Whether bytes of 256 bits are placed by one instruction. Machines whose code is no machine
        code of x86 name ``avx2`` for its lanes, and not ``ssse3``, which places bytes of 128."""
        return {"avx2", "ssse3"}.issubset(self.features)

    @property
    def loads_lanes_singly(self) -> bool:
        """Whether lanes from anywhere are loaded one by one: AVX's gather takes 1.4 times as long on
        Zen 4. Code that is no machine code (``shuffles_bytes``) has a gather of its own."""
        return self.shuffles_bytes

    @property
    def rounds_pairs_to_odd(self) -> bool:
        """Whether that instruction rounds the products, their sum and the total to odd."""
        return self.arch == "aarch64"

    @property
    def multiplies_tiles(self) -> frozenset[DType]:
        """The element types of which whole tiles are multiplied by one instruction."""
        known: dict[str, frozenset[DType]] = {
            "amx-bf16": frozenset(("bf16",)),
            "amx-int8": frozenset(("i8", "u8")),
        }
        named = [known[name] for name in self.features if name in known]
        return frozenset[DType]().union(*named) if self.vector_bits == _WIDEST_BITS else frozenset()

    @property
    def team_units(self) -> int:
        """1: a thread of a processor runs its units one after the other."""
        return 1

    @property
    def has_fma(self) -> bool:
        """Whether multiply-add rounds once in one instruction."""
        return self.family.always_has_fma or "fma" in self.features

    @property
    def rank(self) -> int:
        """Order of preference between variants of one architecture: higher is better."""
        levels = [name for name, _ in self.family.levels]
        return 100 * (levels.index(self.level) + 1) + len(
            set(self.features) - set(LEVELS[self.level])
        )

    @property
    def page_bytes(self) -> int:
        """Alignment of text and rodata in an image, in bytes: the largest page of the
        architecture's kernels."""
        return self.family.page_size_bytes

    def missing_on(self, features: Iterable[str]) -> tuple[str, ...]:
        """Return what a machine with `features` lacks to run this target's code; empty if it
        can."""
        return tuple(sorted(set(self.features) - set(features)))

    @property
    def function_attributes(self) -> str:
        """LLVM attributes that every function of a kernel carries; without them a loop may become a
        libc call."""
        words = ["nounwind", '"no-builtins"']
        if self.vector_bits == _WIDEST_BITS:
            words += ['"prefer-vector-width"="512"', '"min-legal-vector-width"="512"']
        if self.cpu and not self.is_scalar:
            words.append(f'"tune-cpu"="{self.cpu}"')
        return " ".join(words)


@cache  # each kernel and each group names it
def parse_target(text: str) -> Target:
    """Read ``ARCH[:cpu][+feature|-feature]...``, e.g. ``x86-64-v4+amx-tile`` or
    ``aarch64:neoverse-n1``.

    The cpu only tunes the order of instructions; the level and the features say which may be used.

    Raises:
        UserError: an unknown architecture, cpu or feature, a feature twice, or one of the
            architecture's baseline removed.
    """
    family, level = _level_of(text)
    rest, cpu = text[len(level) :], ""
    if rest.startswith(":"):
        cpu, rest = _take_name("cpu", rest[1:], family.tunings, text)
    features, given = frozenset(LEVELS[level]), set[str]()
    while rest:
        sign = rest[0]
        name, rest = _take_name(
            "feature", rest[1:], [feature.name for feature in family.features], text
        )
        _require_once(name, given, text)
        features = (
            features | family.closed(frozenset((name,)))
            if sign == "+"
            else family.without(features, name)
        )
    return _target_of(family, features, cpu, text)


def processor_models(text: str, beside: Iterable[str]) -> tuple[str, ...]:
    """Return the beginnings of the models for whose class a target is tuned, where a bundle has code
    for ``beside``, among which is another one of its rank: a loader chooses by them. Without such a
    neighbour, and without a class, there are none."""
    target = parse_target(text)
    ranks = [(each.arch, each.rank) for each in map(parse_target, beside)]
    is_alone = ranks.count((target.arch, target.rank)) < 2
    classes = () if is_alone else (each for each in target.processors if target.cpu in each.tunings)
    return tuple(sorted(model for each in classes for model in each.models))


def _require_once(name: str, given: set[str], text: str) -> None:
    if name in given:
        why = "expected it once, added or removed"
        raise UserError(f"feature {name!r} is given twice", f"target {text}", why, "leave one out")
    given.add(name)


def native_target(features: Sequence[str], arch: str = "x86-64", model: str = "") -> Target:
    """Return the target that uses all of a machine's `features` that code generation knows, and is
    tuned for the class of its processor's `model`, if there is one of that level.

    Raises:
        UserError: the machine does not reach the architecture's lowest level.
    """
    family = _family_of(arch)
    known = {feature.name for feature in family.features}
    given = frozenset(features) & known
    # A machine (or a hypervisor) may show a feature without one that it builds on: then it is not
    # used.
    usable = frozenset(name for name in given if family.closed(frozenset((name,))) <= given)
    target = _target_of(family, usable, "", "native")
    processor = processor_class(target.level, model)
    return replace(target, cpu=processor.tunings[0]) if processor else target


def _family_of(arch: str) -> TargetFamily:
    for family in TARGETS:
        if family.arch == arch:
            return family
    raise _unknown("architecture", arch, arch, [family.arch for family in TARGETS])


def _level_of(text: str) -> tuple[TargetFamily, str]:
    """Find the level that `text` starts with; the rest must start a cpu or a feature."""
    known = [(level, family) for family in TARGETS for level, _ in family.levels]
    for level, family in known:
        if text.startswith(level) and text[len(level) : len(level) + 1] in (*_ENDS, ":"):
            return family, level
    head = re.split(r"[:+]", text, maxsplit=1)[0]
    raise _unknown("target", head, text, [level for level, _ in known])


def _take_name(kind: str, text: str, known: Sequence[str], whole: str) -> tuple[str, str]:
    """Split `text` after the longest known name that ends before "+", "-" or at the end; names may
    contain "-"."""
    for name in sorted(known, key=len, reverse=True):
        if text.startswith(name) and text[len(name) : len(name) + 1] in _ENDS:
            return name, text[len(name) :]
    raise _unknown(kind, re.split(r"\+", text, maxsplit=1)[0], whole, known)


def _target_of(family: TargetFamily, features: frozenset[str], cpu: str, text: str) -> Target:
    levels = [name for name, _ in family.levels if features.issuperset(LEVELS[name])]
    if not levels:
        lowest = family.levels[0][0]
        missing = ", ".join(sorted(set(LEVELS[lowest]) - features))
        raise UserError(
            f"target below {lowest}",
            where=f"target {text}",
            why=f"{lowest}, the lowest level that Ingot compiles for, needs {missing}",
            do="use a target with these features",
        )
    return Target(family.arch, levels[-1], cpu, tuple(sorted(features)))


def _unknown(kind: str, name: str, whole: str, choices: Sequence[str]) -> UserError:
    longer = [choice for choice in choices if choice.endswith(f"-{name}")]  # v3 for x86-64-v3
    close = longer or difflib.get_close_matches(name, choices, n=1)
    return UserError(
        f"unknown {kind} {name!r}",
        where=f"target {whole}",
        why=f"expected one of {', '.join(choices)}",
        do=f"did you mean {close[0]!r}?" if close else f"write {_SPELLING}",
    )
