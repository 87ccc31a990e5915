"""One bundle whose device may be several kinds: what runs, what is bound, what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import assert_close
from tests.hostile.reseal import Parts, reseal_root
from tests.unit.backends.test_opencl_models import chain
from tests.unit.end_to_end.test_models import RELATIVE_ERROR_MAX, STATIC, Cases

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.format import header as head

V3 = "x86-64-v3"
X = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)
ERROR_MAX = 1e-5


def made(**devices: str) -> bytes:
    """A bundle of four blocks, two of which are on devices; ``last`` is where the fourth is."""
    place = {"/second/*": "acc", "/fourth/*": "last" if "last" in devices else "acc"}
    return ingot.compile(chain(), targets=[V3], devices=devices, place=place).to_bytes()


@pytest.fixture(scope="module")
def bundle() -> bytes:
    """What may be an OpenCL device, and runs on the processor where there is none."""
    return made(acc="opencl|cpu:1")


@pytest.fixture(scope="module")
def expected() -> dict[str, Array]:
    """What the host alone gives."""
    return ingot_runtime.load(ingot.compile(chain(), targets=[V3]).to_bytes()).run({"x": X})


def no_opencl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)  # makes the import fail


@pytest.mark.sweep(4)
@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize(
    "bound", [pytest.param("opencl:0", marks=pytest.mark.opencl), "cpu:2", "null:0"]
)
def test_every_kind_gives_the_numbers(
    bundle: bytes, expected: dict[str, Array], bound: str, executor: str
) -> None:
    """One file, bound to each kind that it has code for, launches there."""
    with ingot_runtime.load(bundle, devices={"acc": bound}, executor=executor) as session:
        assert session.devices["acc"] == bound
        assert_close(expected["y"], session.run({"x": X})["y"], ERROR_MAX)
        assert session.device_counts().launches["acc"] > 0


@pytest.mark.opencl
def test_the_first_that_is_there(bundle: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the declaration counts, whichever kind has the loops; a kind that is missing is
    passed over, and the session tells what it got."""
    assert ingot_runtime.load(bundle).devices["acc"] == "opencl:0"
    other = made(acc="cpu:3|opencl")
    assert ingot_runtime.load(other).devices["acc"] == "cpu:3"
    assert ingot_runtime.load(made(acc="opencl:77|cpu:1")).devices["acc"] == "cpu:1"
    no_opencl(monkeypatch)
    assert ingot_runtime.load(bundle).devices["acc"] == "cpu:1"


def test_what_is_asked_for_is_not_replaced(bundle: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that the user names is that one or an error."""
    no_opencl(monkeypatch)
    with pytest.raises(ingot_runtime.IncompatibleError, match="needs pyopencl"):
        ingot_runtime.load(bundle, devices={"acc": "opencl:0"})


def test_none_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is named with its reason."""
    data = made(acc="opencl|cpu:99")
    no_opencl(monkeypatch)
    with pytest.raises(ingot_runtime.IncompatibleError, match="no device for 'acc' here") as found:
        ingot_runtime.load(data)
    assert "opencl:0, cpu:99" in found.value.what
    assert "device 'acc' needs pyopencl" in found.value.why
    assert "no device cpu:99 here" in found.value.why
    assert "compile the model for a device that is here" in found.value.do


def test_wrong_choices(bundle: bytes) -> None:
    """A target that none of the fitting codes has, and a kind that no code runs on."""
    one = made(acc="opencl")
    for data, bound, words in (
        (bundle, "cpu:0,target=x86-64-v4", "has no target 'x86-64-v4'"),
        (bundle, "cuda:0", "cannot be cuda:0"),
        (bundle, "host", "cannot be host:0"),
        (one, "cpu:0", "cannot be cpu:0"),
    ):
        with pytest.raises(ingot_runtime.IncompatibleError, match=words):
            ingot_runtime.load(data, devices={"acc": bound})


@pytest.mark.opencl
def test_devices_with_other_choices_have_their_own_code(expected: dict[str, Array]) -> None:
    """A device of one kind beside one that may be several: each has the loops of its own kinds."""
    data = made(acc="cpu:1|opencl", last="cpu:2")
    with ingot_runtime.load(data, devices={"acc": "opencl"}) as session:
        assert session.devices == {"host": "host:0", "acc": "opencl:0", "last": "cpu:2"}
        assert_close(expected["y"], session.run({"x": X})["y"], ERROR_MAX)


@pytest.mark.opencl(devices=2)
def test_two_devices_share_what_is_the_same() -> None:
    """Devices that may be the same kinds share libraries and alternatives, and keep their ids."""
    data = made(acc="opencl|cpu:1", last="opencl:1|cpu:2")
    assert [key for key in Parts(data).payloads if key[0] in (head.LIBRARY, head.ALTERNATIVE)] == [
        (head.LIBRARY, 0),
        (head.ALTERNATIVE, 0),
    ]
    bound = ingot_runtime.load(data, devices={"acc": "cpu:1"}).devices
    assert (bound["acc"], bound["last"]) == ("cpu:1", "opencl:1")


@pytest.mark.opencl
def test_a_loader_that_does_not_know_them(bundle: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The section is optional: an earlier loader of the same version skips it and has the first
    choice alone."""
    versions = [
        head.HEADER.unpack(data[: head.HEADER_SIZE_BYTES])[1:3]
        for data in (bundle, made(acc="opencl"))
    ]
    assert versions[0] == versions[1]
    monkeypatch.setattr(head, "KIND_NAMES", head.KIND_NAMES[: head.ALTERNATIVE])
    monkeypatch.setattr(head, "ALTERNATIVE", 99)
    assert ingot_runtime.load(bundle).devices["acc"] == "opencl:0"
    with pytest.raises(ingot_runtime.IncompatibleError, match="cannot be cpu:1"):
        ingot_runtime.load(bundle, devices={"acc": "cpu:1"})


def test_one_kind_has_no_such_section() -> None:
    """A bundle without a choice is as it always was."""
    assert head.ALTERNATIVE not in {kind for kind, _ in Parts(made(acc="opencl")).payloads}


def word(index: int, value: int) -> Callable[[bytes], bytes]:
    """A change of a word of the head; word 0 is the size of the head, 1 the count of words."""
    return lambda data: data[: 8 * index] + value.to_bytes(8, "little", signed=True) + data[8 * index + 8 :]  # fmt: skip


# Words of the head: bytes, count, library, kind, target, features, [feature...], kernels, devices, device, id.
LIES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda _: b"", "the section ends inside its head"),
    "a head of less than nothing": (word(0, -9), "the section ends inside its head"),
    "a head behind the end": (word(0, 1 << 40), "the section ends inside its head"),
    "a head of another size": (word(0, 16), "the section ends inside its head|word count lies"),
    "words that are not there": (word(1, 1 << 40), "word count lies"),
    "a library that is not there": (word(2, 1), "bad library"),
    "a host": (word(3, 0), "bad device kind"),
    "a kind that nobody knows": (word(3, 99), "device kind 99 is not known"),
    "words that are texts": (word(1, 3), "holds a control character|not UTF-8|ends too early"),
}


@pytest.mark.parametrize("name", list(LIES))
def test_sections_that_lie(bundle: bytes, name: str) -> None:
    """Each rule of the section is checked, whatever the digests say."""
    change, message = LIES[name]
    parts = Parts(bundle)
    parts.put(head.ALTERNATIVE, 0, change(parts.payloads[head.ALTERNATIVE, 0]))
    with pytest.raises(ingot_runtime.BundleError, match=message) as found:
        ingot_runtime.load(parts.sealed())
    assert "section alternative 0" in found.value.where


@pytest.mark.parametrize(
    ("back", "value", "message"),
    [
        (4, 7, "an alternative with other kernels"),
        (3, 0, "bad device count"),
        (2, 0, "bad device"),
        (2, 9, "bad device"),
        (1, -1, "bad device id"),
    ],
)
def test_last_words_that_lie(bundle: bytes, back: int, value: int, message: str) -> None:
    """The count of kernels, the devices and their ids."""
    parts = Parts(bundle)
    data = parts.payloads[head.ALTERNATIVE, 0]
    count = int.from_bytes(data[8:16], "little")
    parts.put(head.ALTERNATIVE, 0, word(2 + count - back, value)(data))
    with pytest.raises(ingot_runtime.FormatError, match=message):
        ingot_runtime.load(parts.sealed())


def test_an_alternative_for_another_library() -> None:
    """A device whose library is another one may not take these kernels."""
    parts = Parts(made(acc="cpu:1|opencl", last="cpu:2"))
    data = parts.payloads[head.ALTERNATIVE, 0]
    count = int.from_bytes(data[8:16], "little")
    parts.put(head.ALTERNATIVE, 0, word(2 + count - 2, 2)(data))
    with pytest.raises(ingot_runtime.FormatError, match="for a device of another library"):
        ingot_runtime.load(parts.sealed())


def test_a_number_that_is_left_out(bundle: bytes) -> None:
    """Numbers begin with 0."""
    parts = Parts(bundle)
    data = bytearray(parts.sealed())
    rows = head.HEADER_SIZE_BYTES
    count = head.check_header(bytes(data[:rows]), len(data))
    for index in range(count):
        at = rows + index * head.ROW_SIZE_BYTES
        if int.from_bytes(data[at : at + 4], "little") == head.ALTERNATIVE:
            data[at + 4] = 3
    with pytest.raises(ingot_runtime.FormatError, match="an alternative is missing"):
        ingot_runtime.load(reseal_root(bytes(data)))


def test_damage_is_found(bundle: bytes) -> None:
    """A changed byte of its code is told with the section, before anything runs."""
    parts = Parts(bundle)
    digests = dict(parts.digests)
    data = parts.payloads[head.ALTERNATIVE, 0]
    parts.put(head.ALTERNATIVE, 0, data[:-1] + bytes([data[-1] ^ 1]))
    parts.digests = digests
    with pytest.raises(ingot_runtime.DigestError, match="section alternative 0 is damaged"):
        ingot_runtime.load(parts.sealed())


@pytest.mark.broad
def test_commands(bundle: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """inspect tells what there is, verify and run take the file, and it is made again from its own
    record."""
    path = tmp_path / "m.ingot"
    path.write_bytes(bundle)
    told = describe_bundle(path)
    (row,) = told["alternatives"]
    assert (row["kind"], row["target"], row["library"]) == ("cpu", V3, 0)
    assert row["devices"] == [{"name": "acc", "id": 1}]
    assert row["kernel_count"] == told["libraries"][0]["kernel_count"]
    assert told["lock"]["options"]["devices"] == {
        "acc": f"opencl:0,target=opencl-c-1.2|cpu:1,target={V3}"
    }
    np.savez(tmp_path / "x.npz", x=X)
    for command in (
        ["inspect", str(path)],
        ["verify", str(path)],
        ["run", str(path), "--inputs", str(tmp_path / "x.npz"), "--device", "acc=cpu:2"],
    ):
        assert main(command) == 0
    shown = capsys.readouterr().out
    assert f"cpu {V3}: " in shown
    assert "acc on cpu:2" in shown
    (tmp_path / "m.onnx").write_bytes(chain().SerializeToString())
    assert main(["reproduce", str(path), "--source", str(tmp_path / "m.onnx")]) == 0


@pytest.mark.opencl
@pytest.mark.slow
@pytest.mark.parametrize("model", STATIC)
def test_architectures_on_the_second_choice(model: str) -> None:
    """The loops of one kind are right as the code of the other, in either order."""
    cases = Cases(model, dynamic=False)
    for text, bound in (("opencl|cpu", "cpu:1"), ("cpu|opencl", "opencl"), ("cpu|opencl", "cpu")):
        data = ingot.compile(cases.path, devices={"acc": text}, place={"*": "acc"}).to_bytes()
        with ingot_runtime.load(data, devices={"acc": bound}) as session:
            for feed, expected in zip(cases.feeds, cases.expected, strict=True):
                found = session.run(feed)
                for name, array in expected.items():
                    assert_close(array, np.asarray(found[name]), RELATIVE_ERROR_MAX)
            assert session.device_counts().launches["acc"] > 0
