"""What a bundle is made of, before it is bytes.

In: nothing. Out: ``BundleContents`` and its parts, validated. Not done here: writing (``write``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ingot_artifacts.bundle.symbols import symbols_of
from ingot_artifacts.errors import ArtifactError
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.limits import NAME_SIZE_BYTES_MAX
from ingot_runtime.format.plan import DEVICE_KINDS
from ingot_runtime.lazy_dataclass import dataclass

Chunk = tuple[int, memoryview | Callable[[], memoryview]]
"""(offset in the weights of all devices, bytes or a function that brings them): read in order, then
dropped."""


@dataclass(frozen=True, slots=True)
class BundleTensor:
    """An input or output: ``shape`` has sizes and names of symbols; ``dtype`` is a name of
    ``DTYPE_NAMES``."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    def __post_init__(self) -> None:
        if self.dtype not in DTYPE_CODES:
            raise ArtifactError(f"unknown dtype {self.dtype!r}", f"tensor {self.name!r}")
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A virtual device; ``kind`` is a name of ``DEVICE_KINDS``; ``library``: index of the one with
    its code, -1 for a host."""

    name: str
    kind: str = "host"
    id: int = 0
    scope: str = ""
    library: int = -1

    def __post_init__(self) -> None:
        if self.kind not in DEVICE_KINDS:
            raise ArtifactError(f"unknown device kind {self.kind!r}", f"device {self.name!r}")
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class LibrarySpec:
    """Code for devices of one kind: ``kernels`` are the symbols in the image's order."""

    kind: str
    target: str
    features: tuple[str, ...]
    kernels: tuple[str, ...]
    image: bytes

    def __post_init__(self) -> None:
        if self.kind not in DEVICE_KINDS:
            raise ArtifactError(f"unknown device kind {self.kind!r}", f"library {self.target}")
        _check_name(self.target)


@dataclass(frozen=True, slots=True)
class AlternativeSpec:
    """Code for devices that another library has code for, too; ``stands_for``: that one's index,
    whose kernels these are in the same order; ``ids``: (device, which one of its kind)."""

    library: LibrarySpec
    stands_for: int
    ids: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class VariantImage:
    """One host CPU target's part.

    ``image`` is linked code, ``program`` its encoded instruction list, ``weight_ranges`` (offset,
    bytes) pairs that it reads of the host's weights, sorted and disjoint, ``workspace_bytes`` per
    device (0 where it depends on shapes), ``kernels`` the symbols in the image's order.
    ``processors``: the beginnings of the models for which it is made, none: all.
    """

    target: str
    features: tuple[str, ...]
    rank: int
    image: bytes
    program: bytes
    weight_ranges: tuple[tuple[int, int], ...]
    workspace_bytes: tuple[int, ...]
    kernels: tuple[str, ...]
    processors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.target)
        if list(self.features) != sorted(set(self.features)):
            raise ArtifactError("features are not sorted", f"variant {self.target}")


@dataclass(frozen=True, slots=True)
class DefaultValue:
    """What an input is where a call does not give it; ``content``: elements in row-major order."""

    position: int
    shape: tuple[int, ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class StatePair:
    """Output number ``output`` is input number ``input`` with more behind it along ``axis``; with
    rows of it replaced where that is below 0: along -axis - 1."""

    input: int
    output: int
    axis: int


@dataclass(frozen=True, slots=True)
class BundleContents:
    """A whole bundle.

    ``weights_bytes``: of each device's section (none at all: empty). The sections lie one after the
    other, each a multiple of 64 KiB; ``weights`` are chunks in rising order in all of them, none in
    two; what lies between them is zero. ``values``: name and form of each input, and of each
    output, where some are no tensors.
    """

    model: str
    inputs: tuple[BundleTensor, ...]
    outputs: tuple[BundleTensor, ...]
    devices: tuple[DeviceSpec, ...]
    variants: tuple[VariantImage, ...]
    weights: Sequence[Chunk] = ()
    weights_bytes: tuple[int, ...] = ()
    libraries: tuple[LibrarySpec, ...] = ()
    alternatives: tuple[AlternativeSpec, ...] = ()
    defaults: tuple[DefaultValue, ...] = ()
    states: tuple[StatePair, ...] = ()
    values: tuple[tuple[tuple[str, str], ...], ...] = ()
    lock: Mapping[str, object] = field(default_factory=dict[str, object])
    debug: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the symbolic dimensions, by index."""
        return symbols_of(tuple(tensor.shape for tensor in (*self.inputs, *self.outputs)))


def bytes_of(source: memoryview | Callable[[], memoryview]) -> memoryview:
    """Return the bytes of a chunk, flat."""
    data = source if isinstance(source, memoryview) else source()
    return data.cast("B") if data.nbytes else memoryview(b"")


def _check_name(name: str) -> None:
    if len(name.encode(errors="surrogatepass")) > NAME_SIZE_BYTES_MAX:
        raise ArtifactError(
            "a name is too long", name[:64], f"more than {NAME_SIZE_BYTES_MAX} bytes of UTF-8"
        )
