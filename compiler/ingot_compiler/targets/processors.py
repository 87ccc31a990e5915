"""Classes of processors: the numbers from which the models of cost choose methods and tiles.

In: nothing. Out: ``ProcessorClass``, ``PROCESSORS``, ``class_of``. Not done here: what a processor can run
(``target``), which class the machine at hand is of (the loader's probe tells vendor, family, model).

Rates are per cycle, of the widest vectors of the class. Where two sources differ, the row has what was
measured, and ``source`` says by what means: "measured" is a loop of this project on such a machine,
"scheduling model" the port tables of LLVM 19 or OSACA 0.7, "published" the maker's optimisation guide.
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ProcessorClass:
    """Processors on which the same kernels are fastest.

    ``tunings``: the names after a target's colon that mean it. ``multiply_adds``: of vectors that
    begin in a cycle; ``adds_apart``: whether additions have ports of their own beside them;
    ``loads``, ``stores``: of whole vectors. ``level1_bytes``, ``level1_ways``, ``level2_bytes``: of
    the data caches of one core.
    """

    name: str
    tunings: tuple[str, ...]
    vector_bits: int
    multiply_adds: float
    adds_apart: bool
    loads: float
    stores: float
    level1_bytes: int
    level1_ways: int
    level2_bytes: int
    source: str


_KIB, _MIB = 1 << 10, 1 << 20
PROCESSORS = (
    ProcessorClass(
        "zen4", ("znver4",), 512, 1, True, 1, 0.5, 32 * _KIB, 8, _MIB,
        "measured: multiply-adds, adds, caches; published: loads, stores",
    ),
    ProcessorClass(
        "zen5", ("znver5",), 512, 2, True, 2, 1, 48 * _KIB, 12, _MIB,
        "measured",
    ),
    ProcessorClass(
        "skylake-x", ("skylake-avx512", "cascadelake"), 512, 2, False, 2, 1, 32 * _KIB, 8, _MIB,
        "scheduling model; some models have one multiply-add unit of 512 bits",
    ),
    ProcessorClass(
        "icelake-server",
        ("icelake-server", "sapphirerapids", "emeraldrapids", "graniterapids"),
        512, 2, False, 2, 1, 48 * _KIB, 12, 2 * _MIB,
        "measured on Emerald Rapids: multiply-adds, adds; scheduling model: the rest (Ice Lake has 1.25 MiB of L2)",
    ),
    ProcessorClass(
        "haswell", ("haswell", "broadwell"), 256, 2, False, 2, 1, 32 * _KIB, 8, 256 * _KIB,
        "scheduling model",
    ),
    ProcessorClass(
        "skylake", ("skylake",), 256, 2, False, 2, 1, 32 * _KIB, 8, 256 * _KIB,
        "scheduling model",
    ),
    ProcessorClass(
        "zen2", ("znver1", "znver2", "znver3"), 256, 2, True, 2, 1, 32 * _KIB, 8, 512 * _KIB,
        "scheduling model: multiply-adds, adds; published: the rest (Zen 1 has half of it)",
    ),
)  # fmt: skip
