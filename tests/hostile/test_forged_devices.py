"""Bundles that lie about devices, libraries and what is not known yet; every digest above the lie
is made again."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from tests.hostile.loaders import LOADERS, refused_by_both
from tests.hostile.reseal import Parts, reseal_root
from tests.hostile.tiny import WIDTH, op
from tests.hostile.two_devices import library, tree_entry, two_device_contents, two_device_reference

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import describe_bundle, verify_bundle
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.dtypes import DTYPE_NAMES
from ingot_runtime.format.limits import ALIGNMENT_SMALL_BYTES
from ingot_runtime.format.plan import BundlePlan, DevicePlan, LibraryPlan
from ingot_runtime.format.program import CODES, Instruction, Program
from ingot_runtime.format.sha256 import sha256

X = np.ones((4, 8), np.float32)


LATER_MINOR = head.VERSION_MINOR + 1


@cache
def whole() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "two"
        write_bundle(two_device_contents(count=2), path, tree_entry)
        return path.read_bytes()


def runs(data: bytes, executor: str = "aot") -> bool:
    """Load and run, in each loader that there is for it."""
    good = True
    for name, load in LOADERS.items():
        if name == "python" or executor == "aot":
            session = load(data, executor=executor)
            good = good and bool((session.run({"x": X})["y"] == two_device_reference(X)).all())
            session.close()
    return good


def refused(
    data: bytes,
    message: str,
    kind: type[Exception] = ingot_runtime.FormatError,
    executor: str = "aot",
) -> ingot_runtime.BundleError:
    """Check that a load is refused for this reason, with a place; by the vm in a run, too."""
    if executor == "aot":
        error = refused_by_both(data)
        assert isinstance(error, kind)
        assert re.search(message, str(error))
        return error
    with pytest.raises(kind, match=message) as caught:
        ingot_runtime.load(data, executor=executor).run({"x": X})
    assert isinstance(caught.value, ingot_runtime.BundleError)
    assert caught.value.where
    return caught.value


def test_parts_are_the_bundle() -> None:
    """Taken apart and sealed again it is the same, and runs."""
    assert Parts(whole()).sealed() == whole()
    assert runs(whole())
    assert runs(whole(), "vm")


def _replace(plan: BundlePlan, index: int, **fields: object) -> None:
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


def _libraries(plan: BundlePlan, **fields: object) -> None:
    old = plan.libraries[0]
    values = {
        "kind": old.kind,
        "target": old.target,
        "features": old.features,
        "kernel_count": old.kernel_count,
    }
    plan.libraries = (LibraryPlan(**{**values, **fields}),)  # type: ignore[arg-type]  # by name


def _two_libraries(plan: BundlePlan) -> None:
    plan.libraries = plan.libraries * 2


@dataclass(frozen=True)
class Lie:
    change: Callable[[BundlePlan], None]
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
    """A byte that is not what its digest says is found, and the section named, at load and by
    verify."""
    parts = Parts(whole())
    digests = dict(parts.digests)
    parts.put(head.LIBRARY, 0, library().image[:-1] + b"\1")
    parts.digests = digests
    refused(parts.sealed(), "section library 0 is damaged", ingot_runtime.DigestError)
    damaged = bytearray(whole())
    damaged[-1] ^= 1
    refused(bytes(damaged), "weights are damaged in MiB 1", ingot_runtime.DigestError)
    assert "section weights 1" in refused_by_both(bytes(damaged)).where


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
    """The vm refuses a program that mixes memories up, naming the instruction; its image says that
    main was made from it."""
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


SIZES: dict[str, tuple[Instruction, str]] = {
    "copy of more than there is": (op("copy", 0, 1, 5, 0, 8), "copy leaves its memory"),
    "copy of less than nothing": (op("copy", 0, 1, 5, 0, 9), "copy leaves its memory"),
    "copy back of more": (op("copy", 1, 0, 3, 6, 8), "copy leaves its memory"),
    "copy between devices of more": (op("copy", 1, 2, 8, 6, 8), "copy leaves its memory"),
    "part of a pool behind its end": (op("buffer_workspace", 6, 1, 8, 4), "workspace leaves its memory"),
    "part of a pool before it": (op("buffer_workspace", 6, 1, 9, 4), "workspace leaves its memory"),
    "part of a pool of no size": (op("buffer_workspace", 6, 1, 5, 9), "workspace leaves its memory"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SIZES))
def test_sizes_that_lie(name: str) -> None:
    """A copy or a part of a pool that does not fit is refused by the vm before a byte moves."""
    instruction, message = SIZES[name]

    def insert(program: Program) -> None:
        program.register_count = 10
        program.instructions = (
            *program.instructions[:-1],
            op("const", 9, -4),
            instruction,
            program.instructions[-1],
        )

    parts = Parts(whole())
    parts.change_program(insert)
    refused(parts.sealed(), message, executor="vm")


@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize("device", [0, 1, 2])
@pytest.mark.parametrize("change", [-64, 64, 1 << 40])
def test_plans_that_lie_about_pools(device: int, change: int, executor: str) -> None:
    """What main needs of each device is compared with what the plan promises, before memory is
    taken."""

    def lie(plan: BundlePlan) -> None:
        sizes = list(plan.variants[0].workspace_bytes)
        sizes[device] += change
        plan.variants[0].workspace_bytes = tuple(sizes)

    parts = Parts(whole())
    parts.change_plan(lie)
    refused(parts.sealed(), "disagree on the workspace", executor=executor)


def _words_changed(data: bytes, change: Callable[[list[int]], None]) -> bytes:
    """Change words of a plan or program; its texts stay."""
    words = list(struct.unpack_from(f"<{struct.unpack_from('<q', data)[0]}q", data, 8))
    change(words)
    return struct.pack(f"<{len(words) + 1}q", len(words), *words) + data[8 + 8 * len(words) :]


def _change_plan_words(parts: Parts, change: Callable[[list[int]], None]) -> None:
    parts.put(head.PLAN, 0, _words_changed(parts.payloads[head.PLAN, 0], change))


def _change_program_words(parts: Parts, change: Callable[[list[int]], None]) -> None:
    parts.put(head.PROGRAM, 0, _words_changed(parts.payloads[head.PROGRAM, 0], change))
    parts.reseal_program(0)


def _unknown_device_kind(words: list[int]) -> None:
    words[words.index(3, 3) + 1] = 9  # behind the length of the name 'acc'


def _unknown_library_kind(words: list[int]) -> None:
    at = words.index(
        3, words.index(3, 3) + 2
    )  # name of the second device, 'aux': its kind, id, scope, library, the count of libraries
    words[at + 6] = 10


_UNKNOWN_DTYPE = len(DTYPE_NAMES)


def _unknown_dtype(words: list[int]) -> None:
    at = (
        len(words) - 1 - words[::-1].index(WIDTH)
    )  # the width of the output: behind its dtype, rank and rows
    assert words[at - 3 : at] == [0, 2, 4]
    words[at - 3] = _UNKNOWN_DTYPE


def _unknown_plan(words: list[int]) -> None:
    words[0] = 2


def _unknown_opcode(words: list[int]) -> None:
    words[3] = len(CODES) + 5


def _unknown_read(parts: Parts) -> None:
    def insert(program: Program) -> None:
        program.instructions = (
            *program.instructions[:-1],
            op("read", 0, 0, 5, _UNKNOWN_DTYPE),
            program.instructions[-1],
        )

    parts.change_program(insert)


def _with_all_fields(plan: BundlePlan) -> None:
    """A bundle of a later version has the fields of those before."""
    plan.minor = LATER_MINOR


def _two_unknown_sections(parts: Parts) -> None:
    add_section(parts, 0, 77)
    add_section(parts, 0, 78)


@dataclass(frozen=True)
class Later:
    """Something of a later version: how it comes into a bundle, how it is called, where it is;
    whether the plan says it."""

    forge: Callable[[Parts], None]
    message: str
    where: str
    is_in_plan: bool = True


LATER = {
    "section kind": Later(lambda parts: add_section(parts, 0), "section kind 77 is not known", "section table"),
    "section kinds": Later(_two_unknown_sections, "section kind 77, 78 is", "section table"),
    "device kind": Later(lambda parts: _change_plan_words(parts, _unknown_device_kind), "device kind 9 is not known", "device 'acc'"),
    "library kind": Later(lambda parts: _change_plan_words(parts, _unknown_library_kind), "device kind 10 is not known", "library 0"),
    "dtype": Later(lambda parts: _change_plan_words(parts, _unknown_dtype), f"dtype {_UNKNOWN_DTYPE} is not known", "output 'y'"),
    "plan": Later(lambda parts: _change_plan_words(parts, _unknown_plan), "plan version 2 is not known", "plan"),
    "opcode": Later(lambda parts: _change_program_words(parts, _unknown_opcode), f"opcode {len(CODES) + 5} is not known", "program 0, instruction 0", False),
    "dtype of a read": Later(_unknown_read, f"dtype {_UNKNOWN_DTYPE} is not known", "program 0, instruction", False),
}  # fmt: skip


def later_minor(data: bytes, minor: int = LATER_MINOR) -> bytes:
    """Return the bundle as one of a later minor version, sealed."""
    at = len(head.MAGIC) + 2
    return reseal_root(data[:at] + struct.pack("<H", minor) + data[at + 2 :])


@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize("minor", [0, LATER_MINOR])
@pytest.mark.parametrize("name", list(LATER))
def test_what_a_later_version_requires(
    name: str, minor: int, executor: str, tmp_path: Path
) -> None:
    """It is refused by its number, with its place, both versions where they differ, and what to do;
    so it is by who only looks inside.

    A native main of this minor version does not look at the program, which may hold anything that
    its own digest allows.
    """
    later, parts = LATER[name], Parts(whole())
    if minor:
        parts.change_plan(_with_all_fields)
        parts.version_minor = minor
    later.forge(parts)
    data = later_minor(parts.sealed(), minor)
    if not (minor or later.is_in_plan or executor == "vm"):
        assert runs(data)
        return
    error = refused(data, later.message, ingot_runtime.VersionError, executor)
    assert later.where in error.where
    assert "update ingot-runtime" in error.do
    assert error.exit_code == 5
    assert (f"expected 1.0 to 1.{head.VERSION_MINOR}, got 1.{LATER_MINOR}" in error.why) == bool(
        minor
    )
    if minor or later.is_in_plan:
        (tmp_path / "later").write_bytes(data)
        with pytest.raises(ingot_runtime.VersionError, match=later.message):
            describe_bundle(tmp_path / "later")


def test_later_version_of_nothing_that_is_known() -> None:
    """A later minor version is refused, whatever is found in it: also if all of it is known, or it
    is cut, or damaged."""
    for data in (
        later_minor(whole()),
        later_minor(whole())[:-1],
        later_minor(whole())[:100],
        later_minor(whole(), 0xFFFF),
    ):
        refused(data, r"bundle format 1\.\d+ is not known", ingot_runtime.VersionError)
    damaged = bytearray(later_minor(whole()))
    damaged[head.HEADER_SIZE_BYTES + 5] ^= 1
    refused(
        bytes(damaged), f"bundle format 1.{LATER_MINOR} is not known", ingot_runtime.VersionError
    )
    optional = Parts(whole())
    add_section(optional, head.OPTIONAL)
    refused(
        later_minor(optional.sealed()),
        f"bundle format 1.{LATER_MINOR} is not known",
        ingot_runtime.VersionError,
    )


def test_another_call_struct() -> None:
    """An image whose `main` wants another call struct is refused by the number of that struct; so
    is a library's."""
    for key in ((head.CODE, 0), (head.LIBRARY, 0)):
        parts = Parts(whole())
        parts.put(*key, _word(parts.payloads[key], 1, abi.ABI_VERSION + 1))
        refused(parts.sealed(), "another call struct", ingot_runtime.VersionError)


def add_section(parts: Parts, flags: int, kind: int = 77, payload: bytes = b"later") -> None:
    """Add a section of a kind that nobody knows, before the weights."""
    key = (kind, 3)
    rows = parts._rows  # pyright: ignore[reportPrivateUsage]
    at = next(index for index, row in enumerate(rows) if row.kind == head.CODE)
    rows.insert(at, head.Section(*key, 0, 0, ALIGNMENT_SMALL_BYTES, flags, sha256(payload)))
    parts.put(*key, payload)


def with_section(flags: int) -> bytes:
    """Return the bundle with one such section."""
    parts = Parts(whole())
    add_section(parts, flags)
    return parts.sealed()


def test_unknown_sections(tmp_path: Path) -> None:
    """One that may be skipped is skipped, and still verified and shown; one that may not is refused
    by its number."""
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
    refused(
        parts.sealed(),
        "of a device that has none|missing section library 0|unexpected section library 7",
    )
