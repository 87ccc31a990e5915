"""Bundles that lie about devices, libraries and what is not known yet; every digest above the lie is made again."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from tests.hostile.reseal import Parts
from tests.hostile.tiny import op
from tests.hostile.two_devices import library, tree_entry, two_device_contents, two_device_reference

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import describe_bundle, verify_bundle
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.limits import ALIGNMENT_SMALL_BYTES
from ingot_runtime.format.plan import DevicePlan, LibraryPlan, Plan
from ingot_runtime.format.program import CODES, Instruction, Program, encode_program
from ingot_runtime.format.sha256 import sha256

X = np.ones((4, 8), np.float32)


@cache
def whole() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "two"
        write_bundle(two_device_contents(count=2), path, tree_entry)
        return path.read_bytes()


def runs(data: bytes, executor: str = "aot") -> bool:
    """Load and run."""
    session = ingot_runtime.load(data, executor=executor)
    return bool((session.run({"x": X})["y"] == two_device_reference(X)).all())


def refused(
    data: bytes, message: str, kind: type[Exception] = ingot_runtime.FormatError, executor: str = "aot"
) -> None:
    """Check that a load is refused for this reason, with a place."""
    with pytest.raises(kind, match=message) as caught:
        ingot_runtime.load(data, executor=executor).run({"x": X})
    assert isinstance(caught.value, ingot_runtime.BundleError)
    assert caught.value.where


def test_parts_are_the_bundle() -> None:
    """Taken apart and sealed again it is the same, and runs."""
    assert Parts(whole()).sealed() == whole()
    assert runs(whole())
    assert runs(whole(), "vm")


def _replace(plan: Plan, index: int, **fields: object) -> None:
    device = plan.devices[index]
    values = {
        "name": device.name,
        "kind": device.kind,
        "id": device.id,
        "scope": device.scope,
        "library": device.library,
    }
    made = DevicePlan(**{**values, **fields})  # type: ignore[arg-type]  # by name
    plan.devices = (*plan.devices[:index], made, *plan.devices[index + 1 :])


def _libraries(plan: Plan, **fields: object) -> None:
    old = plan.libraries[0]
    values = {"kind": old.kind, "target": old.target, "features": old.features, "kernel_count": old.kernel_count}
    plan.libraries = (LibraryPlan(**{**values, **fields}),)  # type: ignore[arg-type]  # by name


def _two_libraries(plan: Plan) -> None:
    plan.libraries = plan.libraries * 2


@dataclass(frozen=True)
class Lie:
    change: Callable[[Plan], None]
    message: str
    kind: type[Exception] = ingot_runtime.FormatError


LIES = {
    "host with a library": Lie(lambda plan: _replace(plan, 0, library=0), "a host with a library"),
    "device without one": Lie(lambda plan: _replace(plan, 1, library=-1), "device without a library"),
    "library that is not there": Lie(lambda plan: _replace(plan, 2, library=1), "device without a library"),
    "library of another kind": Lie(lambda plan: _libraries(plan, kind="cuda"), "library of another kind"),
    "library of a host": Lie(lambda plan: _libraries(plan, kind="host"), "bad device kind"),
    "library of no device": Lie(_two_libraries, "library of no device"),
    "no device left": Lie(lambda plan: setattr(plan, "devices", plan.devices[:1]), "library of no device|words left over|bad"),
    "device that is a host": Lie(lambda plan: _replace(plan, 2, kind="host", id=0, library=-1), "disagree"),
    "more kernels": Lie(lambda plan: _libraries(plan, kernel_count=2), "disagree"),
    "no kernels": Lie(lambda plan: _libraries(plan, kernel_count=0), "disagree"),
    "other features": Lie(lambda plan: _libraries(plan, features=()), "disagree"),
    "unsorted features": Lie(lambda plan: _libraries(plan, features=("b", "a")), "features not sorted"),
    "other target": Lie(lambda plan: _libraries(plan, target="x86-64-v3"), "disagree"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(LIES))
def test_plans_that_lie(name: str) -> None:
    """No plan can exchange what main was made for; the manifest agrees with each lie."""
    parts, lie = Parts(whole()), LIES[name]
    parts.change_plan(lie.change)
    refused(parts.sealed(), lie.message, lie.kind)


def test_code_for_another_target() -> None:
    """A library for a machine that this is not is refused by name, even if all digests agree."""
    parts = Parts(whole())
    parts.change_plan(lambda plan: _libraries(plan, target="aarch64", features=("asimd",)))
    parts.reseal_interface()
    refused(parts.sealed(), "cannot run its library here", ingot_runtime.IncompatibleError)


def _word(image: bytes, index: int, value: int) -> bytes:
    return image[: 4 * index] + struct.pack("<I", value) + image[4 * index + 4 :]


_HEAD = len(abi.IMAGE_HEADER)
IMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no image": (lambda image: bytes(len(image)), "not an image"),
    "nothing": (lambda _: b"", "whole pages"),
    "other count": (lambda image: _word(image, 4, 2), "disagree"),
    "main": (lambda image: _word(image, _HEAD, 4096), "a library with an export main"),
    "no launch": (lambda image: _word(image, _HEAD + 1, 0), "export launch is missing"),
    "launch outside": (lambda image: _word(image, _HEAD + 1, 1 << 30), "export launch is missing"),
    "worker outside": (lambda image: _word(image, _HEAD + 2, 1 << 30), "export worker is missing"),
    "kernel outside": (lambda image: _word(image, _HEAD + len(abi.EXPORTS), 1 << 30), "export kernel is missing"),
    "kernel in the table": (lambda image: _word(image, _HEAD + len(abi.EXPORTS), 0), "export kernel is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(IMAGES))
def test_libraries_that_lie(name: str) -> None:
    """A library section that is no image of this library is refused before anything of it runs."""
    change, message = IMAGES[name]
    parts = Parts(whole())
    parts.put(head.LIBRARY, 0, change(library().image))
    refused(parts.sealed(), message)


def test_damaged_library_and_device_weights() -> None:
    """A byte that is not what its digest says is found, and the section named, at load and by verify."""
    parts = Parts(whole())
    digests = dict(parts.digests)
    parts.put(head.LIBRARY, 0, library().image[:-1] + b"\1")
    parts.digests = digests
    refused(parts.sealed(), "section library 0 is damaged", ingot_runtime.DigestError)
    damaged = bytearray(whole())
    damaged[-1] ^= 1
    refused(bytes(damaged), "weights are damaged in MiB 1", ingot_runtime.DigestError)
    with pytest.raises(ingot_runtime.DigestError) as caught:
        ingot_runtime.load(bytes(damaged))
    assert "section weights 1" in caught.value.where


def _launch(device: int, kernel: int, buffers: tuple[int, ...]) -> Instruction:
    return op("launch", device, kernel, 0, buffers, (1,), 2, 1)


PROGRAMS: dict[str, tuple[Instruction, str]] = {
    "kernel beyond the library": (_launch(1, 1, (6, 5, 7, 4)), "kernel out of range"),
    "device beyond the table": (_launch(3, 0, (6, 5, 7, 4)), "device out of range"),
    "no scratch": (_launch(1, 0, ()), "no scratch for the device"),
    "host buffer on a device": (_launch(1, 0, (6, 3, 7, 4)), "buffer of another device"),
    "device buffer on the host": (_launch(0, 0, (3, 5, 2)), "buffer of another device"),
    "buffer of another device": (_launch(2, 0, (6, 5, 7, 4)), "buffer of another device"),
    "copy that names the host": (op("copy", 0, 0, 5, 0, 4), "buffer of another device"),
    "copy from where it is not": (op("copy", 2, 0, 1, 6, 4), "buffer of another device"),
    "copy to where it is not": (op("copy", 0, 2, 5, 0, 4), "buffer of another device"),
    "read of a device": (op("read", 0, 5, 5, 0), "buffer of another device"),
    "output on a device": (op("output_buffer", 0, 6, 4), "buffer of another device"),
    "buffer of two devices": (op("buffer_workspace", 5, 2, 5, 4), "buffer of two devices"),
    "weights of none": (op("buffer_device_weights", 8, 2, 0, 1), "weights out of range"),
    "weights beyond": (op("buffer_device_weights", 7, 1, 1 << 21, 1), "weights out of range"),
    "pool of no device": (op("workspace_bytes", 3, 4), "device out of range"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs_that_lie(name: str) -> None:
    """The vm refuses a program that mixes memories up, naming the instruction; its image says that main was made from it."""
    instruction, message = PROGRAMS[name]

    def insert(program: Program) -> None:
        program.instructions = (*program.instructions[:-1], instruction, program.instructions[-1])

    parts = Parts(whole())
    parts.change_program(insert)
    refused(parts.sealed(), message, executor="vm")


def test_pool_that_is_too_small() -> None:
    """A program that leaves its device's pool is stopped, though every index in it is good."""

    def shrink(program: Program) -> None:
        drop = [op("workspace_bytes", 1, 8)]
        program.instructions = tuple(
            op("workspace_bytes", 1, 4) if each in drop else each for each in program.instructions
        )

    parts = Parts(whole())
    parts.change_program(shrink)
    parts.change_plan(lambda plan: setattr(plan.variants[0], "workspace_bytes", (0, 0, 0)))
    refused(parts.sealed(), "leaves its memory", executor="vm")


def test_unknown_opcode() -> None:
    """An opcode of a later version is refused by its number."""
    parts = Parts(whole())
    program = parts.program(0)
    raw = bytearray(encode_program(program))
    struct.pack_into("<q", raw, 8 * 4, len(CODES) + 5)
    parts.put(head.PROGRAM, 0, bytes(raw))
    parts.reseal_program(0)
    refused(parts.sealed(), f"opcode {len(CODES) + 5} is not known", ingot_runtime.VersionError, executor="vm")


def test_unknown_device_kind() -> None:
    """A device kind of a later version is refused by its number, naming the device."""
    parts = Parts(whole())
    plan = parts.payloads[head.PLAN, 0]
    words = list(struct.unpack_from(f"<{struct.unpack_from('<q', plan)[0]}q", plan, 8))
    at = words.index(3, 3) + 1  # length of the name 'acc', then the kind
    words[at] = 9
    parts.put(head.PLAN, 0, struct.pack(f"<{len(words) + 1}q", len(words), *words) + plan[8 + 8 * len(words) :])
    with pytest.raises(ingot_runtime.VersionError, match="device kind 9 is not known") as caught:
        ingot_runtime.load(parts.sealed())
    assert "'acc'" in caught.value.where


def with_section(flags: int, payload: bytes = b"later") -> bytes:
    """Return the bundle with one section more, of a kind that nobody knows, before the weights."""
    parts = Parts(whole())
    key = (77, 3)
    rows = parts._rows  # pyright: ignore[reportPrivateUsage]
    at = next(index for index, row in enumerate(rows) if row.kind == head.CODE)
    rows.insert(at, head.Section(*key, 0, 0, ALIGNMENT_SMALL_BYTES, sha256(payload), flags))
    parts.put(*key, payload)
    return parts.sealed()


def test_unknown_sections(tmp_path: Path) -> None:
    """One that may be skipped is skipped, and still verified and shown; one that may not is refused by its number."""
    data = with_section(head.OPTIONAL)
    assert runs(data)
    (tmp_path / "later").write_bytes(data)
    assert verify_bundle(tmp_path / "later", tree_entry) == len(Parts(whole()).rows()[0]) + 1
    assert "of kind 77" in [row["kind"] for row in describe_bundle(tmp_path / "later")["sections"]]
    refused(with_section(0), "section kind 77 is not known", ingot_runtime.VersionError)
    refused(with_section(2), "section kind 77 is not known", ingot_runtime.VersionError)
    refused(with_section(3), "unknown flags")
    (tmp_path / "later").write_bytes(data.replace(b"later", b"Later"))
    with pytest.raises(ingot_runtime.DigestError, match="section of kind 77 3 is damaged"):
        verify_bundle(tmp_path / "later", tree_entry)


def test_known_sections_are_not_optional() -> None:
    """No flag makes a reader skip what it knows."""
    parts = Parts(whole())
    for row in parts._rows:  # pyright: ignore[reportPrivateUsage]
        row.flags = head.OPTIONAL
        refused(parts.sealed(), "unknown flags")
        row.flags = 0


@pytest.mark.parametrize("kind", [head.LIBRARY, head.WEIGHTS])
def test_sections_of_no_device(kind: int) -> None:
    """A library that no device has, and weights of a device that has none, are refused."""
    parts = Parts(whole())
    for row in parts._rows:  # pyright: ignore[reportPrivateUsage]
        if row.kind == kind and row.id == int(kind == head.WEIGHTS):
            parts.payloads[kind, 7] = parts.payloads.get((kind, row.id), b"")
            parts.digests[kind, 7] = parts.digests[kind, row.id]
            row.id = 7
    refused(parts.sealed(), "of a device that has none|missing section library 0|unexpected section library 7")
