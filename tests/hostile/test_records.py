"""The sections debug and lock, forged and sealed: every reader reads them right or refuses them,
whatever their values are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile.reseal import Parts
from tests.hostile.tiny import tiny_contents, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.format import header as head
from ingot_runtime.format.limits import DEPTH_MAX
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.msgpack_decode import unpack

unpackb: Any = msgpack.unpackb  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # no stubs
packb: Any = msgpack.packb  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # no stubs
JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**64 - 1,
    "",
    "x",
    b"x",
    [],
    [[]],
    {},
    {"x": {}},
    [["a", "b", "c"]],
)
QUICK_STEP = 3  # it shares no factor with the number of forgeries of one place, so that each kind of junk has its turn
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(exclude_categories=["C", "Z"])) | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["C", "Z"])), inner),
    max_leaves=20,
)  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "tiny.ingot"
    write_bundle(tiny_contents(targets=("x86-64-v2", "x86-64-v3")), path, tree_entry)
    return path


@pytest.mark.broad
@given(PLAIN)
def test_values_decode_to_themselves(value: object) -> None:
    """What the writer writes is read back, and nothing else is: another encoding of the same is
    refused."""
    data = pack(value)
    assert unpack(data, "here") == value
    for other in (data + b"\xc0", b"", data[:-1]):
        with pytest.raises(ingot_runtime.FormatError):
            unpack(other, "here")


@pytest.mark.parametrize(
    "data",
    [
        b"\xcc\x01", b"\xcd\x00\xff", b"\xd0\x01", b"\xd0\xff", b"\xd9\x01a", b"\xc5\x00\x01a", b"\xdc\x00\x01\xc0",
        b"\xde\x00\x00", b"\x82\xa1b\xc0\xa1a\xc0", b"\x82\xa1a\xc0\xa1a\xc0", b"\x81\x01\xc0", b"\xcb" + bytes(8),
        b"\xd4\x01\x00", b"\xc7\x00\x01", b"\xc1", b"\xa1\xff", b"\xa1\x1b", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff", b"\x91" * (DEPTH_MAX + 1) + b"\xc0", b"\x91" * 100_000,
    ],
)  # fmt: skip
def test_other_encodings(data: bytes) -> None:
    """Longer heads, unsorted and doubled keys, floats, extensions, lengths that lie and nests
    without end are refused."""
    with pytest.raises(ingot_runtime.FormatError):
        unpack(data, "here")


def test_package_reads_the_same() -> None:
    """Sections are msgpack for other programs, too."""
    for kind in (
        b"\x91" * DEPTH_MAX + b"\xc0",
        packb({"a": [1, -1, b"x", None, True, 2**64 - 1, -(2**63)]}),
    ):
        assert unpack(kind, "here") == unpackb(kind)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with each of its keys."""
    keys: list[Any] = list(value) if isinstance(value, dict) else []  # pyright: ignore[reportUnknownArgumentType]
    keys = list(range(len(value))) if isinstance(value, list) else keys  # pyright: ignore[reportUnknownArgumentType]
    for key in keys:
        yield value, key
        yield from places(value[key])


def forgeries(record: dict[str, Any]) -> Iterator[Any]:
    """Yield the record with each junk in each place, each place missing, each key renamed."""
    yield from JUNK
    for number in range(len(list(places(record)))):
        for junk in (*JUNK, ...):
            changed = copy.deepcopy(record)
            container, key = list(places(changed))[number]
            if junk is ...:
                del container[key]
            else:
                container[key] = junk
            yield changed


@pytest.mark.broad
def test_records_that_miss_something(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What may be missing is missed by no command."""
    path = tmp_path / "m.ingot"
    for name in ("launches", "programs", "refusals", "messages", "memory"):
        for target in (None, "x86-64-v2", "x86-64-v3"):
            parts = Parts(bundle.read_bytes())
            record = parts.record(head.DEBUG)
            remove(record["debug"], name, target)
            parts.put(head.DEBUG, 0, pack(record))
            path.write_bytes(parts.sealed())
            for verb in (
                ["inspect"],
                ["inspect", "--fusion"],
                ["inspect", "--asm", "tiny"],
                ["diff", str(bundle)],
                ["verify"],
            ):
                assert main([verb[0], str(path), *verb[1:]]) in ((1,) if "--asm" in verb else (0,))
            assert (
                main(
                    ["bench", str(path), "--seconds", "0.001", "--anyway", "--variant", "x86-64-v2"]
                )
                == 0
            )
    assert "a bug in Ingot" not in capsys.readouterr().err


def remove(debug: dict[str, Any], name: str, target: str | None) -> None:
    """Take an entry away, or its part for one target."""
    if target is None or not isinstance(debug[name], dict):
        del debug[name]
    else:
        debug[name].pop(target, None)


@pytest.mark.parametrize("kind", [head.DEBUG, head.LOCK])
@pytest.mark.broad
def test_junk_at_every_place(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: int
) -> None:
    """inspect (as text, JSON, with fusion, with assembly), diff and verify: exit code 0, or 4 and
    four parts; a run does not care.

    A third of all junk at each place, in turn: every place, and every junk at a third of the
    places.
    """
    require_refusals(bundle, tmp_path, capsys, kind, QUICK_STEP)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [head.DEBUG, head.LOCK])
def test_all_junk_at_every_place(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: int
) -> None:
    """The same with all junk at each place."""
    require_refusals(bundle, tmp_path, capsys, kind, 1)


def require_refusals(
    bundle: Path, folder: Path, capsys: pytest.CaptureFixture[str], kind: int, step: int
) -> None:
    """Take every `step`-th forgery of a record through the verbs that read it."""
    verbs = (
        ["inspect"],
        ["inspect", "--json"],
        ["inspect", "--fusion"],
        ["diff", str(bundle)],
        ["diff", str(bundle), "--json"],
    )
    codes: set[int] = set()
    parts = Parts(bundle.read_bytes())
    forged_files = written(
        parts, kind, folder, islice(forgeries(parts.record(kind)), 0, None, step)
    )
    for number, path in enumerate(forged_files):
        found = {main([verb[0], str(path), *verb[1:]]) for verb in verbs[number % 2 :: 2]}
        assert len(found) == 1
        codes |= found
        if number % 20 == 0:
            assert main(["verify", str(path)]) in found
            assert main(["inspect", str(path), "--asm", "tiny"]) in (1, 4)
            assert main(["bench", str(path), "--seconds", "0.001", "--anyway"]) in (0, *found)
    printed = capsys.readouterr()
    assert codes == {0, 4}
    assert "a bug in Ingot" not in printed.err
    assert "Traceback" not in printed.err


def written(parts: Parts, kind: int, folder: Path, records: Iterator[Any]) -> Iterator[Path]:
    """Write a bundle for each record; the next one is there before one is given: what reads a file
    waits while it is too young."""
    paths = (folder / "one.ingot", folder / "other.ingot")
    before: Path | None = None
    for record, path in zip(records, cycle(paths), strict=False):
        forged = parts.copy()
        forged.put(kind, 0, pack(record))
        path.write_bytes(forged.sealed())
        if before is not None:
            yield before
        before = path
    assert before is not None
    yield before


def test_kernels_of_forged_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel's record is bytes of anybody: it is refused where it is no loops, or loops of
    another kernel, or of no code."""
    write_bundle(tiny_contents(), tmp_path / "tiny.ingot", tree_entry)
    parts = Parts((tmp_path / "tiny.ingot").read_bytes())
    path = tmp_path / "m.ingot"
    for content in (
        b"",
        b"x",
        b"\0\0\0\0\xc0",
        b"\0\0\0\x0bLoopProgram\x81\x10\x90",
        b"\xff" * 9,
        b"\0\0\0\x02os\xc0",
    ):
        parts.change_record(head.DEBUG, change(content))
        path.write_bytes(parts.sealed())
        assert main(["inspect", str(path), "--asm", "tiny"]) in (1, 4)
    assert "a bug in Ingot" not in capsys.readouterr().err


def change(content: bytes) -> Callable[[dict[str, Any]], None]:
    """Return what makes `content` the record of the kernel."""
    return lambda record: record["debug"]["programs"].__setitem__(
        "x86-64-v2", {"tiny_scale": content}
    )
