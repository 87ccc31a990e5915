"""The plan: all that a loader needs to know, in words. FORMAT.md, "Plan".

In: bytes of the plan section, or the classes below. Out: the classes, checked; or bytes. The same plan gives the same
bytes, and other bytes do not decode. Not done here: agreement with manifest (``manifest``) and image (``loader.image``).
"""

from .checks import require
from .dtypes import DTYPE_NAMES, DTYPE_SIZES_BYTES
from .limits import (
    DEVICE_COUNT_MAX,
    ELEMENT_COUNT_MAX,
    FEATURE_COUNT_MAX,
    KERNEL_COUNT_MAX,
    RANGE_COUNT_MAX,
    RANK_MAX,
    SIZE_BYTES_MAX,
    SYMBOL_COUNT_MAX,
    TENSOR_COUNT_MAX,
    VARIANT_COUNT_MAX,
)
from .words import Reader, Writer

PLAN_VERSION = 1
DEVICE_KINDS = ("host", "cuda", "opencl", "null")
_RANK_VALUE_MAX = 1 << 31


class DevicePlan:
    """One virtual device: ``kind`` is a name of ``DEVICE_KINDS``, ``id`` the number of the device of that kind."""

    __slots__ = ("id", "kind", "name")

    def __init__(self, name: str, kind: str, id: int) -> None:
        self.name = name
        self.kind = kind
        self.id = id


class TensorPlan:
    """One input or output: ``dims`` >= 0 are sizes, < 0 are ``-(symbol index + 1)``; ``dtype`` is a code."""

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
    """What one variant needs. ``workspace_bytes`` per device, 0 where it depends on the shapes; ``ranges``: (offset, size)."""

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


class Plan:
    """The whole plan. Variant i owns the sections (code, i) and (program, i); device i owns (weights, i) and (tree, i)."""

    __slots__ = ("devices", "inputs", "model", "outputs", "symbols", "variants")

    def __init__(
        self,
        model: str,
        devices: tuple[DevicePlan, ...],
        symbols: tuple[str, ...],
        inputs: tuple[TensorPlan, ...],
        outputs: tuple[TensorPlan, ...],
        variants: tuple[VariantPlan, ...],
    ) -> None:
        self.model = model
        self.devices = devices
        self.symbols = symbols
        self.inputs = inputs
        self.outputs = outputs
        self.variants = variants


def encode_plan(plan: Plan) -> bytes:
    """Return the bytes of the plan section."""
    out = Writer()
    out.word(PLAN_VERSION)
    out.text(plan.model)
    out.word(len(plan.devices))
    for device in plan.devices:
        out.text(device.name)
        out.word(DEVICE_KINDS.index(device.kind), device.id)
    out.word(len(plan.symbols))
    for symbol in plan.symbols:
        out.text(symbol)
    for tensors in (plan.inputs, plan.outputs):
        out.word(len(tensors))
        for tensor in tensors:
            out.text(tensor.name)
            out.word(tensor.dtype, len(tensor.dims), *tensor.dims)
    out.word(len(plan.variants))
    for variant in plan.variants:
        _encode_variant(out, variant)
    return out.data()


def _encode_variant(out: Writer, variant: VariantPlan) -> None:
    out.text(variant.target)
    out.word(variant.rank, len(variant.features))
    for feature in variant.features:
        out.text(feature)
    out.word(variant.kernel_count, *variant.workspace_bytes, len(variant.ranges))
    for offset, size_bytes in variant.ranges:
        out.word(offset, size_bytes)


def decode_plan(data: bytes) -> Plan:
    """Decode and check the plan section.

    Raises:
        FormatError: any rule of FORMAT.md, "Plan", broken.
    """
    words = Reader(data, "section plan 0")
    words.word("plan version", PLAN_VERSION, PLAN_VERSION)
    model = words.text("model name")
    devices = tuple(_device(words) for _ in range(words.word("device count", 1, DEVICE_COUNT_MAX)))
    require(devices[0].kind == "host", "the first device is not the host", "section plan 0", devices[0].kind)
    symbols = tuple(words.text("symbol") for _ in range(words.word("symbol count", 0, SYMBOL_COUNT_MAX)))
    inputs = _tensors(words, "input", len(symbols))
    outputs = _tensors(words, "output", len(symbols))
    count = words.word("variant count", 1, VARIANT_COUNT_MAX)
    variants = tuple(_variant(words, len(devices)) for _ in range(count))
    words.finish()
    _require_unique("device", [device.name for device in devices])
    _require_unique("symbol", list(symbols))
    _require_unique("input", [tensor.name for tensor in inputs])
    _require_unique("output", [tensor.name for tensor in outputs])
    _require_unique("variant", [variant.target for variant in variants])
    return Plan(model, devices, symbols, inputs, outputs, variants)


def _device(words: Reader) -> DevicePlan:
    name = words.text("device name")
    kind = words.word("device kind", 0, len(DEVICE_KINDS) - 1)
    return DevicePlan(name, DEVICE_KINDS[kind], words.word("device id", 0, (1 << 31) - 1))


def _tensors(words: Reader, what: str, symbol_count: int) -> tuple[TensorPlan, ...]:
    count = words.word(f"{what} count", 0, TENSOR_COUNT_MAX)
    return tuple(_tensor(words, what, symbol_count) for _ in range(count))


def _tensor(words: Reader, what: str, symbol_count: int) -> TensorPlan:
    name = words.text(f"{what} name")
    dtype = words.word(f"{what} dtype", 0, len(DTYPE_NAMES) - 1)
    rank = words.word(f"{what} rank", 0, RANK_MAX)
    dims = tuple(words.word(f"{what} dimension", -symbol_count, ELEMENT_COUNT_MAX) for _ in range(rank))
    elements = 1
    for dim in dims:
        elements *= max(dim, 1)
    size_bytes = elements * DTYPE_SIZES_BYTES[dtype]
    require(size_bytes <= ELEMENT_COUNT_MAX, f"{what} too large", f"section plan 0, {what} {name!r}", f"{dims}")
    return TensorPlan(name, dtype, dims)


def _variant(words: Reader, device_count: int) -> VariantPlan:
    target = words.text("variant target")
    rank = words.word("variant rank", 0, _RANK_VALUE_MAX)
    features = tuple(words.text("feature") for _ in range(words.word("feature count", 0, FEATURE_COUNT_MAX)))
    require(list(features) == sorted(set(features)), "features not sorted", "section plan 0", target)
    kernel_count = words.word("kernel count", 0, KERNEL_COUNT_MAX)
    workspace_bytes = tuple(words.word("workspace bytes", 0, SIZE_BYTES_MAX) for _ in range(device_count))
    ranges: list[tuple[int, int]] = []
    end = 0
    for _ in range(words.word("weight range count", 0, RANGE_COUNT_MAX)):
        offset = words.word("weight range offset", end, SIZE_BYTES_MAX)
        size_bytes = words.word("weight range size", 1, SIZE_BYTES_MAX)
        end = offset + size_bytes
        ranges.append((offset, size_bytes))
    return VariantPlan(target, rank, features, kernel_count, workspace_bytes, tuple(ranges))


def _require_unique(what: str, names: list[str]) -> None:
    require(
        len(set(names)) == len(names), f"{what} name appears twice", "section plan 0", ", ".join(sorted(names))[:200]
    )
