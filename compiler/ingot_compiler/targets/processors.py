"""Classes of processors: the rates and sizes from which models of cost choose methods and tiles.

In: a level of an architecture, perhaps a tuning. Out: ``ProcessorClass``, ``processors_of``. Not
done here: which instructions a target allows (``target``), costs (beside each method).

``source`` says where a row is from: "measured" by loops on such a processor, "model" of the
scheduler of LLVM 19 and of OSACA 0.7, "published" by its maker or by people who measured it. Rates
of vectors are those of the widest ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ingot_runtime.lazy_dataclass import dataclass

_KIB, _MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class ProcessorClass:
    """Processors on which the same methods are fastest.

    ``tunings``: what follows the colon of a target to mean it, ``native``'s first. ``models``: what
    processors say of themselves (``ingot_runtime.loader.cpu.processor_model``). ``multiply_adds``,
    ``loads``, ``stores``: of vectors that begin in a cycle. ``adds_apart``: additions have ports
    beside those of multiply-adds. ``level2_rate``, ``far_rate``: bytes that a core reads in a cycle
    from its second cache, and from behind it.
    """

    name: str
    level: str
    tunings: tuple[str, ...]
    models: tuple[str, ...]
    multiply_adds: int
    adds_apart: bool
    loads: float
    stores: float
    level1_bytes: int
    level1_ways: int
    level2_bytes: int
    level2_rate: float
    far_rate: float
    source: str


def _models(maker: str, family: int, *models: Iterable[int]) -> tuple[str, ...]:
    """What x86 processors say of themselves."""
    return tuple(f"{maker} {family} {model}" for model in chain(*models))


PROCESSORS = (
    ProcessorClass(
        "zen4", "x86-64-v4", ("znver4",),
        _models("AuthenticAMD", 0x19, range(0x10, 0x20), range(0x60, 0x80), range(0xA0, 0xB0)),
        1, True, 1, 0.5, 32 * _KIB, 8, _MIB, 45, 24,
        "measured: multiply-adds, additions; published: the rest",
    ),
    ProcessorClass(
        "zen5", "x86-64-v4", ("znver5",),
        _models("AuthenticAMD", 0x1A, range(0x20), range(0x40, 0x50)),
        2, True, 2, 1, 48 * _KIB, 12, _MIB, 62, 28,
        "measured",
    ),
    ProcessorClass(
        "skylake-x", "x86-64-v4", ("skylake-avx512", "cascadelake"),
        _models("GenuineIntel", 6, [0x55]),
        2, False, 2, 1, 32 * _KIB, 8, _MIB, 30, 8,
        "model: multiply-adds, additions, loads, stores (some have one unit of 512 bits); published: the rest",
    ),
    ProcessorClass(
        "ice-lake-server", "x86-64-v4", ("icelake-server",),
        _models("GenuineIntel", 6, [0x6A, 0x6C]),
        2, False, 2, 1, 48 * _KIB, 12, 5 * _MIB // 4, 30, 8,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "sapphire-rapids", "x86-64-v4", ("sapphirerapids", "emeraldrapids", "graniterapids"),
        _models("GenuineIntel", 6, [0x8F, 0xCF, 0xAD, 0xAE]),
        2, False, 2, 1, 48 * _KIB, 12, 2 * _MIB, 29, 7.5,
        "measured on Emerald Rapids",
    ),
    ProcessorClass(
        "haswell", "x86-64-v3", ("haswell", "broadwell"),
        _models("GenuineIntel", 6, [0x3C, 0x3D, 0x3F, 0x45, 0x46, 0x47, 0x4F, 0x56]),
        2, False, 2, 1, 32 * _KIB, 8, 256 * _KIB, 25, 10,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "skylake", "x86-64-v3", ("skylake",),
        _models("GenuineIntel", 6, [0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6]),
        2, False, 2, 1, 32 * _KIB, 8, 256 * _KIB, 30, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "alder-lake", "x86-64-v3", ("alderlake",),
        _models("GenuineIntel", 6, [0x97, 0x9A, 0xB7, 0xBA, 0xBF]),
        2, False, 3, 2, 48 * _KIB, 12, 5 * _MIB // 4, 35, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "zen2", "x86-64-v3", ("znver3", "znver2", "znver1"),
        (
            *_models("AuthenticAMD", 0x17, range(0x100)),
            *_models("AuthenticAMD", 0x19, range(0x10), range(0x20, 0x60)),
        ),
        2, True, 2, 1, 32 * _KIB, 8, 512 * _KIB, 28, 20,
        "model: multiply-adds, additions; published: the rest (Zen 1 has half of each rate)",
    ),
    ProcessorClass(
        "neoverse-n1", "aarch64", ("neoverse-n1", "cortex-a76"),
        ("0x41 0xd0c", "0x41 0xd0b", "0x41 0xd0d", "0x41 0xd41"),
        2, False, 2, 1, 64 * _KIB, 4, _MIB, 20, 10,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "neoverse-v1", "aarch64", ("neoverse-v1", "neoverse-n2"),
        ("0x41 0xd40", "0x41 0xd49"),
        2, False, 3, 2, 64 * _KIB, 4, _MIB, 25, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "neoverse-v2", "aarch64", ("neoverse-v2",),
        ("0x41 0xd4f",),
        4, False, 3, 2, 64 * _KIB, 4, 2 * _MIB, 30, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "cortex-a55", "aarch64", ("cortex-a55", "cortex-a53", "cortex-a72"),
        ("0x41 0xd03", "0x41 0xd05", "0x41 0xd08"),
        1, False, 0.5, 1, 32 * _KIB, 4, 128 * _KIB, 8, 4,
        "published",
    ),
    ProcessorClass(
        "apple-m", "aarch64", ("apple-m1",),
        (),
        4, False, 3, 2, 128 * _KIB, 8, 12 * _MIB, 40, 30,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
)  # fmt: skip


def processors_of(level: str, tuning: str) -> tuple[ProcessorClass, ...]:
    """Return the class that a tuning names, or all of a level, among which code for it may run."""
    named = tuple(each for each in PROCESSORS if tuning in each.tunings)
    return named or tuple(each for each in PROCESSORS if each.level == level)


def processor_class(level: str, model: str) -> ProcessorClass | None:
    """Return the class of a processor by its model, where it runs code of the class's level."""
    return next((each for each in PROCESSORS if each.level == level and model in each.models), None)
