"""Classes of processors: the rates and sizes from which models of cost choose methods and tiles.

In: a level of an architecture, perhaps a tuning. Out: ``ProcessorClass``, ``processors_of``. Not
done here: which instructions a target allows (``target``), costs (beside each method).

``source`` says where a row is from: "measured" by loops on such a processor, "model" of the
scheduler of LLVM 19 and of OSACA 0.7, "published" by its maker or by people who measured it. Rates
of vectors are those of the widest ones.
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass

_KIB, _MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class ProcessorClass:
    """Processors on which the same methods are fastest.

    ``tunings``: what follows the colon of a target to mean it, ``native``'s first. ``models``: how
    begins what processors say of themselves (``ingot_runtime.loader.cpu.processor_model``). ``multiply_adds``,
    ``loads``, ``stores``: of vectors that begin in a cycle. ``adds_apart``: additions have ports
    beside those of multiply-adds. ``level2_rate``, ``far_rate``: bytes that a core reads in a cycle
    from its second cache, and from behind it. ``has_tiles``: an instruction multiplies tiles, so that
    code that does so runs there alone.
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
    has_tiles: bool = False


def _models(maker: str, family: int, *models: str) -> tuple[str, ...]:
    """How begins what x86 processors say of themselves; ``models``: the beginnings of two digits."""
    return tuple(f"{maker} {family:x} {model}" for model in models)


PROCESSORS = (
    ProcessorClass(
        "zen4", "x86-64-v4", ("znver4",),
        _models("AuthenticAMD", 0x19, "1", "6", "7", "a"),
        1, True, 1, 0.5, 32 * _KIB, 8, _MIB, 45, 24,
        "measured: multiply-adds, additions; published: the rest",
    ),
    ProcessorClass(
        "zen5", "x86-64-v4", ("znver5",),
        _models("AuthenticAMD", 0x1A, "0", "1", "4"),
        2, True, 2, 1, 48 * _KIB, 12, _MIB, 62, 28,
        "measured",
    ),
    ProcessorClass(
        "skylake-x", "x86-64-v4", ("skylake-avx512", "cascadelake"),
        _models("GenuineIntel", 6, "55"),
        2, False, 2, 1, 32 * _KIB, 8, _MIB, 48, 10,
        "model: multiply-adds, additions, loads, stores (some have one unit of 512 bits); published: the rest",
    ),
    ProcessorClass(
        "ice-lake-server", "x86-64-v4", ("icelake-server",),
        _models("GenuineIntel", 6, "6a", "6c"),
        2, False, 2, 1, 48 * _KIB, 12, 5 * _MIB // 4, 48, 10,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "sapphire-rapids", "x86-64-v4", ("sapphirerapids", "emeraldrapids", "graniterapids"),
        _models("GenuineIntel", 6, "8f", "ad", "ae", "cf"),
        2, False, 2, 1, 48 * _KIB, 12, 2 * _MIB, 48, 10,
        "measured on Emerald Rapids", has_tiles=True,
    ),
    ProcessorClass(
        "haswell", "x86-64-v3", ("haswell", "broadwell"),
        _models("GenuineIntel", 6, "3c", "3d", "3f", "45", "46", "47", "4f", "56"),
        2, False, 2, 1, 32 * _KIB, 8, 256 * _KIB, 25, 10,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "skylake", "x86-64-v3", ("skylake",),
        _models("GenuineIntel", 6, "4e", "5e", "8e", "9e", "a5", "a6"),
        2, False, 2, 1, 32 * _KIB, 8, 256 * _KIB, 30, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "alder-lake", "x86-64-v3", ("alderlake",),
        _models("GenuineIntel", 6, "97", "9a", "b7", "ba", "bf"),
        2, True, 3, 2, 48 * _KIB, 12, 5 * _MIB // 4, 35, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "zen2", "x86-64-v3", ("znver3", "znver2", "znver1"),
        (*_models("AuthenticAMD", 0x17, ""), *_models("AuthenticAMD", 0x19, "0", "2", "3", "4", "5")),
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
        "neoverse-n2", "aarch64", ("neoverse-n2",),
        ("0x41 0xd49",),
        2, False, 3, 2, 64 * _KIB, 4, _MIB, 25, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "neoverse-v1", "aarch64", ("neoverse-v1",),
        ("0x41 0xd40",),
        4, False, 3, 2, 64 * _KIB, 4, _MIB, 25, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "neoverse-v2", "aarch64", ("neoverse-v2",),
        ("0x41 0xd4f",),
        4, False, 3, 2, 64 * _KIB, 4, 2 * _MIB, 30, 12,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "cortex-a72", "aarch64", ("cortex-a72", "cortex-a57"),
        ("0x41 0xd08", "0x41 0xd07"),
        1, False, 1, 0.5, 32 * _KIB, 2, _MIB, 10, 4,
        "model: multiply-adds, additions, loads, stores; published: the rest",
    ),
    ProcessorClass(
        "cortex-a55", "aarch64", ("cortex-a55", "cortex-a53"),
        ("0x41 0xd03", "0x41 0xd05"),
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
    return next(
        (each for each in PROCESSORS if each.level == level and model.startswith(each.models)), None
    )
