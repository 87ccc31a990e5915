"""``--device NAME=KIND[:ID][,target=T][,scope=S]``: what is read, and how a mistake is told."""

import pytest

from ingot_build_rules.making.options.compile_options import DeviceOption
from ingot_build_rules.making.options.configure import configure, device_options
from ingot_build_rules.making.options.options import make_options
from ingot_compiler.ir.errors import UserError

V2, V3 = "x86-64-v2", "x86-64-v3"


def read_device(name: str, text: str, host_targets: tuple[str, ...]) -> DeviceOption:
    """The one device that is declared."""
    (option,) = device_options(configure(host_targets, {name: text}))
    return option


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", "null:0,target=x86-64-v2"),
        ("null:3", "null:3,target=x86-64-v2"),
        ("null:1,scope=fast", "null:1,target=x86-64-v2,scope=fast"),
        ("null,target=x86-64-v3", "null:0,target=x86-64-v3"),
        ("null:1,scope=fast,target=x86-64-v3", "null:1,target=x86-64-v3,scope=fast"),
        ("opencl|cpu:1", "opencl:0,target=opencl-c-1.2|cpu:1,target=x86-64-v3"),
        ("cuda:1", "cuda:1,target=sm_75"),
        ("cuda,target=sm_90+sm_80", "cuda:0,target=sm_80+sm_90"),
        ("opencl|cuda", "opencl:0,target=opencl-c-1.2|cuda:0,target=sm_75"),
        ("null,target=x86-64-v3|opencl:2", "null:0,target=x86-64-v3|opencl:2,target=opencl-c-1.2"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    """The canonical text says all, and is read back as it is; without a target it is the one that
    most machines run."""
    device = read_device("acc", text, (V3, V2))
    assert str(device) == expected
    assert read_device("acc", expected, (V3,)) == device


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("opncl", UserError, "did you mean 'opencl'?"),
        ("cuda,target=sm_74", UserError, "unknown architecture 'sm_74'"),
        ("cuda,target=sm_80+sm_80", UserError, "architecture 'sm_80' is given twice"),
        ("cuda,scope=shared", UserError, "unknown scope 'shared' of device kind cuda"),
        ("host", UserError, "unknown device kind 'host'"),
        ("null:", UserError, "a device has no such id"),
        ("null:x", UserError, "a device has no such id"),
        ("null:-1", UserError, "a device has no such id"),
        ("null:99999999999", UserError, "a device has no such id"),
        ("null,speed=7", UserError, "a device is not understood"),
        ("null,tagret=x86-64-v3", UserError, "did you mean 'target'?"),
        ("null,target=", UserError, "a device is not understood"),
        ("null,scope=a,scope=b", UserError, "scope is given twice"),
        ("null,target=x86-64-v9", UserError, "x86-64-v9"),
        ("cpu,target=x86-64-v2,target=x86-64-v3", UserError, "a device has one target"),
        (
            "cpu,target=x86-64-v2|cpu,target=x86-64-v3",
            UserError,
            "cpu is named for x86-64-v2 and x86-64-v3; its code is for one target",
        ),
        ("cpu|null:1", UserError, "cpu and null run the same code"),
        ("opencl|opencl:1", UserError, "opencl is named twice"),
        (
            "opencl|cpu,target=x86-64-v4",
            UserError,
            "loops, which are cut for x86-64-v3; got x86-64-v4",
        ),
        ("opencl|null,scope=fast", UserError, "a scope of device 'acc'"),
        ("opencl|", UserError, "unknown device kind ''"),
        ("cuda|cuda:1", UserError, "cuda is named twice"),
    ],
)
def test_mistakes(text: str, error: type[Exception], message: str) -> None:
    """One error per mistake, with the option in it."""
    with pytest.raises(error, match=message.replace("?", r"\?")):
        read_device("acc", text, (V2,))


def test_a_target_is_told_with_its_device() -> None:
    """An unknown one is that of a device, not of the host."""
    with pytest.raises(UserError, match="unknown target") as caught:
        read_device("acc", "cpu:1,target=x86-64-v9", (V2,))
    assert str(caught.value.where) == "--device acc=cpu:1,target=x86-64-v9"


def test_names() -> None:
    """``host`` is taken; a placement names a device that was declared."""
    with pytest.raises(UserError, match="device name taken"):
        make_options(("x86-64-v2",), devices={"host": "null"})
    for name, remedy in (("ac", "did you mean 'acc'?"), ("gpu", "declare it with --device gpu=")):
        with pytest.raises(UserError, match=f"unknown device '{name}'") as caught:
            make_options(("x86-64-v2",), devices={"acc": "null"}, place=[("*", name)])
        assert remedy in str(caught.value.do)
    options = make_options(("x86-64-v2",), devices={"b": "null:1", "a": "null"}, place=[("*", "a")])
    assert [device.name for device in options.devices] == ["a", "b"]
    assert options.plain()["devices"] == {
        "a": "null:0,target=x86-64-v2",
        "b": "null:1,target=x86-64-v2",
    }
