"""Fuzzing of the format's readers by coverage: an input that reaches a new branch is kept and
changed further.

In: a reader, a count, a seed. Out: inputs that reach all that was reached, and those that end in
another way than they may. Not done here: mutants of whole bundles (``mutants``).
``python tests/hostile/fuzz_readers.py READER --count 100000 --seed 1 --keep``

A loop of our own, on ``sys.settrace``: the same seed gives the same inputs on every Python, and
nothing is installed for it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import random
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from tests.hostile.mutations import mutate_bytes
from tests.hostile.reseal import Parts, reseal_root
from tests.hostile.tiny import WEIGHTS_SECTION_BYTES, tiny_contents, tree_entry

import ingot_runtime.format
from ingot_artifacts.bundle.contents import AlternativeSpec, BundleContents, LibrarySpec
from ingot_artifacts.bundle.encode_alternative import encode_alternative
from ingot_artifacts.bundle.encode_head import encode_head
from ingot_artifacts.bundle.encode_plan import encode_plan
from ingot_artifacts.bundle.weights_tree import weights_tree
from ingot_artifacts.bundle.write import make_skeleton
from ingot_build_rules.tools.cli.inspect import description_lines, fusion_lines
from ingot_build_rules.tools.ship.share import encode_shared
from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_runtime.errors import BundleError, SignatureError
from ingot_runtime.format import header as head
from ingot_runtime.format.alternative import decode_alternative
from ingot_runtime.format.debug import decode_record
from ingot_runtime.format.delta import GIVEN, HEAD, MAGIC, PROMISE, STEP, Delta
from ingot_runtime.format.describe import describe_plan, lines_of
from ingot_runtime.format.file import BundleFile, QuietFile
from ingot_runtime.format.limits import ALIGNMENT_MAPPED_BYTES
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.msgpack_decode import unpack
from ingot_runtime.format.plan import (
    AlternativePlan,
    BundlePlan,
    DevicePlan,
    LibraryPlan,
    VariantPlan,
    decode_plan,
    manifest_bytes,
)
from ingot_runtime.format.program_decode import decode_program
from ingot_runtime.format.schema import record_dict
from ingot_runtime.format.shared import Shared
from ingot_runtime.format.source import Source
from ingot_runtime.format.statement import HEAD as STATEMENT_HEAD
from ingot_runtime.format.statement import MIDDLE, NUMBER_MAX, SUBJECT, decode
from ingot_runtime.loader.image import read_exports
from ingot_runtime.loader.signatures import require_delta_signed
from ingot_runtime.npz import read_npz, write_npz

CORPUS = Path(__file__).with_name("corpus")
SIZE_BYTES_MAX = 4096
_OWN_BYTES = 2 * ALIGNMENT_MAPPED_BYTES
_TRACED = (
    os.path.dirname(str(ingot_runtime.format.__file__)),
    *(f"{name}.py" for name in ("npz", "image", "zipfile")),
)
_NUMBERS = re.compile(r"\d+")
Arc = tuple[CodeType | str, int, int]
"""A step from line to line, or a reason to refuse: all checks that call ``require`` are one line of
it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """``read`` takes any bytes, and ends, or raises a ``BundleError``; ``seeds`` are inputs that it
    takes."""

    read: Callable[[bytes], None]
    seeds: Callable[[], tuple[bytes, ...]]


@cache
def _parts() -> Parts:
    contents: BundleContents = tiny_contents("batch", targets=("x86-64-v2", "x86-64-v3"))
    tree = weights_tree(contents.weights, contents.weights_bytes, tree_entry)
    skeleton = make_skeleton(contents, tree)
    return Parts(skeleton.prefix + bytes(skeleton.size_bytes - len(skeleton.prefix)))


def _file(data: bytes) -> int:
    fd = os.memfd_create("input", os.MFD_CLOEXEC)
    os.write(fd, data)
    return fd


def _read_table(data: bytes) -> None:
    """Header, table and gaps, with the root digest made right."""
    Source(BundleFile(QuietFile(_file(reseal_root(data)))), "input").close()


def _read_header(data: bytes) -> None:
    Source(BundleFile(QuietFile(_file(data))), "input").close()


def _read_plan(data: bytes) -> None:
    plan = decode_plan(data)
    assert encode_plan(plan) == data
    assert unpack(manifest_bytes(plan), "manifest") == record_dict(plan, plan)


def _read_program(data: bytes) -> None:
    assert (
        encode_program(
            decode_program(
                data, _parts().plan, _parts().plan.variants[0], (WEIGHTS_SECTION_BYTES,), "program"
            )
        )
        == data
    )


def _read_shared(data: bytes) -> None:
    shared = Shared(data, _OWN_BYTES)
    assert encode_shared(shared.digest, shared.name, shared.size_bytes, shared.rows) == data
    assert shared.size_bytes - sum(row[2] for row in shared.rows) == _OWN_BYTES


def _shared_seeds() -> tuple[bytes, ...]:
    page = ALIGNMENT_MAPPED_BYTES
    rows = [(0, 5 * page, page), (2 * page, page, 3 * page)]
    size = 4 * page + _OWN_BYTES
    return encode_shared("0f" * 32, "m", size, rows), encode_shared(
        "0f" * 32, "n", size - page, rows[1:]
    )


def _read_values(data: bytes) -> None:
    assert pack(unpack(data, "values")) == data


def _read_debug(data: bytes) -> None:
    record = decode_record(data, head.DEBUG)
    described = {**_described(), "kernels": record["kernels"], "debug": record["debug"]}
    description_lines(described)
    fusion_lines(record["debug"])


def _read_lock(data: bytes) -> None:
    decode_record(data, head.LOCK)


@cache
def _described() -> dict[str, Any]:
    described: dict[str, Any] = {
        "format": "1.0", "digest": "", "shared": None, "lock": {}, "size_bytes": 1, "sections": [], "memory": {
            "x86-64-v2": {"workspace_bytes": [1], "code_bytes": 1, "weights_bytes": 1},
        }, "device_use": {"x86-64-v2": {"devices": [{"name": "host"}], "copies": []}}, **describe_plan(_parts().plan),
    }  # fmt: skip
    lines_of(described)
    return described


@cache
def _plan_with_devices() -> BundlePlan:
    devices = [DevicePlan(name, "null", at, "", 0) for at, name in enumerate("ab")]
    library = LibraryPlan("null", "x86-64-v2", (), 2)
    variant = VariantPlan("x86-64-v2", 1, (), 1, (0, 0, 0), ())
    host = DevicePlan("host", "host", 0)
    return BundlePlan("m", (host, *devices), (library,), (), (), (), (variant,))


def _encoded(found: AlternativePlan, code: bytes) -> bytes:
    plan, kernels = found.code, ("k",) * found.code.kernel_count
    library = LibrarySpec(plan.kind, plan.target, plan.features, kernels, code)
    return encode_alternative(AlternativeSpec(library, found.library, tuple(found.ids.items())))


def _read_alternative(data: bytes) -> None:
    found, start = decode_alternative(data, _plan_with_devices(), "alternative")
    assert _encoded(found, data[start:]) == data


def _alternatives() -> tuple[bytes, ...]:
    code = LibraryPlan("opencl", "opencl-c-1.2", ("a", "b"), 2)
    return tuple(_encoded(AlternativePlan(0, code, ids), b"x") for ids in ({1: 3, 2: 0}, {2: 7}))


def _read_image(data: bytes) -> None:
    read_exports(data, 1, "image", 64)


def _read_archive(data: bytes) -> None:
    fd = _file(data)
    try:
        read_npz(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _archives() -> tuple[bytes, ...]:
    file, packed = io.BytesIO(), io.BytesIO()
    write_npz(file, {"x": np.arange(3, dtype=np.float32), "y": np.zeros((2, 0), np.int8)})
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w") as member,
    ):
        np.lib.format.write_array(member, np.asfortranarray(np.eye(3)), version=(2, 0))
    return file.getvalue(), packed.getvalue()


def _table_seeds() -> tuple[bytes, ...]:
    rows = [
        head.Section(kind, 0, 0, 64, 64, 0, b"\1" * 32)
        for kind in (head.MANIFEST, head.PLAN, head.LOCK)
    ]
    for index, row in enumerate(rows):
        row.offset = 320 + 64 * index
    start, _ = encode_head(rows, 512)
    return (start.ljust(512, b"\0"),)


def _image_seeds() -> tuple[bytes, ...]:
    import struct

    from ingot_runtime.format import abi

    words = [
        abi.IMAGE_MAGIC,
        abi.ABI_VERSION,
        192,
        len(abi.EXPORTS),
        1,
        *([128] * (len(abi.EXPORTS) - 2)),
        200,
        210,
        130,
    ]
    return (struct.pack(f"<{len(words)}I", *words).ljust(256, b"\0"),)


def _read_delta(data: bytes) -> None:
    """Its digest made right; the given bytes, too."""
    fd = _file(data + hashlib.sha256(data).digest())
    try:
        delta = Delta(f"/proc/self/fd/{fd}")
        assert sum(map(len, delta.given())) <= len(data)
        require_delta_signed(delta, [bytes(range(32)).hex()])
    except SignatureError:
        pass
    finally:
        os.close(fd)


def _deltas() -> tuple[bytes, ...]:
    whole, size = _table_seeds()[0], 512
    table = whole[: head.HEADER_SIZE_BYTES + 3 * head.ROW_SIZE_BYTES]
    line, root = b"{}\n", table[head.HEADER_SIZE_BYTES - 32 : head.HEADER_SIZE_BYTES]
    promise = PROMISE.pack(len(table), len(line)) + table + line
    return tuple(
        HEAD.pack(MAGIC, version, 0, bytes(32), root, size, 1, bytes(32))
        + promise * (version - 1)
        + STEP.pack(GIVEN, size)
        + zlib.compress(whole)
        for version in (1, 2)
    )


def _read_statement(data: bytes) -> None:
    signed = decode(bytes(96) + data, "statement")
    assert signed.digests
    assert signed.expires <= NUMBER_MAX
    assert signed.number is None or 0 <= signed.number <= NUMBER_MAX


def _statements() -> tuple[bytes, ...]:
    subjects = STATEMENT_HEAD + SUBJECT % ("0" * 64, "bundle") + MIDDLE
    return (
        f'{subjects}0,"number":7,"model":"m"}}}}'.encode(),
        f'{subjects}12,"model":"m"}}}}'.encode(),
    )


def _payload(kind: int) -> Callable[[], tuple[bytes, ...]]:
    return lambda: (_parts().payloads[kind, 0],)


READERS: dict[str, Reader] = {
    "header": Reader(_read_header, _table_seeds),
    "table": Reader(_read_table, _table_seeds),
    "plan": Reader(_read_plan, _payload(head.PLAN)),
    "program": Reader(_read_program, _payload(head.PROGRAM)),
    "values": Reader(_read_values, lambda: (*_payload(head.MANIFEST)(), pack([None, True, -1, 2**63, "a" * 300, b"b", -(2**40)]))),
    "shared": Reader(_read_shared, _shared_seeds),
    "debug": Reader(_read_debug, _payload(head.DEBUG)),
    "lock": Reader(_read_lock, _payload(head.LOCK)),
    "image": Reader(_read_image, _image_seeds),
    "alternative": Reader(_read_alternative, _alternatives),
    "archive": Reader(_read_archive, _archives),
    "delta": Reader(_read_delta, _deltas),
    "statement": Reader(_read_statement, _statements),
}  # fmt: skip


def outcome(reader: Reader, data: bytes) -> tuple[str, str]:
    """Give `data` to a reader; return "read", the name of the loader's error, or "foreign ...", and
    the reason of a refusal."""
    try:
        reader.read(data)
    except BundleError as error:
        return type(error).__name__, _NUMBERS.sub(
            "0", f"{error.what}, {type(error.__cause__).__name__}"
        )
    except Exception as error:
        return f"foreign {type(error).__name__}: {error}", ""
    return "read", ""


def reached(reader: Reader, data: bytes) -> tuple[str, set[Arc]]:
    """Return the outcome, and the steps from line to line that led to it in the format's files."""
    arcs: set[Arc] = set()
    last: dict[FrameType, int] = {}

    def step(frame: FrameType, event: str, _: object) -> object:
        if event == "line":
            arcs.add((frame.f_code, last.get(frame, 0), frame.f_lineno))
            last[frame] = frame.f_lineno
        return step

    def enter(frame: FrameType, event: str, _: object) -> object:
        return (
            step
            if frame.f_code.co_filename.startswith(_TRACED[0])
            or frame.f_code.co_filename.endswith(_TRACED[1:])
            else None
        )

    before = sys.gettrace()
    sys.settrace(enter)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    try:
        result, reason = outcome(reader, data)
    finally:
        sys.settrace(before)
    return result, arcs | {(f"{result}: {reason}", 0, 0)}


def changed(corpus: list[bytes], rng: random.Random) -> bytes:
    """Return one of the inputs, changed once or several times, or two of them joined."""
    data = rng.choice(corpus)
    if rng.random() < 0.1:
        other = rng.choice(corpus)
        data = data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        data = mutate_bytes(data, rng)
    return data[:SIZE_BYTES_MAX]


def fuzz(
    reader: Reader, count: int, seed: int, start: list[bytes]
) -> tuple[dict[bytes, set[Arc]], list[tuple[bytes, str]]]:
    """Return the inputs that reached something new with what they reached, and (input, outcome) of
    what must not be."""
    rng = random.Random(seed)
    kept: dict[bytes, set[Arc]] = {}
    known: set[Arc] = set()
    wrong: list[tuple[bytes, str]] = []

    def inputs() -> Iterator[bytes]:
        yield from start
        for _ in range(count):
            yield changed(list(kept), rng)

    for data in inputs():
        result, arcs = reached(reader, data)
        if result.startswith("foreign"):
            wrong.append((data, result))
        if not arcs <= known:
            known |= arcs
            kept[data] = arcs
    return kept, wrong


def minimised(kept: dict[bytes, set[Arc]]) -> list[bytes]:
    """Return few and short inputs that reach all that was reached."""
    known: set[Arc] = set()
    chosen: list[bytes] = []
    rest = set[Arc]().union(*kept.values())
    while rest:
        best = max(kept, key=lambda data: (len(kept[data] & rest) / (100 + len(data)), data))
        chosen.append(best)
        known |= kept[best]
        rest -= kept[best]
    return chosen


def corpus_of(name: str) -> list[bytes]:
    """Return the inputs that are kept in the tree for a reader."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def main() -> int:
    """Parse the command line; fuzz; with --keep, put the minimised inputs into the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", choices=list(READERS))
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    folder, reader = CORPUS / options.reader, READERS[options.reader]
    start = [*reader.seeds(), *(corpus_of(options.reader) if folder.exists() else [])]
    kept, wrong = fuzz(reader, options.count, options.seed, start)
    for data, result in wrong[:10]:
        print(f"BAD: {result}: {data.hex()}")
    chosen = minimised(kept)
    if options.keep:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for data in chosen + [data for data, _ in wrong[:10]]:
            (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    arcs = set[Arc]().union(*kept.values())
    print(
        f"{options.reader}: {options.count} inputs, {len(arcs)} steps by {len(chosen)} inputs of {sum(map(len, chosen))} bytes, {len(wrong)} bad"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
