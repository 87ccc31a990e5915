"""A bundle in memory: mapped image and weights, worker pool. What sessions run on.

In: a source, a plan, an image. Out: ``Loaded``, and its orderly end. Not done here: arrays, calls.

Every part holds what it needs, and gives it back with its last reference: no order can be wrong.
"""

from ..errors import ChangedError, DigestError, InputError
from ..format.file import settled
from ..format.plan import BundlePlan, VariantPlan
from ..format.source import Source, changed
from ..loader.image import Image
from ..loader.pool import ThreadPool
from ..loader.watch import Watch
from ..loader.weights import Verifier, Weights

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Part = TypeVar("Part")
    Origin = tuple[Source, Weights | None, Verifier | None, tuple[int, int, int]]

_CHANGES_MAX = 8


class Loaded:
    """Everything that lives as long as a session. ``program`` holds the encoded program for the vm,
    else b""."""

    __slots__ = (
        "_changes", "_image", "_pool", "_verifier", "plan", "program", "source", "stamp", "trust",
        "variant", "variant_index", "watch", "weights",
    )  # fmt: skip

    def __init__(
        self,
        source: Source,
        plan: BundlePlan,
        variant_index: int,
        image: Image,
        weights: "Weights | None",
        pool: ThreadPool,
        watch: Watch,
        verifier: "Verifier | None",
        program: bytes,
    ) -> None:
        self.source = source
        self.plan = plan
        self.variant_index = variant_index
        self.variant: VariantPlan = plan.variants[variant_index]
        self._image: Image | None = image
        self._pool: ThreadPool | None = pool
        self.weights = weights
        self.watch = watch
        self.program = program
        self.stamp = source.file.stamp
        self._verifier = verifier
        self._changes = 0
        # What `load` was told: the keys of whom one must have signed, how weights are verified.
        self.trust: tuple[Any, str] = (None, "full")

    def another(self) -> "Loaded":
        """Return another one over the same file, code and weights, with threads of its own."""
        image = self.image
        pool, watch = ThreadPool(image, self.pool.n_threads), Watch(image)
        verifier = self._verifier and self._verifier.another(pool, watch)
        other = Loaded(
            self.source, self.plan, self.variant_index, image, self.weights, pool, watch, verifier,
            self.program,
        )  # fmt: skip
        other.stamp = self.stamp
        return other

    @property
    def image(self) -> Image:
        """The code; ``InputError`` if the session is closed."""
        return self._opened(self._image)

    @property
    def pool(self) -> ThreadPool:
        """The workers; errors as for ``image``."""
        return self._opened(self._pool)

    def _opened(self, part: "Part | None") -> "Part":
        if part is None:
            raise InputError("the session is closed", self.source.name, "", "load the bundle again")
        return part

    def is_unchanged(self) -> bool:
        """Whether the file is what it was when somebody looked last.

        False: its record alone changed (a rename, permissions, a writer who put the time back), and
        the weights were verified again; what was computed meanwhile must be computed again.

        Raises:
            ChangedError: size or time of writing are others, or a page could not be read, now or
                for another session of the same weights. DigestError: the weights are others. Both
                end all these sessions.
        """
        name, weights = self.source.name, self.weights
        if weights is not None and not weights.is_whole:
            raise changed(name, weights.why_lost)
        now = self.source.present_stamp()
        if now == self.stamp:
            return True
        # What is verified now must show any change from now on.
        now = settled(self.source.present_stamp)
        self._changes += 1
        is_same = now[:2] == self.stamp[:2]
        try:
            if not is_same or self._changes > _CHANGES_MAX:
                raise changed(name)
            if weights is not None and self._verifier is not None:
                self._verifier.verify(weights, "full")
        except (ChangedError, DigestError) as error:
            if weights is not None and (not is_same or isinstance(error, DigestError)):
                weights.lose()
            raise
        self.stamp = now
        return False

    @property
    def origin(self) -> "Origin":
        """The file, its weights, who verifies them, and the stamp at which that was done."""
        return self.source, self.weights, self._verifier, self.stamp

    @origin.setter
    def origin(self, origin: "Origin") -> None:
        self.source, self.weights, self._verifier, self.stamp = origin

    def close(self) -> None:
        """Join the workers and unmap; nothing may be running. May be called again."""
        if self._pool is not None:
            self._pool.stop()
        self._verifier = None
        self._pool = None
        self._image = None
        self.source.close()
        self.weights = None
