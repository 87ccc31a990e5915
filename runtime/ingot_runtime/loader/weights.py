"""The weights: mapped read-only, guarded, and checked by the image's own native code.

In: a source, an image, the chosen variant's ranges, the policy. Out: ``Weights``. Not done here:
copies to other devices.
"""

import ctypes
import weakref

from ..errors import DigestError, RunError
from ..format import abi
from ..format import header as head
from ..format.checks import DAMAGED
from ..format.limits import MIB, TREE_ENTRY_SIZE_BYTES
from ..format.source import Source, changed
from . import sigbus, system
from .area import Area
from .block import Block
from .ending import native, stay_out
from .image import LAUNCH, Image
from .pool import ThreadPool
from .watch import Watch

VERIFY_MODES = ("full", "fast", "code")
_EXPORTS = {"full": "blake3_verify", "fast": "checksum_verify"}
_GRAIN_MIBS = 4
_LEAST_BAD = (1 << 64) - 1


class Weights:
    """A mapped weights section, guarded before anybody touches it, and as long as it lives."""

    __slots__ = ("__weakref__", "_area", "_faults", "_is_lost", "address", "size_bytes")

    def __init__(self, source: Source, row: head.Section, image: Image) -> None:
        """Map the section, or raise ``ResourceError``."""
        self._is_lost = False
        pieces = [(0, row.size_bytes, source, row.offset)]
        if source.base is not None and not row.id:
            from ..format import base as other

            pieces = list(other.pieces(source))
        self.size_bytes = size = sum(piece[1] for piece in pieces)
        read, shared = system.PROT_READ, system.MAP_SHARED
        rest = -size % MIB
        self._area = area = Area(size + rest + system.HUGE_PAGE_SIZE_BYTES)
        at, _, file, offset = max(pieces, key=lambda piece: piece[1])
        # So its huge pages are mapped as ones.
        aside = (file.start + offset - at - area.address) % system.HUGE_PAGE_SIZE_BYTES
        self.address = area.address + aside
        self._faults = sigbus.guard(image, area, self.address, size)
        # Shared, not copied: what is in the page cache costs no memory.
        for at, length, file, offset in pieces:
            area.put(aside + at, length, read, shared, file.fd, file.start + offset)
        if rest:  # the zeros with which the last entry of the tree was computed
            area.put(aside + size, rest, read, system.MAP_PRIVATE | system.MAP_ANONYMOUS)

    @property
    def is_whole(self) -> bool:
        """Whether what is mapped may be what was verified; else no later call is right."""
        return not self._faults.value and not self._is_lost

    @property
    def why_lost(self) -> str:
        """Why it is not whole. Zeros stand for a page that could not be read."""
        if self._faults.value:
            return "some of its pages could not be read"
        return "a call before has found it changed"

    def lose(self) -> None:
        """Let no session that maps it go on, whatever the file holds from now on."""
        self._is_lost = True


_mapped: "dict[tuple[int, ...], weakref.ref[Weights]]" = {}


def map_weights(source: Source, image: Image, id: int = 0) -> "Weights | None":
    """Map the weights of device `id`, or share a mapping of the same file; None without weights."""
    row = source.by_key.get((head.WEIGHTS, id))
    if row is None:
        return None
    key = (*source.file.identity, *source.file.stamp, source.start + row.offset, row.size_bytes)
    shared = _mapped.get(key)
    weights = shared() if shared else None
    if weights is not None and weights.is_whole:
        sigbus.keep_guard()
        return weights
    weights = Weights(source, row, image)
    _mapped[key] = weakref.ref(weights, system.callback(_mapped.pop, key))
    return weights


def whole_mibs(ranges: "tuple[tuple[int, int], ...]") -> list[tuple[int, int]]:
    """Return the [first, last) MiBs that the sorted `ranges` touch, joined."""
    mibs: list[tuple[int, int]] = []
    for offset, size_bytes in ranges:
        first, last = offset // MIB, (offset + size_bytes + MIB - 1) // MIB
        if mibs and first <= mibs[-1][1]:
            mibs[-1] = (mibs[-1][0], max(last, mibs[-1][1]))
        else:
            mibs.append((first, last))
    return mibs


class Verifier:
    """Checks weights with an image's code; ``mibs`` are the [first, last) that are used."""

    __slots__ = ("_id", "_image", "_mibs", "_name", "_pool", "_tree", "_watch")

    def __init__(
        self,
        image: Image,
        pool: ThreadPool,
        watch: Watch,
        tree: bytes,
        mibs: list[tuple[int, int]],
        name: str,
        id: int = 0,
    ) -> None:
        self._id = id
        self._image = image
        self._pool = pool
        self._watch = watch
        self._tree = tree
        self._mibs = mibs
        self._name = name

    def another(self, pool: ThreadPool, watch: Watch) -> "Verifier":
        """Return one that does the same on other threads."""
        return Verifier(self._image, pool, watch, self._tree, self._mibs, self._name, self._id)

    def verify(self, weights: Weights, mode: str) -> None:
        """Check all MiBs: "full" by BLAKE3, "fast" by the lane checksum, "code" not at all; each
        must be counted as good.

        Raises:
            DigestError: naming the first MiB that differs. ChangedError: a page cannot be read.
        """
        if mode not in _EXPORTS or not self._mibs:
            return
        for first, last in self._mibs:
            system.advise(weights.address + first * MIB, (last - first) * MIB, system.MADV_WILLNEED)
        verified = (ctypes.c_uint64 * 2)(0, _LEAST_BAD)
        rc = self._launch(weights, self._image.exports[_EXPORTS[mode]], ctypes.addressof(verified))
        if rc == abi.RC_CANCELLED and self._watch.goes_on():
            self.verify(weights, mode)
            return
        self._judge(rc, weights, mode, verified[0], verified[1])

    def _launch(self, weights: Weights, kernel: int, verified: int) -> int:
        """Run the kernel over all MiBs; return the first code that is not 0."""
        stay_out()
        stride = system.round_up(abi.VERIFY_SCRATCH_BYTES)
        scratch = Block(stride * self._pool.n_threads)
        keep = ctypes.c_char_p(self._tree)
        tree = ctypes.cast(keep, ctypes.c_void_p).value or 0
        buffers = (ctypes.c_uint64 * 3)(weights.address, tree, verified)
        launch = LAUNCH(self._image.exports["launch"])
        rc: int = abi.RC_OK
        for first, last in self._mibs:
            start = ctypes.c_int64(first)
            rc = rc or launch(
                self._pool.page, kernel, buffers, ctypes.addressof(start), last - first,
                _GRAIN_MIBS, scratch.address, stride, self._watch.address,
            )  # fmt: skip
        return rc

    def _judge(self, rc: int, weights: Weights, mode: str, good: int, bad: int) -> None:
        if rc == abi.RC_CANCELLED:
            raise self._watch.ended(self._name)
        if not weights.is_whole:
            raise changed(self._name, weights.why_lost)
        where = f"{self._name}, section weights {self._id}"
        if bad != _LEAST_BAD:
            digest = "BLAKE3 digest" if mode == "full" else "checksum"
            why = f"the {digest} is not that of section tree {self._id}"
            raise DigestError(f"weights are damaged in MiB {bad}", where, why, DAMAGED)
        total = sum(last - first for first, last in self._mibs)
        if rc or good != total:
            why = f"{good} of {total} MiB checked, code {rc}"
            raise RunError("the weights could not be verified", where, why)


native.add(Verifier.verify.__code__)


def verified_weights(
    source: Source,
    ranges: "tuple[tuple[int, int], ...]",
    image: Image,
    pool: ThreadPool,
    watch: Watch,
    mode: str,
) -> "tuple[Weights | None, Verifier | None]":
    """Map the weights of the host; check those MiBs that `ranges` touch, see `Verifier.verify`."""
    weights = map_weights(source, image)
    if weights is None:
        return None, None
    tree, mibs = source.section(head.TREE), whole_mibs(ranges)
    # `check_kinds` compared the sizes.
    assert not mibs or len(tree) >= mibs[-1][1] * TREE_ENTRY_SIZE_BYTES
    name = source.name if source.base is None else f"{source.name}, {source.base.name}"
    verifier = Verifier(image, pool, watch, tree, mibs, name)
    verifier.verify(weights, mode)
    return weights, verifier
