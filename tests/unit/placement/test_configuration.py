"""The configuration of a compilation: defaults, canonical devices, what is refused and what is told
of."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_build_rules.making.options import configure as configure_module
from ingot_build_rules.making.options.configure import configuration_of, configure
from ingot_build_rules.making.options.host_target import resolve_target
from ingot_build_rules.making.options.options import make_options
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.placement.configuration import Configuration
from ingot_compiler.placement.virtual_device import (
    UNCONSTRAINED,
    DeclaredDevice,
    VirtualDevice,
    default,
    join,
)

V2, V3, V4 = "x86-64-v2", "x86-64-v3", "x86-64-v4"
HOST = DeclaredDevice("host", VirtualDevice("host", 0))
SM_80, SM_90 = "cuda:sm_80", "cuda:sm_90"
GPU = DeclaredDevice("gpu", VirtualDevice("cuda", 0, SM_80))


def declared(name: str, kind: str, id_: int, target: str, scope: str = "") -> DeclaredDevice:
    return DeclaredDevice(name, VirtualDevice(kind, id_, target, scope))


def fresh(text: str) -> str:
    """An equal text that is another object."""
    return text.encode().decode()


def described(configuration: Configuration) -> tuple[tuple[str, ...], dict[str, str], str]:
    """The host's targets, the devices beside it, the default."""
    devices = {it.name: str(it.device) for it in configuration.devices[1:]}
    return configuration.host_targets, devices, configuration.default


def device_text(kind: str, id_: int, target: str) -> str:
    return str(VirtualDevice(kind, id_, f"{kind}:{target}"))


NATIVE = str(resolve_target("native"))
# case -> (targets, devices, default), (host targets, devices, default); the numbers are those of
# the cases that earlier systems had
COMPLETED: dict[
    str,
    tuple[
        tuple[Sequence[str], Mapping[str, str], str], tuple[Sequence[str], Mapping[str, str], str]
    ],
] = {
    "1 an explicit host is the host, whatever devices there are": (
        ((V3,), {"gpu": "null", "cpu": "cpu"}, "host"),
        ((V3,), {"cpu": device_text("cpu", 0, V3), "gpu": device_text("null", 0, V3)}, "host"),
    ),
    "2 one device beside the host takes its target": (
        ((V3,), {"acc": "cpu"}, "acc"),
        ((V3,), {"acc": device_text("cpu", 0, V3)}, "acc"),
    ),
    "3 the default is the one that is named": (
        ((V2,), {"acc": "cpu:1", "other": "null"}, "other"),
        ((V2,), {"acc": device_text("cpu", 1, V2), "other": device_text("null", 0, V2)}, "other"),
    ),
    "4 without a target the host is this machine": (
        ((), {"acc": "cpu"}, "host"),
        ((NATIVE,), {"acc": device_text("cpu", 0, NATIVE)}, "host"),
    ),
    "5 several devices of a kind may have several targets": (
        ((V2,), {"a": "cpu:0", "b": f"cpu:1,target={V3}", "c": f"cpu:2,target={V4}"}, "host"),
        (
            (V2,),
            {"a": device_text("cpu", 0, V2), "b": device_text("cpu", 1, V3), "c": device_text("cpu", 2, V4)},
            "host",
        ),
    ),
    "6 their order means nothing": (
        ((V4, V2), {"c": f"cpu:2,target={V4}", "a": "cpu:0"}, "host"),
        ((V2, V4), {"a": device_text("cpu", 0, V2), "c": device_text("cpu", 2, V4)}, "host"),
    ),
    "7 a device that is special stands alone": (
        ((V3, V3), {"b": f"cpu:1,target={V2}"}, "host"),
        ((V3,), {"b": device_text("cpu", 1, V2)}, "host"),
    ),
    "9 nothing given is the host, this machine": (((), {}, "host"), ((NATIVE,), {}, "host")),
    "12 two kinds and no choice: the host": (
        ((V2,), {"a": "cpu", "b": "null"}, "host"),
        ((V2,), {"a": device_text("cpu", 0, V2), "b": device_text("null", 0, V2)}, "host"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(COMPLETED))
def test_what_is_left_out_is_filled_in(case: str) -> None:
    """The same text gives the same configuration, and nothing is assumed that is not listed."""
    (targets, devices, default_name), expected = COMPLETED[case]
    configuration = configure(targets, devices, default=default_name)
    host, others, name = described(configuration)
    assert (host, others, name) == (tuple(expected[0]), expected[1], expected[2])
    assert configuration.default_device is configuration.named(default_name)


REFUSED: dict[
    str, tuple[Sequence[str], Mapping[str, str], str, type[Exception], tuple[str, ...]]
] = {
    "8 one device under two names": (
        (V2,), {"a": "cpu:1", "b": "cpu:1"}, "host", UserError, ("'a' and 'b' are the same", "cpu:1, target cpu:x86-64-v2"),
    ),
    "8 one device with two targets": (
        (V2,), {"a": "cpu:1", "b": f"cpu:1,target={V3}"}, "host", UserError, ("'a' and 'b' are one", V2, V3),
    ),
    "10 no such id": ((V2,), {"a": "cpu:-1"}, "host", UserError, ("no such id", "'-1'")),
    "10 no such default": ((V2,), {"a": "cpu"}, "", UserError, ("no device named ''", "host, a")),
    "11 a default that nobody declared": ((V2,), {"acc": "cpu"}, "ac", UserError, ("'ac'", "did you mean 'acc'?")),
    "a kind that there is not": ((V2,), {"a": "gpu"}, "host", UserError, ("unknown device kind 'gpu'", "did you mean 'cpu'?")),
    "a host that is declared": ((V2,), {"host": "cpu"}, "host", UserError, ("device name taken",)),
    "a host that is no processor": (("opencl",), {}, "host", UserError, ("the host cannot be", "--device NAME=opencl")),
    "a host with a number": (("cpu:1",), {}, "host", UserError, ("the host cannot be", "--device NAME=cpu:1")),
    "code that cannot run beside the host": (
        (V2,), {"a": "cpu,target=aarch64"}, "host", UserError, ("'a' cannot run beside the host", "aarch64", V2),
    ),
    "an unknown scope": ((V2,), {"a": "cpu,scope=fast"}, "host", UserError, ("unknown scope 'fast' of device kind cpu", "expected global")),
    "an unknown target": ((V2,), {"a": "cpu,target=x86-64-v9"}, "host", UserError, ("x86-64-v9",)),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_refused(case: str) -> None:
    """By name, with both sides where there are two."""
    targets, devices, default_name, kind, parts = REFUSED[case]
    with pytest.raises(kind) as caught:
        configure(targets, devices, default=default_name)
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert getattr(caught.value, "where", "")


def test_18_a_kind_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that the format has and no back end is refused by name."""
    monkeypatch.setattr(configure_module, "KINDS_WITH_CODE", ("cpu", "null"))
    with pytest.raises(UnsupportedError, match="no code generation for 'cuda' devices yet"):
        configure((V2,), {"a": "cuda"})


def test_two_scopes_of_one_device() -> None:
    """One device may have two names if they are two of its memories."""
    scopes = {"fast": "null:1,scope=fast", "slow": "null:1,scope=slow"}
    assert len(configure((V2,), scopes).devices) == 3


def test_a_device_that_needs_more_than_its_host_is_told_of() -> None:
    """Each variant of the host that runs on machines which the device's code does not."""
    notes = configure((V2, V4), {"acc": f"cpu,target={V3}"}).notes
    assert len(notes) == 1
    assert notes[0].startswith("device 'acc' needs avx avx2")
    assert f"the variant {V2} of the host" in notes[0]
    assert configure((V2, V4), {"acc": "cpu"}).notes == ()


def test_a_configuration_of_its_own_parts_is_the_same() -> None:
    """Case 13: what was completed is complete; it compares as a value."""
    options = make_options((V4, V2), devices={"b": "cpu:3,scope=global", "a": f"null,target={V3}"})
    once = configuration_of(options)
    devices = {it.name: _text(it.device) for it in once.devices[1:]}
    assert configure(once.host_targets, devices) == once
    assert configure(tuple(reversed(once.host_targets)), devices) == once
    assert configure((V2,), devices) != once


def _text(device: VirtualDevice) -> str:
    scope = f",scope={device.memory_scope}" if device.memory_scope else ""
    target = device.target.partition(":")[2]
    return f"{device.device_type}:{device.id},target={target}{scope}"


def test_devices_of_a_type() -> None:
    """Case 14: those that are declared, or all that there are."""
    configuration = Configuration((HOST, GPU))
    assert configuration.of_type("cuda") == (GPU,)
    with pytest.raises(UserError) as caught:
        configuration.of_type("metal")
    assert "host (host:0), gpu (cuda:0, target cuda:sm_80)" in str(caught.value)


def test_devices_by_name() -> None:
    """Case 15: found by what the user calls it, or refused with what is there."""
    configuration = Configuration((HOST, GPU))
    assert configuration.named("gpu") == GPU.device
    with pytest.raises(UserError, match="no device named 'cutlass'") as caught:
        configuration.named("cutlass")
    assert "expected one of host, gpu" in str(caught.value)


def test_canonical_targets() -> None:
    """Case 16: an equal target is the declared one; another stays itself; the host's stays open,
    since each variant has its own."""
    configuration = Configuration((HOST, GPU))
    equal = VirtualDevice("cuda", 0, fresh(SM_80))
    assert configuration.canonical(equal) is configuration.named("gpu")
    other = VirtualDevice("cuda", 0, SM_90)
    assert configuration.canonical(other) == other
    assert configuration.canonical(VirtualDevice("host")) == VirtualDevice("host")


def test_canonical_devices() -> None:
    """Cases 17 and 18: a type gets its target, by the id where there are several; id and scope are
    not touched; nothing decided is the one open device; a type that nobody declared is refused."""
    one = Configuration((HOST, GPU))
    assert one.canonical(VirtualDevice("cuda")) == VirtualDevice("cuda", -1, SM_80)
    assert one.canonical(VirtualDevice("cuda", 5)) == VirtualDevice("cuda", 5, SM_80)
    scoped = one.canonical(VirtualDevice(memory_scope="global"))
    assert scoped == VirtualDevice(memory_scope="global")
    assert scoped is one.canonical(VirtualDevice(memory_scope="global"))
    assert one.canonical(VirtualDevice()) is UNCONSTRAINED
    with pytest.raises(UserError, match="no metal device is declared"):
        one.canonical(VirtualDevice("metal"))
    two = Configuration((HOST, GPU, declared("big", "cuda", 1, SM_90)))
    assert two.canonical(VirtualDevice("cuda", 1)).target == SM_90
    assert two.canonical(VirtualDevice("cuda")).target == ""


SOME = tuple(
    VirtualDevice(kind, identity, target, scope)
    for kind, targets in (("", ("",)), ("host", ("",)), ("cuda", ("", SM_80, SM_90)))
    for identity, target, scope in itertools.product((-1, 0, 1), targets, ("", "global"))
)
devices_strategy = st.sampled_from(SOME)


@given(devices_strategy, devices_strategy)
def test_canonical_devices_are_equal_when_they_are_one(
    one: VirtualDevice, two: VirtualDevice
) -> None:
    """Canonical devices are equal if and only if they are the same object, however they were made;
    what is canonical stays as it is, and never contradicts what it was made from."""
    configuration = Configuration((HOST, GPU, declared("big", "cuda", 1, SM_90)))
    left, right = (configuration.canonical(replace(device)) for device in (one, two))
    assert (left == right) == (left is right)
    assert configuration.canonical(left) is left
    assert join(one, left) == left


def test_interning() -> None:
    """Equal fields are one object, whatever made them; another field is another object."""
    configuration = Configuration((HOST, GPU))
    made = configuration.intern(VirtualDevice("cuda", 3, SM_80, "local"))
    again = VirtualDevice("cuda", 3, fresh(SM_80), "local")
    assert again is not made
    assert configuration.intern(again) is made
    for changed in ({"id": 2}, {"target": SM_90}, {"memory_scope": "global"}):
        assert configuration.intern(replace(made, **changed)) is not made


def test_two_configurations_share_nothing_and_leave_nothing() -> None:
    """The table lives as long as its configuration: ten thousand of them leave no device behind."""
    one, two = Configuration((HOST, GPU)), Configuration((HOST, GPU))
    fresh = [replace(GPU.device, id=7) for _ in range(2)]
    assert one.intern(fresh[0]) is not two.intern(fresh[1])
    gc.collect()
    before = _count()
    for number in range(10_000):
        Configuration((HOST, GPU)).intern(VirtualDevice("cuda", number, SM_80))
    gc.collect()
    assert _count() == before


def _count() -> int:
    return sum(type(it) is VirtualDevice for it in gc.get_objects())


@given(devices_strategy, devices_strategy, devices_strategy)
def test_join_is_monotone(one: VirtualDevice, two: VirtualDevice, three: VirtualDevice) -> None:
    """What is decided by a join stays decided in every further one."""
    both = join(one, two)
    if both is not None:
        assert join(one, both) == both
        more = join(both, three)
        if more is not None:
            assert join(one, three) is not None
            assert join(both, more) == more


@given(devices_strategy)
def test_scopes(device: VirtualDevice) -> None:
    """A device of a scope alone joins every device but one of another scope."""
    scoped = VirtualDevice(memory_scope="global")
    assert join(device, scoped) == replace(device, memory_scope="global")
    assert join(replace(device, memory_scope="local"), scoped) is None


@given(devices_strategy, devices_strategy)
def test_default_takes_nothing_from_another_type(one: VirtualDevice, two: VirtualDevice) -> None:
    """A device of one type gets no id, no target and no scope of a device of another."""
    if one.device_type and two.device_type not in ("", one.device_type):
        assert default(one, two) == one


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ((GPU,), "no host device"),
        ((HOST, GPU, GPU), "declared twice"),
        ((HOST, DeclaredDevice("acc", VirtualDevice("host", 1))), "device 'acc' cannot be this"),
        ((DeclaredDevice("host", VirtualDevice("cuda", 0)),), "device 'host' cannot be this"),
    ],
)
def test_damaged_tables(devices: Sequence[DeclaredDevice], message: str) -> None:
    """The host is there, once, and it is the host."""
    with pytest.raises(UserError, match=message):
        Configuration(tuple(devices))
