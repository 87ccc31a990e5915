"""``ingot verify``: every byte counts, of every variant, on any machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.reproduce_harness import assemble
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.json_schemas import checked

from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.command import main as device
from ingot_runtime.format import abi
from ingot_runtime.format import header as head

TARGETS = ("x86-64-v2", "aarch64")
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One variant of this machine's kind and one that it cannot run; two MiB of weights are read by
    nobody."""
    path = tmp_path_factory.mktemp("bundle") / "tiny.ingot"
    write_bundle(tiny_contents(targets=TARGETS), path, tree_entry)
    return path


def refused(capsys: Output, path: Path, code: int, *words: str) -> None:
    """The command ends with ``code``, and says in parts what is wrong with which file."""
    assert main(["verify", str(path)]) == code
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.strip().splitlines()
    assert lines[0].startswith("error: ")
    assert all(line.startswith(("error: ", "  where: ", "  why: ", "  do: ")) for line in lines)
    for word in (str(path), *words):
        assert word in output.err


def test_a_whole_bundle_also_for_another_machine(bundle: Path, capsys: Output) -> None:
    """What was verified and how long it took, for people and for programs."""
    assert main(["verify", str(bundle)]) == 0
    text = capsys.readouterr().out
    assert "10 sections, 2 kernels for x86-64-v2, aarch64" in text
    assert main(["verify", str(bundle), str(bundle), "--json"]) == 0
    report = checked("verify", capsys.readouterr().out)
    (first, second) = report["bundles"]
    assert first["verified"]
    assert first["targets"] == list(TARGETS)
    assert first["size_bytes"] == bundle.stat().st_size
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert first["digest"][:16] in text
    assert report["seconds"] >= first["seconds"] > 0


def test_a_flipped_bit_in_every_section(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """First, middle and last byte of each section, and of header, table and the gaps: named, exit
    code 4."""
    content, path = bundle.read_bytes(), tmp_path / "m.ingot"
    with opened(bundle) as source:
        sections = [(row.name, row.offset, row.size_bytes) for row in source.sections]
    places = [
        (at, name)
        for name, start, size in sections
        for at in (start, start + size // 2, start + size - 1)
    ]
    places += [(20, ""), (head.HEADER_SIZE_BYTES + 3, "header or section table damaged")]
    end = head.HEADER_SIZE_BYTES + len(sections) * head.ROW_SIZE_BYTES
    for name, start, size in sections:
        places += [(end, f"before {name}")] if end < start else []
        end = start + size
    variants = {
        "section code 0": TARGETS[0],
        "section code 1": TARGETS[1],
        "section program 1": TARGETS[1],
    }
    for at, name in places:
        damaged = bytearray(content)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        refused(capsys, path, 4, name, variants.get(name, ""))


def test_weights_that_no_variant_reads(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """Their MiB is named, and who reads it."""
    with opened(bundle) as source:
        offset = source.by_key[head.WEIGHTS, 0].offset
    path = tmp_path / "m.ingot"
    for mib, readers in ((0, "no variant"), (1, "x86-64-v2, aarch64"), (2, "no variant")):
        damaged = bytearray(bundle.read_bytes())
        damaged[offset + (mib << 20) + 70] ^= 128
        path.write_bytes(damaged)
        refused(
            capsys,
            path,
            4,
            f"weights are damaged in MiB {mib}",
            f"section weights 0, read by {readers}",
        )


def test_a_truncated_or_extended_file(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """At every border of a section and one byte beside it."""
    content, path = bundle.read_bytes(), tmp_path / "m.ingot"
    with opened(bundle) as source:
        borders = [row.offset for row in source.sections] + [len(content)]
    for size in sorted({at + step for at in borders for step in (-1, 0, 1)} - {len(content)}):
        path.write_bytes(content[:size] + bytes(max(0, size - len(content))))
        refused(capsys, path, 4, "the file is truncated or extended")
    path.write_bytes(content[:40])
    refused(capsys, path, 4, "the file ends inside its header")


def signed(bundle: Path, key: tuple[int, int], change: Callable[[bytearray], None]) -> bytes:
    """The bundle with another section and right digests: what only a mistake of its maker, or a
    forger, can make."""
    content = bundle.read_bytes()
    with opened(bundle) as source:
        payloads = {
            (row.kind, row.id): content[row.offset : row.offset + row.size_bytes]
            for row in source.sections
        }
    changed = bytearray(payloads[key])
    change(changed)
    payloads[key] = bytes(changed)
    return assemble(list(payloads), payloads)


def set_word(index: int, value: int) -> Callable[[bytearray], None]:
    """Change a word of an image's table."""

    def change(image: bytearray) -> None:
        image[4 * index : 4 * index + 4] = value.to_bytes(4, "little")

    return change


def test_parts_that_disagree(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """Digests that hold are not enough: table of exports, interface, program and their image belong
    together."""
    words, path = len(abi.IMAGE_HEADER), tmp_path / "m.ingot"
    exports = list(abi.EXPORTS)
    cases: list[tuple[tuple[int, int], Callable[[bytearray], Any], str]] = [
        ((head.CODE, 1), set_word(0, 7), "not an image"),
        (
            (head.CODE, 1),
            set_word(words + exports.index("main"), 1 << 30),
            "export main is missing or outside the image",
        ),
        (
            (head.CODE, 1),
            set_word(words + len(exports), 0),
            "export kernel is missing or outside the image",
        ),
        (
            (head.CODE, 1),
            set_word(words + exports.index("interface_digest"), 64),
            "plan and image disagree",
        ),
        (
            (head.CODE, 0),
            set_word(words + exports.index("program_digest"), 64),
            "program and image disagree",
        ),
        (
            (head.PROGRAM, 1),
            lambda program: program.__setitem__(8, 99),
            "program and image disagree",
        ),
        ((head.LOCK, 0), lambda lock: lock.__setitem__(0, 0xC1), "not canonical msgpack"),
        ((head.DEBUG, 0), lambda debug: debug.__setitem__(0, 0xC1), "not canonical msgpack"),
    ]
    for key, change, words_of in cases:
        path.write_bytes(signed(bundle, key, change))
        kind = (
            head.CODE if key[0] == head.PROGRAM else key[0]
        )  # the image says which program it was made from
        variant = f", variant {TARGETS[key[1]]}" if kind == head.CODE else ""
        refused(capsys, path, 4, words_of, f"section {head.KIND_NAMES[kind]} {key[1]}{variant}")


def test_what_is_no_bundle(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """Nothing there, a folder, another file, a newer format; among several files each has its say,
    damage counts most."""
    other = tmp_path / "other"
    other.write_text("text, not a bundle")
    refused(capsys, tmp_path / "none", 1, "cannot open")
    refused(capsys, tmp_path, 1, "not a regular file")
    refused(capsys, other, 1, "not a bundle")
    newer, damaged = bytearray(bundle.read_bytes()), bytearray(bundle.read_bytes())
    newer[8] = 2
    (tmp_path / "newer").write_bytes(newer)
    refused(capsys, tmp_path / "newer", 5, "bundle format 2.2 is not known")
    damaged[-1] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    paths = [str(tmp_path / name) for name in ("newer", "damaged", "other")]
    assert main(["verify", "--json", *paths, str(bundle)]) == 4
    output = capsys.readouterr()
    values = checked("verify", output.out)
    reports = values["bundles"]
    assert [report["verified"] for report in reports] == [False, False, False, True]
    assert [report.get("error", {}).get("exit_code") for report in reports] == [5, 4, 1, None]
    assert values["error"] == reports[1]["error"]
    assert reports[1]["error"]["what"] == "weights are damaged in MiB 2"
    assert output.err.count("error: ") == 3
    assert main(["verify", *paths[::2]]) == 5


def test_digest(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """The bundle of this digest, or of its first 32 digits, and no other; anything else is no
    digest."""
    with opened(bundle) as source:
        root = source.root_digest.hex()
    other = f"{int(root[0], 16) ^ 1:x}{root[1:]}"
    for verbs, run in ((("run", "inspect", "verify"), main), (("run", "inspect"), device)):
        for verb in verbs:
            for digest in (root, root[:32], root.upper()):
                assert run([verb, str(bundle), "--digest", digest]) == 0
            for digest in (other, other[:32], "0" * 64):
                assert run([verb, str(bundle), "--digest", digest]) == 4
            for digest in (root[:31], f"{root}0", "", f"{root[:-1]}g", "\x1b" * 32):
                assert run([verb, str(bundle), "--digest", digest]) == 1
    assert main(["verify", str(bundle), str(bundle), "--digest", root]) == 1
    assert "a bug in Ingot" not in capsys.readouterr().err
