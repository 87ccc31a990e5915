"""``load``: from a path or bytes to a session, in the order of FORMAT.md, "Reading": nothing unchecked is used.

In: a bundle and the user's choices. Out: a ``Session``. Not done here: each step (one file per step beside this one).
"""

import os

from ..errors import IncompatibleError, InputError
from ..executor.session import Session
from ..format import header as head
from ..format.checks import require
from ..format.interface import interface_digest
from ..format.limits import TREE_ENTRY_SIZE_BYTES
from ..format.plan import Plan
from ..format.sha256 import sha256
from ..format.source import Source, open_file, read_plan, take_over
from . import choose, cpu, system
from .image import Image
from .loaded import Loaded
from .pool import usable_threads
from .weights import VERIFY_MODES, map_weights, verify_weights, whole_mibs

EXECUTORS = ("aot", "vm")


def load(
    bundle: "str | bytes | bytearray | memoryview | os.PathLike[str]",
    threads: int = 1,
    devices: "dict[str, str] | None" = None,
    verify: str = "full",
    variant: "str | None" = None,
    executor: str = "aot",
    features: "frozenset[str] | None" = None,
) -> Session:
    """See ``ingot_runtime.load``."""
    _check_option("verify", verify, VERIFY_MODES)
    _check_option("executor", executor, EXECUTORS)
    if type(threads) is not int or threads < 1:
        raise InputError("bad number of threads", "threads", f"expected an integer of at least 1, got {threads!r}")
    source = _open(bundle)
    try:
        plan = read_plan(source)
        bind_devices(plan, devices or {}, source.name)
        index = _choose(plan, source.name, variant, features)
        program = source.section(head.PROGRAM, index) if executor == "vm" else b""
        image = _image(source, plan, index, program)
    except BaseException:
        os.close(source.fd)
        raise
    n_threads = usable_threads(threads)
    weights = (0, 0)
    try:
        weights = _weights(source, plan, index, image, verify, n_threads)
    except BaseException:
        image.unmap()
        os.close(source.fd)
        raise
    return Session(Loaded(source, plan, index, image, weights, n_threads, program), executor)


def _open(bundle: "str | bytes | bytearray | memoryview | os.PathLike[str]") -> Source:
    if isinstance(bundle, (bytes, bytearray, memoryview)):
        return take_over(system.sealed_file((bundle,)), "bundle in memory")
    return open_file(bundle)


def bind_devices(plan: Plan, devices: "dict[str, str]", name: str) -> None:
    """Check that every virtual device is there, as `devices` (name -> ``kind`` or ``kind:id``) maps it.

    Raises:
        InputError: `devices` names a device that the bundle does not have. IncompatibleError: a device is missing here.
    """
    names = [device.name for device in plan.devices]
    for given in devices:
        if given not in names:
            raise InputError(f"no device {given!r}", "devices", f"the bundle has {', '.join(names)}")
    for device in plan.devices:
        wanted = devices.get(device.name, f"{device.kind}:{device.id}")
        if wanted not in ("host", "host:0"):
            why = f"device {device.name!r} wants {wanted}; this loader has host:0"
            do = f"map it: --device {device.name}=host, if the bundle has code for the host"
            raise IncompatibleError(f"no device {wanted} here", name, why, do)
        if device.kind != "host":
            why = f"device {device.name!r} has code for {device.kind} only"
            raise IncompatibleError(f"device {device.name!r} cannot be the host", name, why)


def _choose(plan: Plan, name: str, wished: "str | None", features: "frozenset[str] | None") -> int:
    found = cpu.machine_features()
    if features is not None:
        found &= frozenset(features)  # a mask takes features away; it cannot add one
    return choose.choose_variant(plan, found, cpu.machine_architecture(), wished, name, system.request_amx)


def _image(source: Source, plan: Plan, index: int, program: bytes) -> Image:
    """Map the code of variant `index`; its own digests must agree with the plan and, for the vm, with the program."""
    where = f"section code {index}"
    image = Image(source.section(head.CODE, index), plan.variants[index].kernel_count, where)
    try:
        require_agreement(plan, index, image.interface_digest, image.program_digest, program)
    except BaseException:
        image.unmap()
        raise
    return image


def require_agreement(plan: Plan, index: int, interface: bytes, program_digest: bytes, program: bytes) -> None:
    """Raise ``FormatError`` unless the digests that the image of variant `index` holds are those of plan and program.

    `program` is empty where nobody steps it.
    """
    where = f"section code {index}"
    expected = interface_digest(
        tuple((tensor.dtype, tensor.dims) for tensor in plan.inputs),
        tuple((tensor.dtype, tensor.dims) for tensor in plan.outputs),
        len(plan.devices),
        plan.variants[index].features,
    )
    why = "the image was made for other inputs, outputs, devices or CPU features"
    require(interface == expected, "plan and image disagree", where, why)
    if program:
        why = "the image's main was made from another program"
        require(program_digest == sha256(program), "program and image disagree", where, why)


def _weights(source: Source, plan: Plan, index: int, image: Image, verify: str, threads: int) -> tuple[int, int]:
    base, size_bytes = map_weights(source)
    if not size_bytes:
        return 0, 0
    try:
        tree = source.section(head.TREE)
        mibs = whole_mibs(plan.variants[index].ranges)
        assert not mibs or len(tree) >= mibs[-1][1] * TREE_ENTRY_SIZE_BYTES  # `check_kinds` compared the sizes
        verify_weights(image, base, mibs, tree, verify, threads, source.name)
        source.require_unchanged()
    except BaseException:
        system.unmap(base, size_bytes)
        raise
    return base, size_bytes


def _check_option(option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        import difflib

        close = difflib.get_close_matches(str(value), choices, n=1)
        do = f"did you mean {close[0]!r}?" if close else ""
        raise InputError(
            f"unknown value of {option}", option, f"expected one of {', '.join(choices)}, got {value!r}", do
        )
