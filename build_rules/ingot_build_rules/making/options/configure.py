"""Completes what a user says of targets and devices. Defaults are filled in here and nowhere else.

In: targets, devices by name as ``KIND[:ID][,target=T][,scope=S]``, perhaps
several with ``|`` between them. Out: ``Configuration``. Not done
here: which nodes run where (``placement``), which device of the machine it is (the loader).

What is assumed: without a target the host is this machine (``native``); a device without an id is
the first of its kind; a device without a target has what its back end takes then; what nothing
places runs on the host. Nothing else is: a host that is no processor, and a kind without a declared
device, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ingot_build_rules.making.options.compile_options import HOST, OR, CompileOptions, DeviceOption
from ingot_build_rules.making.options.device_table import DeviceTable
from ingot_build_rules.making.options.host_target import resolve_target
from ingot_compiler.backends.registry import BACKENDS, backend_of
from ingot_compiler.backends.target_forms import GivenTarget, GivenTargets, read_target
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.placement.configuration import Configuration
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.targets.target import Target
from ingot_compiler.targets.target import parse_target as parse_processor
from ingot_runtime.errors import InputError
from ingot_runtime.format.device_text import read_device_text
from ingot_runtime.format.plan import DEVICE_KINDS
from ingot_runtime.option_ref import OptionRef

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
    notes = [note for it in read for each in it.all for note in _beside_host(each, host)]
    table = DeviceTable(tuple(read))
    return Configuration(
        table.declared(), default, tuple(texts), table.alternatives(), tuple(dict.fromkeys(notes))
    )


def configuration_of(options: CompileOptions) -> Configuration:
    """Return the configuration that options stand for."""
    return configure(options.targets, {it.name: str(it) for it in options.devices})


def device_options(configuration: Configuration) -> tuple[DeviceOption, ...]:
    """Return the devices beside the host as they decide a bundle."""
    return tuple(
        _option(
            it.name,
            it.device,
            tuple(_option(it.name, each) for each in configuration.alternatives.get(it.name, ())),
        )
        for it in configuration.devices
        if it.name != HOST
    )


def _option(
    name: str, device: VirtualDevice, alternatives: tuple[DeviceOption, ...] = ()
) -> DeviceOption:
    kind, target = device.device_type, device.target.partition(":")[2]
    return DeviceOption(name, kind, device.id, target, device.memory_scope, alternatives)


def _host_targets(given: Sequence[GivenTarget]) -> list[Target]:
    found = {str(target): target for target in map(resolve_target, given or ("native",))}
    return [found[text] for text in sorted(found)]


def _device(
    name: str, text: str, host_targets: Sequence[str], named_targets: Mapping[str, GivenTarget]
) -> DeviceOption:
    """What a device may be: one text, or several with ``|`` between them."""
    texts = text.split(OR)
    machine = _machine(texts)
    first, *others = [_one(name, each, host_targets, named_targets, machine) for each in texts]
    made = replace(first, alternatives=tuple(others))
    if others:
        _check_kinds(made, machine, OptionRef("device", f"{name}={text}"))
    return made


def _machine(texts: Sequence[str]) -> str:
    """The target of processors for which loops are cut that others of these kinds run as well, ""
    where no other kind is among them."""
    kinds = [text.partition(",")[0].partition(":")[0] for text in texts]
    found = [backend_of(kind).loops_for for kind in kinds if kind in KINDS_WITH_CODE]
    return next(filter(None, found), "") if len(texts) > 1 else ""


def _check_kinds(device: DeviceOption, machine: str, where: OptionRef) -> None:
    """Refuse kinds that cannot share loops, or have one code."""
    kinds, name = [each.kind for each in device.all], device.name
    processors = [each for each in device.all if backend_of(each.kind).is_processor]
    same = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    _require_one_target(device, same, where)
    if same or len(processors) > 1:
        listed = " and ".join(dict.fromkeys(each.kind for each in processors)) or same[0]
        why = f"{listed} run the same code" if not same else f"{same[0]} is named twice"
        do = "name it once: a load may bind the device to any that runs its code"
        raise UserError(f"device {name!r} has code twice", where, why, do)
    other = [each.target for each in processors if each.target != machine]
    if other:
        why = f"its kinds share loops, which are cut for {machine}; got {other[0]}"
        do = f"leave target= out, or write target={machine}"
        raise UserError(f"a target that device {name!r} cannot have", where, why, do)
    if any(each.scope for each in device.all):
        why = f"a memory is one of a kind of device, and {name!r} may be several kinds"
        raise UserError(f"a scope of device {name!r}", where, why, "leave scope= out")


def _require_one_target(device: DeviceOption, same: Sequence[str], where: OptionRef) -> None:
    """Refuse a kind that is named once for each of several targets."""
    for kind in same:
        targets = dict.fromkeys(each.target for each in device.all if each.kind == kind)
        if len(targets) > 1:
            why = f"{kind} is named for {' and '.join(targets)}; its code is for one target"
            host = ("; several of ", OptionRef("target"), " are for the host")
            do = ("name the lowest one that has to run it", *host)
            raise UserError(f"device {device.name!r} has several targets", where, why, do)


def _one(
    name: str,
    text: str,
    host_targets: Sequence[str],
    named_targets: Mapping[str, GivenTarget],
    machine: str,
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
    try:
        target = str(read_target(given.kind, wanted, (machine,) if machine else host_targets))
    except UserError as error:
        raise type(error)(error.what, where, error.why, error.do) from None
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
        what, do = f"unknown scope {scope!r} of device kind {kind}", "leave scope= out"
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
            kinds = f"device {option.name!r} needs {' '.join(beyond)}"
            notes.append(f"{kinds}, which the variant {each} of the host does not need")
    return notes
