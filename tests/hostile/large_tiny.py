"""``tiny`` with weights that several threads verify: 40 MiB that all count, the same numbers.

In: nothing. Out: a bundle on the disk. Not done here: tests.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.hostile.tiny import WEIGHTS_AT, tiny_contents, tiny_weights, tree_entry

from ingot_artifacts.bundle.write import write_bundle

MIBS = 40
MIB = 1 << 20
_DIFFERENT = 7  # MiBs, over and over: neighbours differ, and the slow oracle sees each once


def write_large(path: Path) -> int:
    """Write the bundle; return where its weights begin in the file."""
    contents = tiny_contents("batch")
    values = np.resize(
        np.random.default_rng(3).integers(0, 256, _DIFFERENT * MIB, np.uint8), MIBS * MIB
    )
    weights = tiny_weights().tobytes()
    values[WEIGHTS_AT : WEIGHTS_AT + len(weights)] = np.frombuffer(weights, np.uint8)
    variants = tuple(
        replace(variant, weight_ranges=((0, MIBS * MIB),)) for variant in contents.variants
    )
    write_bundle(
        replace(
            contents,
            variants=variants,
            weights=((0, memoryview(values.tobytes())),),
            weights_bytes=(MIBS * MIB,),
        ),
        path,
        tree_entry,
    )
    return path.stat().st_size - MIBS * MIB
