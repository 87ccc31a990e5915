"""The plan: all that a loader needs to know, in words. FORMAT.md, "Plan".

In: bytes of the plan section. Out: the classes below, checked. Not done here: writing
(``ingot_artifacts.bundle.encode_plan``), agreement with manifest (``manifest``) and image
(``loader.image``).
"""

from .checks import require, unknown
from .dtypes import DTYPE_NAMES, DTYPE_SIZES_BYTES, MINOR_0_COUNT
from .limits import (
    DEVICE_COUNT_MAX,
    ELEMENT_COUNT_MAX,
    FEATURE_COUNT_MAX,
    KERNEL_COUNT_MAX,
    MIB,
    RANGE_COUNT_MAX,
    RANK_MAX,
    SIZE_BYTES_MAX,
    SYMBOL_COUNT_MAX,
    TENSOR_COUNT_MAX,
    VARIANT_COUNT_MAX,
)
from .words import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    Default = tuple[tuple[int, ...], bytes]

PLAN_VERSION = 1
DEVICE_KINDS = ("host", "cuda", "opencl", "null", "cpu")
_RANK_VALUE_MAX = 1 << 31
CODE_MAX = (1 << 31) - 1
_WHERE = "section plan 0"


class DevicePlan:
    """One virtual device: ``kind`` is a name of ``DEVICE_KINDS``, ``id`` its number of that kind.

    ``scope``: the memory of the device that pools lie in, "" for its only one. ``library``: index
    of the library with its code, -1 for a host, whose code is the variant's.
    """

    __slots__ = ("id", "kind", "library", "name", "scope")

    def __init__(self, name: str, kind: str, id: int, scope: str = "", library: int = -1) -> None:
        self.name = name
        self.kind = kind
        self.id = id
        self.scope = scope
        self.library = library


class LibraryPlan:
    """Code for devices of one kind: what the device must be and have, the count of kernels."""

    __slots__ = ("features", "kernel_count", "kind", "target")

    def __init__(
        self, kind: str, target: str, features: tuple[str, ...], kernel_count: int
    ) -> None:
        self.kind = kind
        self.target = target
        self.features = features
        self.kernel_count = kernel_count


class AlternativePlan:
    """``code`` may run in the place of library ``library``; ``ids``: device -> its id there."""

    __slots__ = ("code", "ids", "library")

    def __init__(self, library: int, code: LibraryPlan, ids: "dict[int, int]") -> None:
        self.library = library
        self.code = code
        self.ids = ids


class TensorPlan:
    """One input or output: ``dims`` < 0 are ``-(symbol index + 1)``; ``dtype`` is a code."""

    __slots__ = ("dims", "dtype", "name")

    def __init__(self, name: str, dtype: int, dims: tuple[int, ...]) -> None:
        self.name = name
        self.dtype = dtype
        self.dims = dims

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a size."""
        return all(dim >= 0 for dim in self.dims)

    def shape(self, symbols: tuple[str, ...]) -> "tuple[int | str, ...]":
        """Return the dimensions with symbols by name."""
        return tuple(dim if dim >= 0 else symbols[-dim - 1] for dim in self.dims)


class VariantPlan:
    """What one variant needs. ``workspace_bytes`` per device, 0 where it depends on the shapes;
    ``ranges``: (offset, size)."""

    __slots__ = ("features", "kernel_count", "ranges", "rank", "target", "workspace_bytes")

    def __init__(
        self,
        target: str,
        rank: int,
        features: tuple[str, ...],
        kernel_count: int,
        workspace_bytes: tuple[int, ...],
        ranges: tuple[tuple[int, int], ...],
    ) -> None:
        self.target = target
        self.rank = rank
        self.features = features
        self.kernel_count = kernel_count
        self.workspace_bytes = workspace_bytes
        self.ranges = ranges


class StatePlan:
    """Output number ``output`` is input number ``input`` with more behind it along ``axis``, or, if
    ``fixed``, with some of its rows replaced."""

    __slots__ = ("axis", "fixed", "input", "output")

    def __init__(self, input: int, output: int, axis: int, fixed: bool) -> None:
        self.input = input
        self.output = output
        self.axis = axis
        self.fixed = fixed


class ValuePlan:
    """An input or output as callers see it; ``form``: what it is made of, by FORMAT.md, "Values"."""

    __slots__ = ("form", "name")

    def __init__(self, name: str, form: str) -> None:
        self.name = name
        self.form = form


class BundlePlan:
    """The whole plan.

    Variant i owns the sections (code, i) and (program, i); device i (weights, i) and (tree, i);
    library i (library, i).
    """

    __slots__ = (
        "alternatives", "defaults", "devices", "inputs", "libraries", "model", "outputs", "states",
        "symbols", "values", "variants",
    )  # fmt: skip

    def __init__(
        self,
        model: str,
        devices: tuple[DevicePlan, ...],
        symbols: tuple[str, ...],
        inputs: tuple[TensorPlan, ...],
        outputs: tuple[TensorPlan, ...],
        variants: tuple[VariantPlan, ...],
        libraries: tuple[LibraryPlan, ...] = (),
    ) -> None:
        self.model = model
        self.devices = devices
        self.symbols = symbols
        self.inputs = inputs
        self.outputs = outputs
        self.variants = variants
        self.libraries = libraries
        # Of inputs that a call need not give, by name; in sections of their own.
        self.defaults: "dict[str, Default]" = {}
        self.states: tuple[StatePlan, ...] = ()
        # Code of other kinds for devices, in sections of their own.
        self.alternatives: tuple[AlternativePlan, ...] = ()
        # Inputs and outputs as callers see them, where some are no tensors; in a section of its own.
        self.values: "tuple[tuple[ValuePlan, ...], tuple[ValuePlan, ...]] | None" = None

    def kernel_counts(self, variant: VariantPlan) -> tuple[int, ...]:
        """Return how many kernels each device has where `variant` runs."""
        return tuple(
            variant.kernel_count
            if device.kind == "host"
            else self.libraries[device.library].kernel_count
            for device in self.devices
        )


def version_minor(plan: BundlePlan, weights_bytes: "tuple[int, ...]") -> int:
    """Return the lowest minor version whose readers know every dtype of a plan, the opcode that
    programs with states have, states of fixed length, and weights that end within a MiB; ``weights_bytes``: per section.
    Copies that begin early need a later one, which only programs tell."""
    if any(state.fixed for state in plan.states):
        return 5
    if any(size % MIB for size in weights_bytes):
        return 2
    codes = [tensor.dtype for tensor in (*plan.inputs, *plan.outputs)]
    return 1 if plan.states or max(codes, default=0) >= MINOR_0_COUNT else 0


def decode_plan(data: bytes) -> BundlePlan:
    """Decode and check the plan section.

    Raises:
        FormatError: any rule of FORMAT.md, "Plan", broken.
    """
    words = Reader(data, _WHERE)
    version = words.word("plan version", 1, CODE_MAX)
    if version != PLAN_VERSION:
        raise unknown(f"plan version {version}", _WHERE)
    model = words.text("model name")
    devices = tuple(_device(words) for _ in range(words.word("device count", 1, DEVICE_COUNT_MAX)))
    first = devices[0].kind
    require(first == "host", "the first device is not the host", _WHERE, first)
    count = words.word("library count", 0, DEVICE_COUNT_MAX)
    libraries = tuple(read_library(words, f"{_WHERE}, library {index}") for index in range(count))
    _require_libraries(devices, libraries)
    symbols = words.texts("symbol", SYMBOL_COUNT_MAX)
    inputs = _tensors(words, "input", len(symbols))
    outputs = _tensors(words, "output", len(symbols))
    count = words.word("variant count", 1, VARIANT_COUNT_MAX)
    variants = tuple(_variant(words, len(devices)) for _ in range(count))
    words.finish()
    for what, names in (
        ("device", [device.name for device in devices]),
        ("symbol", list(symbols)),
        ("input", [tensor.name for tensor in inputs]),
        ("output", [tensor.name for tensor in outputs]),
        ("variant", [variant.target for variant in variants]),
    ):
        why = ", ".join(sorted(names))[:200]
        require(len(set(names)) == len(names), f"{what} name appears twice", _WHERE, why)
    return BundlePlan(model, devices, symbols, inputs, outputs, variants, libraries)


def _device(words: Reader) -> DevicePlan:
    name = words.text("device name")
    kind = _kind(words, f"{_WHERE}, device {name!r}", 0)
    id_ = words.word("device id", 0, CODE_MAX)
    scope = words.text("device scope")
    library = words.word("device library", -1, DEVICE_COUNT_MAX - 1)
    return DevicePlan(name, kind, id_, scope, library)


def _kind(words: Reader, where: str, first: int) -> str:
    code = words.word("device kind", first, CODE_MAX)
    if code >= len(DEVICE_KINDS):
        raise unknown(f"device kind {code}", where)
    return DEVICE_KINDS[code]


def read_library(words: Reader, where: str) -> LibraryPlan:
    """Read what a library is."""
    kind = _kind(words, where, 1)
    target = words.text("library target")
    features = _features(words, target)
    return LibraryPlan(kind, target, features, words.word("kernel count", 0, KERNEL_COUNT_MAX))


def _require_libraries(devices: tuple[DevicePlan, ...], libraries: tuple[LibraryPlan, ...]) -> None:
    """Check that the host has no library, each other device one of its own kind, and that each
    library has a device."""
    for device in devices:
        where, index = f"{_WHERE}, device {device.name!r}", device.library
        if device.kind == "host":
            require(index == -1, "a host with a library", where, f"library {index}")
            continue
        known = 0 <= index < len(libraries)
        require(known, "device without a library", where, f"library {index} of {len(libraries)}")
        kind = libraries[index].kind
        why = f"a {device.kind} device, a {kind} library"
        require(kind == device.kind, "library of another kind", where, why)
    used = {device.library for device in devices}
    for index in range(len(libraries)):
        require(index in used, "library of no device", _WHERE, f"library {index}")


def _features(words: Reader, target: str) -> tuple[str, ...]:
    features = words.texts("feature", FEATURE_COUNT_MAX)
    require(list(features) == sorted(set(features)), "features not sorted", _WHERE, target)
    return features


def _tensors(words: Reader, what: str, symbol_count: int) -> tuple[TensorPlan, ...]:
    count = words.word(f"{what} count", 0, TENSOR_COUNT_MAX)
    return tuple(_tensor(words, what, symbol_count) for _ in range(count))


def _tensor(words: Reader, what: str, symbol_count: int) -> TensorPlan:
    name = words.text(f"{what} name")
    where = f"{_WHERE}, {what} {name!r}"
    dtype = words.word(f"{what} dtype", 0, CODE_MAX)
    if dtype >= len(DTYPE_NAMES):
        raise unknown(f"dtype {dtype}", where)
    rank = words.word(f"{what} rank", 0, RANK_MAX)
    dims = tuple(
        words.word(f"{what} dimension", -symbol_count, ELEMENT_COUNT_MAX) for _ in range(rank)
    )
    size_bytes = DTYPE_SIZES_BYTES[dtype]
    for dim in dims:
        size_bytes *= max(dim, 1)
    require(size_bytes <= ELEMENT_COUNT_MAX, f"{what} too large", where, f"{dims}")
    return TensorPlan(name, dtype, dims)


def _variant(words: Reader, device_count: int) -> VariantPlan:
    target = words.text("variant target")
    rank = words.word("variant rank", 0, _RANK_VALUE_MAX)
    features = _features(words, target)
    kernel_count = words.word("kernel count", 0, KERNEL_COUNT_MAX)
    workspace_bytes = tuple(
        words.word("workspace bytes", 0, SIZE_BYTES_MAX) for _ in range(device_count)
    )
    ranges: list[tuple[int, int]] = []
    end = 0
    for _ in range(words.word("weight range count", 0, RANGE_COUNT_MAX)):
        offset = words.word("weight range offset", end, SIZE_BYTES_MAX)
        size_bytes = words.word("weight range size", 1, SIZE_BYTES_MAX)
        end = offset + size_bytes
        ranges.append((offset, size_bytes))
    return VariantPlan(target, rank, features, kernel_count, workspace_bytes, tuple(ranges))
