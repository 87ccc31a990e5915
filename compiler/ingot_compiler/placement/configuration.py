"""The devices of one compilation, and what a device that is only partly decided means among them.

In: the targets of the host, the declared devices, the default one. Out: ``Configuration``, which
interns devices. Not done here: reading what a user says (``options.configure`` of the build
rules), which value goes where (``place``), physical devices (the loader binds them).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import message
from ingot_compiler.placement.virtual_device import (
    ANY_ID,
    ANY_TARGET,
    ANY_TYPE,
    HOST_TYPE,
    UNCONSTRAINED,
    DeclaredDevice,
    VirtualDevice,
)
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

HOST = "host"
_WHERE = "devices"


@dataclass(frozen=True, slots=True)
class Configuration:
    """``devices``: each name once, the host first. ``default``: the name of the device for what
    nothing else decides. ``host_targets``: what the host's variants are compiled for, () where that
    does not matter. ``alternatives``: by name, what a device may be instead where a machine lacks
    the first choice; nothing here depends on them. ``notes``: what is odd, in sentences for the
    user.

    The table of interned devices lives as long as the configuration: equal devices are one object
    within it, and no other configuration has that object.

    Raises:
        UserError: a name twice, no host or two, one device under two names, one device with two
            targets, an unknown default.
    """

    devices: tuple[DeclaredDevice, ...]
    default: str = HOST
    host_targets: tuple[str, ...] = ()
    alternatives: Mapping[str, tuple[VirtualDevice, ...]] = field(
        default_factory=dict[str, tuple[VirtualDevice, ...]]
    )
    notes: tuple[str, ...] = field(default=(), compare=False)
    _interned: dict[VirtualDevice, VirtualDevice] = field(
        default_factory=dict[VirtualDevice, VirtualDevice], compare=False, repr=False
    )

    def __post_init__(self) -> None:
        _check_names(self.names)
        _check_hosts(self.devices)
        _check_apart(self.devices)
        in_order = sorted(self.devices, key=lambda declared: declared.name != HOST)
        object.__setattr__(self, "devices", tuple(in_order))
        self.named(self.default)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the devices."""
        return tuple(declared.name for declared in self.devices)

    @property
    def default_device(self) -> VirtualDevice:
        """The device for what nothing else decides, as `canonical` gives it."""
        return self.named(self.default)

    def named(self, name: str) -> VirtualDevice:
        """Return the declared device of a name.

        Raises:
            UserError: there is none.
        """
        for declared in self.devices:
            if declared.name == name:
                return self.canonical(declared.device)
        close = difflib.get_close_matches(name, self.names, n=1)
        declare = message("declare it: ", OptionRef("device", f"{name}=KIND"))
        raise UserError(
            f"no device named {name!r}",
            where=_WHERE,
            why=f"expected one of {', '.join(self.names)}",
            do=f"did you mean {close[0]!r}?" if close else declare,
        )

    def intern(self, device: VirtualDevice) -> VirtualDevice:
        """Return the one object of this configuration that is equal to ``device``."""
        if device == UNCONSTRAINED:
            return UNCONSTRAINED
        return self._interned.setdefault(device, device)

    def canonical(self, device: VirtualDevice) -> VirtualDevice:
        """Return ``device``, interned; without a target it gets that of the declared device that it
        is.

        The target stays open if the type is, if it is the host's (each variant has its own), and
        if devices of that type have several and no id decides. Id and scope are not touched.

        Raises:
            UserError: no device of that type is declared.
        """
        kind = device.device_type
        if kind in (ANY_TYPE, HOST_TYPE) or device.target != ANY_TARGET:
            return self.intern(device)
        targets = self._targets(kind)
        found = targets.get(device.id, "") or _only(list(targets.values()))
        return self.intern(replace(device, target=found))

    def of_type(self, device_type: str) -> tuple[DeclaredDevice, ...]:
        """Return the declared devices of a type, one at least.

        Raises:
            UserError: there is none.
        """
        found = tuple(it for it in self.devices if it.device.device_type == device_type)
        if not found:
            known = ", ".join(f"{it.name} ({_described(it)})" for it in self.devices)
            do = message("declare one: ", OptionRef("device", f"NAME={device_type}"))
            raise UserError(
                f"no {device_type} device is declared", _WHERE, f"there are {known}", do
            )
        return found

    def _targets(self, device_type: str) -> Mapping[int, str]:
        """Id -> target of the devices of a type; one whose id is open stands for all."""
        return {it.device.id: it.device.target for it in self.of_type(device_type)}


def _check_names(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        what = f"device {twice[0]!r} is declared twice"
        raise UserError(what, where=_WHERE, why="names must differ", do="rename one")


def _check_hosts(devices: Sequence[DeclaredDevice]) -> None:
    if HOST not in [declared.name for declared in devices]:
        why, do = f"expected a device named {HOST}", f"declare {HOST}"
        raise UserError("no host device", where=_WHERE, why=why, do=do)
    for name, device in ((it.name, it.device) for it in devices):
        if (name == HOST) != (device.device_type == HOST_TYPE):
            why = f"{HOST!r}, and no other device, is of type {HOST_TYPE!r}; got {device}"
            do = "choose another kind" if name != HOST else f"leave {HOST!r} out"
            raise UserError(f"device {name!r} cannot be this", _WHERE, why, do)


def _check_apart(devices: Sequence[DeclaredDevice]) -> None:
    """Two names are two devices, or two memories of one, whose code has one target."""
    for index, one in enumerate(devices):
        for other in devices[:index]:
            if one.device.id != ANY_ID and _place(one) == _place(other):
                _check_memories(other, one)


def _check_memories(one: DeclaredDevice, other: DeclaredDevice) -> None:
    names = f"{one.name!r} and {other.name!r}"
    if one.device.target != other.device.target:
        what = f"devices {names} are one with two targets"
        why = f"{one.device.target or 'an open one'} and {other.device.target or 'an open one'}"
        raise UserError(what, _WHERE, why, "give one of them another id")
    if one.device == other.device:
        why = f"both are {_described(one)}"
        raise UserError(f"devices {names} are the same", _WHERE, why, "declare it once")


def _place(declared: DeclaredDevice) -> tuple[str, int]:
    return declared.device.device_type, declared.device.id


def _described(declared: DeclaredDevice) -> str:
    device = declared.device
    target = f", target {device.target}" if device.target else ""
    scope = f", scope {device.memory_scope}" if device.memory_scope else ""
    number = f":{device.id}" if device.id != ANY_ID else ""
    return f"{device.device_type}{number}{target}{scope}"


def _only(targets: Sequence[str]) -> str:
    return targets[0] if len(set(targets)) == 1 else ANY_TARGET
