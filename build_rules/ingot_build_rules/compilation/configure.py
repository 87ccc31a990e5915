"""What a user says of targets and devices, made complete: the one place where anything about them is
assumed.

In: targets, devices by name as ``KIND[:ID][,target=T][,scope=S]``. Out: ``Configuration``. Not done
here: which nodes run where (``placement``), which device of the machine it is (the loader).

What is assumed: without a target the host is this machine (``native``); a device without an id is
the first of its kind; a device without a target has what its back end takes then; what nothing
places runs on the host. Nothing else is: a host that is no processor, and a kind without a declared
device, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.compilation.device_table import DeviceTable
from ingot_build_rules.compilation.host_target import resolve_target
from ingot_build_rules.rules.compile_options import HOST, CompileOptions, DeviceOption
from ingot_compiler.backends.host.targets.target import Target
from ingot_compiler.backends.host.targets.target import parse_target as parse_processor
from ingot_compiler.backends.registry import BACKENDS, backend_of
from ingot_compiler.backends.target_forms import GivenTarget, GivenTargets, read_target
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.message import OptionRef
from ingot_compiler.placement.configuration import Configuration
from ingot_runtime.errors import InputError
from ingot_runtime.format.device_text import read_device_text
from ingot_runtime.format.plan import DEVICE_KINDS

KINDS = tuple(kind for kind in DEVICE_KINDS if kind != HOST)
KINDS_WITH_CODE = tuple(backend.kind for backend in BACKENDS if backend.kind != HOST)


def configure(
    targets: GivenTargets = (),
    devices: Mapping[str, str] | None = None,
    named_targets: Mapping[str, GivenTarget] | None = None,
    default: str = HOST,
) -> Configuration:
    """Make the configuration of one compilation; the same is meant by any order.

    Args:
        targets: of the host, perhaps by name.
        devices: name -> text, without the host.
        named_targets: further names that ``target=NAME`` of a device may say.
        default: the device for what nothing else decides.

    Raises:
        UserError: an unknown target, feature, kind, key or default, a device that is declared
            twice, code that cannot run beside the host. UnsupportedError: a kind without code.
    """
    own = dict(targets) if isinstance(targets, Mapping) else {}
    host = _host_targets(tuple(own.values()) or tuple(targets))
    texts = [str(target) for target in host]
    read = [
        _device(name, text, texts, {**(named_targets or {}), **own})
        for name, text in sorted((devices or {}).items())
    ]
    notes = [note for each in read for note in _beside_host(each, host)]
    declared = DeviceTable(tuple(read)).declared()
    return Configuration(declared, default, tuple(texts), tuple(notes))


def configuration_of(options: CompileOptions) -> Configuration:
    """Return the configuration that options stand for."""
    return configure(options.targets, {it.name: str(it) for it in options.devices})


def device_options(configuration: Configuration) -> tuple[DeviceOption, ...]:
    """Return the devices beside the host as they decide a bundle."""
    return tuple(
        DeviceOption(
            it.name,
            it.device.device_type,
            it.device.id,
            it.device.target.partition(":")[2],
            it.device.memory_scope,
        )
        for it in configuration.devices
        if it.name != HOST
    )


def _host_targets(given: Sequence[GivenTarget]) -> list[Target]:
    found = {str(target): target for target in map(resolve_target, given or ("native",))}
    return [found[text] for text in sorted(found)]


def _device(
    name: str, text: str, host_targets: Sequence[str], named_targets: Mapping[str, GivenTarget]
) -> DeviceOption:
    where = OptionRef("device", f"{name}={text}")
    if name == HOST:
        why = f"{HOST!r} is always there"
        raise UserError("device name taken", where, why, "choose another name")
    try:
        given = read_device_text(text, "", KINDS)
    except InputError as error:
        raise UserError(error.what, where, error.why, error.do) from None
    _check_kind(given.kind, given.scope, where)
    wanted = named_targets.get(given.target, given.target)
    target = str(read_target(given.kind, wanted, host_targets))
    return DeviceOption(name, given.kind, given.id, target, given.scope)


def _check_kind(kind: str, scope: str, where: OptionRef) -> None:
    if kind not in KINDS_WITH_CODE:
        raise UnsupportedError(
            f"no code generation for {kind!r} devices yet",
            where=where,
            why=f"this version makes code for the host and for {', '.join(KINDS_WITH_CODE)}",
            do="leave the nodes on the host",
        )
    scopes = backend_of(kind).scopes
    if scopes is not None and scope not in ("", *scopes):
        what, do = f"unknown scope {scope!r} of a {kind} device", "leave scope= out"
        raise UserError(what, where, f"expected {' or '.join(scopes)}", do)


def _beside_host(option: DeviceOption, host: Sequence[Target]) -> list[str]:
    """What is odd about a device that runs on the host's processor: nothing, a note, or an error
    if it can never run there."""
    if not backend_of(option.kind).is_processor:
        return []
    target = parse_processor(option.target)
    if target.arch not in {each.arch for each in host}:
        raise UserError(
            f"device {option.name!r} cannot run beside the host",
            OptionRef("device", f"{option.name}={option}"),
            f"its target is {target}, the host's {', '.join(map(str, host))}",
            "compile both for one architecture",
        )
    notes: list[str] = []
    for each in host:
        beyond = sorted(set(target.features) - set(each.features))
        if beyond and each.arch == target.arch:
            told = f"device {option.name!r} needs {' '.join(beyond)}"
            notes.append(f"{told}, which the variant {each} of the host does not need")
    return notes
