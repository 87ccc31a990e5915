"""``load_bundle``: from a path or bytes to a session, in the order of FORMAT.md, "Reading".

In: a bundle and the user's choices. Out: a ``Session``; nothing unchecked is used. Not done here:
each step (``loader``, one file per step).
"""

from .errors import BundleError, InputError, no_memory
from .executor.context import ExecutionContext
from .executor.loaded import Loaded
from .executor.session import Session
from .format import header as head
from .format.checks import require
from .format.interface import interface_digest
from .format.plan import DEVICE_KINDS, BundlePlan
from .format.sha256 import sha256
from .format.source import Source, in_file, read_plan
from .loader import choose, cpu, system
from .loader.bind_devices import bind_devices, devices_module
from .loader.image import Image
from .loader.open_bundle import open_base, open_bundle
from .loader.pool import ThreadPool, usable_threads
from .loader.watch import Watch
from .loader.weights import VERIFY_MODES, verified_weights

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

EXECUTORS = ("aot", "vm")
BUSY_MODES = ("wait", "error")


def load_bundle(
    bundle: "str | bytes | bytearray | memoryview | os.PathLike[str]",
    threads: int = 1,
    devices: "dict[str, str] | None" = None,
    verify: str = "full",
    variant: "str | None" = None,
    executor: str = "aot",
    features: "frozenset[str] | None" = None,
    digest: "str | None" = None,
    max_bytes: "int | None" = None,
    sessions: int = 1,
    busy: str = "wait",
    keys: "Sequence[str | bytes | os.PathLike[str]] | str | os.PathLike[str] | None" = None,
) -> Session:
    """See ``ingot_runtime.load``."""
    _check_option("verify", verify, VERIFY_MODES)
    _check_option("executor", executor, EXECUTORS)
    _check_option("busy", busy, BUSY_MODES)
    _check_number("number of threads", "threads", threads)
    _check_number("number of sessions", "sessions", sessions)
    if max_bytes is not None:
        _check_number("limit of memory", "max_bytes", max_bytes)
    try:
        source = open_bundle(bundle, digest, keys)
        plan = read_plan(source)
        open_base(source, bundle)
        bound = bind_devices(plan, {} if devices is None else devices, source.name)
        usable = _usable_features(features)
        arch = cpu.machine_architecture()
        index = choose.choose_variant(
            plan.variants, usable, arch, variant, source.name, system.request_amx,
            cpu.processor_model,
        )  # fmt: skip
        # Together, sessions have at most a thread per processor, where that is possible.
        each = max(1, usable_threads(threads * sessions) // sessions)
        loaded = _loaded(source, plan, index, executor, each, verify)
        loaded.trust = keys, verify

        def context(loaded: Loaded) -> ExecutionContext:
            attached: Any = None
            if plan.libraries:
                module = devices_module("attached", source.name)
                attached = module.Attached(source, plan, bound, usable, loaded.watch.address)
            while True:
                if attached is not None:
                    attached.load_weights(source, loaded.image, loaded.pool, loaded.watch, verify)
                if loaded.is_unchanged():
                    return ExecutionContext(
                        loaded, executor, max_bytes, attached, sessions, busy == "wait"
                    )

        others = [loaded.another() for _ in range(sessions - 1)]
        return _session(plan, tuple(map(context, [loaded, *others])))
    except MemoryError as error:
        raise no_memory("not enough memory to load a bundle", "load") from error
    except BundleError as error:
        raise in_file(error, bundle) from error.__cause__


def _session(plan: BundlePlan, contexts: "tuple[ExecutionContext, ...]") -> Session:
    if plan.values is None:
        return Session(contexts)
    from .executor.values import ValueSession

    return ValueSession(contexts)


def _usable_features(features: "frozenset[str] | None") -> frozenset[str]:
    found = cpu.machine_features()
    # A mask takes features away; it cannot add one.
    return found if features is None else found & frozenset(features)


def _loaded(
    source: Source, plan: BundlePlan, index: int, executor: str, threads: int, verify: str
) -> Loaded:
    """Map code and weights of variant `index`, start its threads, and verify the weights."""
    program = source.section(head.PROGRAM, index) if executor == "vm" else b""
    image = _image(source, plan, index, program)
    pool = ThreadPool(image, usable_threads(threads))
    watch = Watch(image)
    weights, verifier = verified_weights(
        source, plan.variants[index].ranges, image, pool, watch, verify
    )
    return Loaded(source, plan, index, image, weights, pool, watch, verifier, program)


def _image(source: Source, plan: BundlePlan, index: int, program: bytes) -> Image:
    """Map the code of variant `index`, which must agree with the plan and the program."""
    kernel_count = plan.variants[index].kernel_count
    image = Image(source.section(head.CODE, index), kernel_count, f"section code {index}")
    require_agreement(plan, index, image.interface_digest, image.program_digest, program)
    return image


def require_agreement(
    plan: BundlePlan, index: int, interface: bytes, program_digest: bytes, program: bytes
) -> None:
    """Raise ``FormatError`` unless the digests that the image of variant `index` holds are those of
    plan and program, which is empty where nobody steps it."""
    where = f"section code {index}"
    kinds = DEVICE_KINDS.index
    expected = interface_digest(
        tuple((tensor.dtype, tensor.dims) for tensor in plan.inputs),
        tuple((tensor.dtype, tensor.dims) for tensor in plan.outputs),
        tuple((kinds(device.kind), device.library) for device in plan.devices),
        tuple((kinds(it.kind), it.target, it.features, it.kernel_count) for it in plan.libraries),
        plan.variants[index].features,
    )
    why = "the image was made for other inputs, outputs, devices, libraries or CPU features"
    require(interface == expected, "plan and image disagree", where, why)
    if program:
        why = "the image's main was made from another program"
        require(program_digest == sha256(program), "program and image disagree", where, why)


def _check_number(what: str, option: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise InputError(f"bad {what}", option, f"expected an integer of at least 1, got {value!r}")


def _check_option(option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        from .format.device_text import suggest_name

        do = suggest_name(str(value), choices)
        why = f"expected one of {', '.join(choices)}, got {value!r}"
        raise InputError(f"unknown value of {option}", option, why, do)
