"""Calls a bundle with random sizes and indices whose arrays end where no memory can be touched; a
read beyond kills the process.

In: a bundle, a seed, a number of calls. Out: on standard output how many calls were answered and
how many refused. Not done here: the driver (``test_refused_inputs``), what the answers should be.
"""

from __future__ import annotations

import random
import sys

import numpy as np
from tests.hostile.fences import fenced

import ingot_runtime
from ingot_runtime.executor.session import Session, TensorSpec

UNBOUND = ("its size depends on the data", "has no fixed address")
SIZES = (0, 1, 1, 2, 2, 3, 4, 7)
NUMBERS = (0, 0, 1, 2, -1, -2, 3, 5, 1 << 40, -(1 << 62))


def drawn(spec: TensorSpec, sizes: dict[str, int], draw: random.Random) -> np.ndarray:
    """An input: equal symbols mostly get equal sizes, as the loader wants; indices are mostly
    small."""
    shape = [
        size if isinstance(size, int) else sizes.setdefault(size, draw.choice(SIZES))
        for size in spec.shape
    ]
    if spec.dtype.startswith("float"):
        return np.full(shape, draw.choice((0.0, 0.25, 1.0, -3.0)), spec.dtype)
    if spec.dtype == "bool":
        return np.array([draw.random() < 0.5 for _ in range(int(np.prod(shape)))], bool).reshape(
            shape
        )
    limits = np.iinfo(spec.dtype)
    wild = [number for number in NUMBERS if limits.min <= number <= limits.max]
    numbers = NUMBERS[:4] if draw.random() < 0.7 else wild
    return np.array([draw.choice(numbers) for _ in range(int(np.prod(shape)))], spec.dtype).reshape(
        shape
    )


def call(session: Session, draw: random.Random) -> bool:
    """Whether one random call was answered."""
    sizes: dict[str, int] = {}
    inputs = {spec.name: fenced(drawn(spec, sizes, draw)) for spec in session.inputs}
    try:
        try:
            session.bind(inputs).run()
        except ingot_runtime.InputError as error:
            if not any(why in error.why for why in UNBOUND):
                raise
            session.run(inputs)
    except (ingot_runtime.InputError, ingot_runtime.RunError, ingot_runtime.ResourceError):
        return False  # the last two: a size of terabytes
    return True


def main() -> None:
    """Call, and count."""
    path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    session = ingot_runtime.load(path)
    answered = sum(call(session, draw) for _ in range(count))
    print(answered, count - answered)


if __name__ == "__main__":
    main()
