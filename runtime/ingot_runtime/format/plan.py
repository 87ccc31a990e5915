"""The plan: all that a loader needs to know, in words, and the manifest, which is the same for people
and other programs. FORMAT.md, "Plan" and "Manifest".

In: bytes of the plan section. Out: the records below, checked; the only bytes that a manifest may
have, which a loader compares instead of reading others. Not done here: how a record is read
(``schema``), agreement with the image (``loader.image``).
"""

from .checks import require, unknown
from .dtypes import DTYPE_NAMES
from .limits import (
    DEVICE_COUNT_MAX,
    FEATURE_COUNT_MAX,
    KERNEL_COUNT_MAX,
    RANGE_COUNT_MAX,
    RANK_MAX,
    SIZE_BYTES_MAX,
    SYMBOL_COUNT_MAX,
    TENSOR_COUNT_MAX,
    VARIANT_COUNT_MAX,
)
from .msgpack_canonical import pack
from .schema import CODE_MAX, Reader, Record, beside, read_record, record_dict, row

TYPE_CHECKING = False
if TYPE_CHECKING:
    Default = tuple[tuple[int, ...], bytes]

PLAN_VERSION = 1
DEVICE_KINDS = ("host", "cuda", "opencl", "null", "cpu")
DEVICE_KIND_MINORS = (0,) * 5  # the first minor version of bundles that have it
_WHERE = "section plan 0"


class DevicePlan(Record):
    """One virtual device: ``kind`` is a name of ``DEVICE_KINDS``, ``id`` its number of that kind.

    ``scope``: the memory of the device that pools lie in, "" for its only one. ``library``: index
    of the library with its code, -1 for a host, whose code is the variant's.
    """

    name: str = row("text")
    kind: str = row("device kind", of=DEVICE_KINDS)
    id: int = row("word", 0, CODE_MAX)
    scope: str = row("text", default="")
    library: int = row("word", -1, DEVICE_COUNT_MAX - 1, default=-1)


class LibraryPlan(Record):
    """Code for devices of one kind: what the device must be and have, the count of kernels."""

    kind: str = row("device kind", 1, what="device kind", of=DEVICE_KINDS)
    target: str = row("text")
    features: tuple[str, ...] = row("sorted texts", 0, FEATURE_COUNT_MAX, "feature")
    kernel_count: int = row("word", 0, KERNEL_COUNT_MAX, "kernel count", key="kernels")


class TensorPlan(Record):
    """One input or output: ``dims`` < 0 are ``-(symbol index + 1)``; ``dtype`` is a code."""

    name: str = row("text")
    dtype: int = row("dtype", of=DTYPE_NAMES)
    dims: tuple[int, ...] = row("dims", 0, RANK_MAX, key="shape")

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a size."""
        return all(dim >= 0 for dim in self.dims)

    def shape(self, symbols: tuple[str, ...]) -> "tuple[int | str, ...]":
        """Return the dimensions with symbols by name."""
        return tuple(dim if dim >= 0 else symbols[-dim - 1] for dim in self.dims)


class VariantPlan(Record):
    """What one variant needs. ``workspace_bytes`` per device, 0 where it depends on the shapes;
    ``ranges``: (offset, size). ``processors``: beginnings of what those say of themselves
    (``loader.cpu.processor_model``) for which it is made; none: for all."""

    target: str = row("text")
    rank: int = row("word", 0, 1 << 31)
    features: tuple[str, ...] = row("sorted texts", 0, FEATURE_COUNT_MAX, "feature")
    kernel_count: int = row("word", 0, KERNEL_COUNT_MAX, "kernel count", key="kernels")
    workspace_bytes: tuple[int, ...] = row("words per device", 0, SIZE_BYTES_MAX, "workspace bytes")
    ranges: tuple[tuple[int, int], ...] = row("ranges", 0, RANGE_COUNT_MAX, "weight range", key="")
    processors: tuple[str, ...] = row(
        "sorted texts", 0, FEATURE_COUNT_MAX, "processor", since=6, default=()
    )


class AlternativePlan:
    """``code`` may run in the place of library ``library``; ``ids``: device -> its id there."""

    __slots__ = ("code", "ids", "library")

    def __init__(self, library: int, code: LibraryPlan, ids: "dict[int, int]") -> None:
        self.library = library
        self.code = code
        self.ids = ids


class StatePlan(Record):
    """Output number ``output`` is input number ``input`` with more behind it along ``axis``, or, if
    ``fixed``, with some of its rows replaced: then ``along`` is -axis - 1."""

    input: int = row("i64")
    output: int = row("i64")
    along: int = row("i64")

    @property
    def fixed(self) -> bool:
        """Whether the state has a fixed length."""
        return self.along < 0

    @property
    def axis(self) -> int:
        """The axis of the rows."""
        return -self.along - 1 if self.fixed else self.along


class ValuePlan(Record):
    """An input or output as callers see it; ``form``: what it is made of, by FORMAT.md, "Values"."""

    name: str = row("text")
    form: str = row("text", what="form of {}")


def _require_libraries(plan: "BundlePlan") -> None:
    """Check that the first device is the host, which has no library, each other device one of its
    own kind, and that each library has a device."""
    devices, libraries = plan.devices, plan.libraries
    first = devices[0].kind
    require(first == "host", "the first device is not the host", _WHERE, first)
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


class BundlePlan(Record):
    """The whole plan.

    Variant i owns the sections (code, i) and (program, i); device i (weights, i) and (tree, i);
    library i (library, i). ``minor``: the version of the bundle. Of sections of their own are ``defaults``, of inputs that a call need
    not give, by name; ``alternatives``, code of other kinds for devices; ``values``, inputs and
    outputs as callers see them, where some are no tensors.
    """

    model: str = row("text", what="model name")
    devices: tuple[DevicePlan, ...] = row(
        "records", 1, DEVICE_COUNT_MAX, "device", of=DevicePlan, unique="name"
    )
    libraries: tuple[LibraryPlan, ...] = row(
        "records", 0, DEVICE_COUNT_MAX, "library", of=LibraryPlan, rule=_require_libraries
    )
    symbols: tuple[str, ...] = row("texts", 0, SYMBOL_COUNT_MAX, "symbol")
    inputs: tuple[TensorPlan, ...] = row(
        "records", 0, TENSOR_COUNT_MAX, "input", of=TensorPlan, unique="name"
    )
    outputs: tuple[TensorPlan, ...] = row(
        "records", 0, TENSOR_COUNT_MAX, "output", of=TensorPlan, unique="name"
    )
    variants: tuple[VariantPlan, ...] = row(
        "records", 1, VARIANT_COUNT_MAX, "variant", of=VariantPlan, unique="target"
    )
    minor: int = beside(0)
    defaults: "dict[str, Default]" = beside({})
    states: tuple[StatePlan, ...] = beside(())
    alternatives: tuple[AlternativePlan, ...] = beside(())
    values: "tuple[tuple[ValuePlan, ...], tuple[ValuePlan, ...]] | None" = beside(None)

    def kernel_counts(self, variant: VariantPlan) -> tuple[int, ...]:
        """Return how many kernels each device has where `variant` runs."""
        return tuple(
            variant.kernel_count
            if device.kind == "host"
            else self.libraries[device.library].kernel_count
            for device in self.devices
        )


def decode_plan(data: bytes, minor: int = 0) -> BundlePlan:
    """Decode and check the plan section of a bundle of that minor version.

    Raises:
        FormatError: any rule of FORMAT.md, "Plan", broken.
    """
    words = Reader(data, _WHERE, minor)
    version = words.word("plan version", 1, CODE_MAX)
    if version != PLAN_VERSION:
        raise unknown(f"plan version {version}", _WHERE)
    plan = read_record(words, BundlePlan, "plan")
    plan.minor = minor
    words.finish()
    return plan


def manifest_bytes(plan: BundlePlan) -> bytes:
    """Return the bytes that the manifest section of a bundle with `plan` MUST hold."""
    return pack(record_dict(plan, plan))
