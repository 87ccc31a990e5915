"""Virtual devices: where a value lives and what compiles the code that makes it, as far as that is
decided.

In: device type, id, target, memory scope, each of which may be open. Out: ``VirtualDevice`` with
``join`` and ``default``. Not done here: which value goes where (``place``), physical devices (the
loader binds them).
"""

from __future__ import annotations

from typing import TypeVar

from ingot_compiler.ir.errors import UserError
from ingot_runtime.format.plan import DEVICE_KINDS
from ingot_runtime.lazy_dataclass import dataclass

_Field = TypeVar("_Field", str, int)

ANY_TYPE = ""
ANY_ID = -1
ANY_TARGET = ""
ANY_SCOPE = ""
HOST_TYPE = "host"
_DEVICE_TYPES = DEVICE_KINDS[1:]  # the other targets' heads are host architectures


@dataclass(frozen=True, slots=True)
class VirtualDevice:
    """A value of four independent fields, each possibly open: ``device_type`` "", ``id`` -1,
    ``target`` "", ``memory_scope`` "".

    ``target`` is a canonical target text and compares by value; its device type must be
    ``device_type``. ``id`` distinguishes devices of one type; 0 has no special meaning.
    ``memory_scope`` is an opaque name of a memory area.
    """

    device_type: str = ANY_TYPE
    id: int = ANY_ID
    target: str = ANY_TARGET
    memory_scope: str = ANY_SCOPE

    def __post_init__(self) -> None:
        if self.id < ANY_ID:
            what, why = f"bad device id {self.id}", "expected -1 (open) or more"
            raise UserError(what, where=str(self), why=why, do="give an id >= 0")
        kind = device_type_of(self.target) if self.target else self.device_type
        if kind != self.device_type:
            raise UserError(
                f"target {self.target} is for {kind} devices",
                where=str(self),
                why=f"expected a target for {self.device_type or 'an open device type'}",
                do=f"declare the device as {kind}, or choose another target",
            )

    def __str__(self) -> str:
        """``VirtualDevice(device_type=cuda, virtual_device_id=3)``: the decided fields; ``?`` when
        there is none."""
        fields = [
            f"device_type={self.device_type}" if self.device_type != ANY_TYPE else "",
            f"virtual_device_id={self.id}" if self.id != ANY_ID else "",
            f"target={self.target}" if self.target != ANY_TARGET else "",
            f"memory_scope='{self.memory_scope}'" if self.memory_scope != ANY_SCOPE else "",
        ]
        return f"VirtualDevice({', '.join(filter(None, fields)) or '?'})"

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided."""
        return self == UNCONSTRAINED

    @property
    def is_decided(self) -> bool:
        """Whether nothing is open."""
        return self.id != ANY_ID and all((self.device_type, self.target, self.memory_scope))


UNCONSTRAINED = VirtualDevice()


@dataclass(frozen=True, slots=True)
class DeclaredDevice:
    """A virtual device with the name that marks use, ``host`` or what ``--device NAME=KIND``
    says."""

    name: str
    device: VirtualDevice


def device_type_of(target: str) -> str:
    """The device type that code for ``target`` runs on: ``cuda:sm_80`` -> ``cuda``,
    ``x86-64-v3+fma`` -> ``cpu``."""
    head = target.split(":", 1)[0].split("+", 1)[0]
    return head if head in _DEVICE_TYPES else HOST_TYPE


def of_target(target: str) -> VirtualDevice:
    """The first device that runs code for ``target``, any memory scope."""
    return VirtualDevice(device_type_of(target), 0, target)


def join(left: VirtualDevice, right: VirtualDevice) -> VirtualDevice | None:
    """What satisfies both, each field decided by either; None when they contradict.

    Commutative, associative where defined, idempotent; ``UNCONSTRAINED`` is neutral. Targets
    compare by value.
    """
    device_type = _joined(left.device_type, right.device_type, ANY_TYPE)
    identity = _joined(left.id, right.id, ANY_ID)
    target = _joined(left.target, right.target, ANY_TARGET)
    scope = _joined(left.memory_scope, right.memory_scope, ANY_SCOPE)
    if device_type is None or identity is None or target is None or scope is None:
        return None
    if target and device_type_of(target) != device_type:
        return None
    return VirtualDevice(device_type, identity, target, scope)


def _joined(left: _Field, right: _Field, open_value: _Field) -> _Field | None:
    if left in (open_value, right):
        return right
    return left if right == open_value else None


def default(left: VirtualDevice, right: VirtualDevice) -> VirtualDevice:
    """``left``, its open fields taken from ``right``; total.

    Id, target and scope of a device mean nothing on a device of another type: they are taken only
    when the types agree (or ``left`` leaves the type open).
    """
    device_type = left.device_type or right.device_type
    if right.device_type not in (ANY_TYPE, device_type):
        return left
    targets = (left.target, right.target)
    own = (target for target in targets if target and device_type_of(target) == device_type)
    return VirtualDevice(
        device_type,
        left.id if left.id != ANY_ID else right.id,
        next(own, ANY_TARGET),
        left.memory_scope or right.memory_scope,
    )
