"""A bundle in memory: mapped image and weights, worker pool. What sessions run on.

In: a source, a plan, an image. Out: ``Loaded``, and its orderly end. Not done here: arrays, calls.
"""

import os
import weakref

from ..format.plan import Plan, VariantPlan
from ..format.source import Source
from . import sigbus, system
from .image import Image
from .pool import Pool


class Loaded:
    """Everything that lives as long as a session. ``program`` holds the encoded program for the vm, else b""."""

    __slots__ = (
        "__weakref__", "_finalizer", "image", "is_file", "plan", "pool", "program", "source", "variant", "variant_index",
        "weights_address", "weights_bytes",
    )  # fmt: skip

    def __init__(
        self,
        source: Source,
        plan: Plan,
        variant_index: int,
        image: Image,
        weights: tuple[int, int],
        n_threads: int,
        program: bytes,
    ) -> None:
        """Guard the weights and start the workers; from here on the object owns what it was given."""
        self.source = source
        self.plan = plan
        self.variant_index = variant_index
        self.variant: VariantPlan = plan.variants[variant_index]
        self.image = image
        self.weights_address, self.weights_bytes = weights
        self.program = program
        ticket = sigbus.guard(image, *weights) if self.weights_bytes else None
        try:
            self.pool = Pool(image, n_threads)
        except BaseException:
            _release(None, image, ticket, weights, source.fd)
            raise
        # Static function and plain values: it must not keep the session alive. Not at exit: a daemon thread of the
        # user may be inside `main` then, and the end of the process unmaps and ends everything anyway.
        self._finalizer = weakref.finalize(self, _release, self.pool, image, ticket, weights, source.fd)
        self._finalizer.atexit = False

    def close(self) -> None:
        """Join the workers and unmap; nothing may be running."""
        self._finalizer()


def _release(
    pool: "Pool | None", image: Image, ticket: "tuple[object, int] | None", weights: tuple[int, int], fd: int
) -> None:
    """Stop the threads first: a worker still has a return to execute; only then may its code go."""
    if pool is not None:
        pool.stop()
    if weights[1]:
        system.unmap(*weights)
    if ticket is None:
        image.unmap()
    else:
        sigbus.release(ticket, image)
    os.close(fd)
