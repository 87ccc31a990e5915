"""Damaged and forged bundles by the thousand: none may crash, hang, or give a wrong answer.

In: a bundle, a count, a seed. Out: how each case ended; exit code 1 if any ended badly. Not done here: forged code and
weights (those need a signature). ``python tests/hostile/damage.py BUNDLE --count 10000``

The cases run in child processes, so that a crash is seen; each case depends on its number alone.
"""

import argparse
import collections
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import ingot_runtime
from ingot_runtime.executor.session import Session
from ingot_runtime.format import header as head
from ingot_runtime.format.manifest import manifest_bytes
from ingot_runtime.format.plan import decode_plan
from ingot_runtime.format.sha256 import sha256

_BATCH = 250
_SECONDS_PER_CASE = 2.0
_SYMBOL_SIZE = 3

Outputs = list[npt.NDArray[np.generic]]
Damage = Callable[[bytes, random.Random], bytes]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    borders = [offset for row in _rows(data) for offset in (row.offset, row.offset + row.size_bytes)]
    at = rng.choice(borders) if rng.random() < 0.5 else rng.randrange(len(data))
    return data[: max(0, at - rng.choice((0, 0, 1, 8)))]


def _extend(data: bytes, rng: random.Random) -> bytes:
    return data + rng.randbytes(rng.choice((1, 8, 64, 70000)))


def _place(data: bytes, rng: random.Random) -> int:
    """Return an offset; half of them in the small sections, where most of the meaning is."""
    return rng.randrange(len(data)) if rng.random() < 0.5 else rng.randrange(min(len(data), 4096))


def _flip_bit(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 9))):
        changed[_place(data, rng)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _random_bytes(data: bytes, rng: random.Random) -> bytes:
    at, size = _place(data, rng), rng.choice((1, 4, 64, 5000))
    return data[:at] + rng.randbytes(len(data[at : at + size])) + data[at + size :]


def _word(rng: random.Random) -> int:
    exact = (
        0,
        1,
        2,
        7,
        8,
        64,
        255,
        65535,
        65536,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**40,
        2**62,
        2**63 - 1,
        2**63,
        2**64 - 1,
    )
    return rng.choice(exact) if rng.random() < 0.7 else rng.getrandbits(64)


def _set_word(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    at = _place(data, rng) & ~7
    part = struct.pack("<Q", _word(rng))[: len(data) - at]
    changed[at : at + len(part)] = part
    return bytes(changed)


def _splice(data: bytes, rng: random.Random) -> bytes:
    size = rng.choice((8, 64, 4096, 65536))
    source, target = (_place(data, rng) for _ in range(2))
    part = data[source : source + size]
    return data[:target] + part + data[target + len(part) :]


def _swap_sections(data: bytes, rng: random.Random) -> bytes:
    """Exchange two rows' places, or two sections' bytes; the root digest is made again for the rows."""
    rows = _rows(data)
    first, second = rng.sample(rows, 2)
    if rng.random() < 0.5:
        size = min(first.size_bytes, second.size_bytes)
        changed = bytearray(data)
        changed[first.offset : first.offset + size] = data[second.offset : second.offset + size]
        changed[second.offset : second.offset + size] = data[first.offset : first.offset + size]
        return bytes(changed)
    names = rng.choice(
        (("offset",), ("size_bytes",), ("digest",), ("id",), ("kind",), ("offset", "size_bytes", "digest"))
    )
    for name in names:
        one, other = getattr(first, name), getattr(second, name)
        setattr(first, name, other)
        setattr(second, name, one)
    return _seal(data, rows)


def _forge_header(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    at = rng.randrange(head.HEADER_SIZE_BYTES - 32)
    width = rng.choice((1, 2, 4, 8))
    part = struct.pack("<Q", _word(rng))[: min(width, head.HEADER_SIZE_BYTES - 32 - at)]
    changed[at : at + len(part)] = part
    return _reseal_raw(bytes(changed))


def _forge_table(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    rows = _rows(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = head.HEADER_SIZE_BYTES + rng.randrange(len(rows)) * head.ROW_SIZE_BYTES
        field, width = rng.choice(((0, 4), (4, 4), (8, 8), (16, 8), (24, 4), (28, 4), (32, 8)))
        changed[at + field : at + field + width] = struct.pack("<Q", _word(rng))[:width]
    return _reseal_raw(bytes(changed))


def _forge_section(kind: int) -> Damage:
    """Change bytes or words of a section, and make digest and root again."""

    def forge(data: bytes, rng: random.Random) -> bytes:
        row = rng.choice([row for row in _rows(data) if row.kind == kind])
        return _replace(data, row, _mutate(data[row.offset : row.offset + row.size_bytes], rng))

    return forge


def _mutate(part: bytes, rng: random.Random) -> bytes:
    changed = bytearray(part)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if rng.random() < 0.5:
            at = rng.randrange(len(part))
            changed[at] = rng.choice((changed[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
        else:
            at = rng.randrange(len(part) // 8) * 8
            value = rng.choice(
                (_word(rng), (int.from_bytes(changed[at : at + 8], "little") + rng.choice((-1, 1))) % 2**64)
            )
            changed[at : at + 8] = struct.pack("<Q", value)
    return bytes(changed)


def _forge_plan(data: bytes, rng: random.Random) -> bytes:
    """Forge the plan; where it still decodes, forge the manifest to agree with it."""
    forged = _forge_section(head.PLAN)(data, rng)
    rows = {row.kind: row for row in _rows(forged)}
    plan_row, manifest_row = rows[head.PLAN], rows[head.MANIFEST]
    try:
        plan = decode_plan(forged[plan_row.offset : plan_row.offset + plan_row.size_bytes])
    except ingot_runtime.BundleError:
        return forged
    manifest = manifest_bytes(plan)
    return _replace(forged, manifest_row, manifest) if len(manifest) == manifest_row.size_bytes else forged


DAMAGES: dict[str, Damage] = {
    "truncate": _truncate,
    "extend": _extend,
    "flip_bit": _flip_bit,
    "random_bytes": _random_bytes,
    "set_word": _set_word,
    "splice": _splice,
    "swap_sections": _swap_sections,
    "forge_header": _forge_header,
    "forge_table": _forge_table,
    "forge_manifest": _forge_section(head.MANIFEST),
    "forge_plan": _forge_plan,
    "forge_program": _forge_section(head.PROGRAM),
    "forge_debug": _forge_section(head.DEBUG),
}


def _rows(data: bytes) -> list[head.Section]:
    """Return the rows of an undamaged table."""
    count = head.check_header(data[: head.HEADER_SIZE_BYTES], len(data))
    header, table = data[: head.HEADER_SIZE_BYTES], data[head.HEADER_SIZE_BYTES :][: count * head.ROW_SIZE_BYTES]
    return head.check_table(header, table, len(data))


def _seal(data: bytes, rows: list[head.Section]) -> bytes:
    prefix, _ = head.encode_head(rows, len(data))
    return prefix + data[len(prefix) :]


def _reseal_raw(data: bytes) -> bytes:
    """Make the root digest of whatever header and table say."""
    count = min(int.from_bytes(data[20:24], "little"), 4096)
    end = head.HEADER_SIZE_BYTES + count * head.ROW_SIZE_BYTES
    at = head.HEADER_SIZE_BYTES - 32
    root = sha256(data[:at] + bytes(32) + data[head.HEADER_SIZE_BYTES : end])
    return data[:at] + root + data[head.HEADER_SIZE_BYTES :]


def _replace(data: bytes, row: head.Section, payload: bytes) -> bytes:
    """Put `payload`, of the same length, in place of a section, and make both digests again."""
    rows = _rows(data)
    for other in rows:
        if (other.kind, other.id) == (row.kind, row.id):
            other.digest = sha256(payload)
    return _seal(data[: row.offset] + payload + data[row.offset + row.size_bytes :], rows)


def damaged(data: bytes, number: int, seed: int) -> tuple[str, bytes]:
    """Return (name of the damage, bytes) of case `number`."""
    name = list(DAMAGES)[number % len(DAMAGES)]
    return name, DAMAGES[name](data, random.Random(f"{seed}/{number}"))


def run_positions(session: Session) -> Outputs:
    """Run on inputs that depend on positions, not on names."""
    rng = np.random.default_rng(1)
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for spec in session.inputs:
        sizes = [dim if isinstance(dim, int) else _SYMBOL_SIZE for dim in spec.shape]
        arrays[spec.name] = np.asarray(rng.integers(0, 2, sizes)).astype(spec.dtype)
    return list(session.run(arrays).values())


def outcome(path: str, expected: Outputs, executor: str) -> str:
    """Load and run the file; return "equal", "wrong", the name of the loader's error, or "foreign ..."."""
    try:
        with ingot_runtime.load(path, executor=executor) as session:
            got = run_positions(session)
    except ingot_runtime.BundleError as error:
        return type(error).__name__
    except Exception as error:
        return f"foreign {type(error).__name__}: {error}"
    same = len(got) == len(expected) and all(
        one.tobytes() == other.tobytes() and one.shape == other.shape for one, other in zip(got, expected, strict=True)
    )
    return "equal" if same else "wrong"


def is_bad(result: str) -> bool:
    """Tell whether a case ended in a way that it must not."""
    return result == "wrong" or result.startswith(("foreign", "crash", "hang"))


def run_batch(bundle: str, first: int, count: int, seed: int, report: str) -> None:
    """Run cases in this process; one line per case goes to the file `report` when the case begins, and when it ends."""
    with open(bundle, "rb") as file:
        data = file.read()
    with ingot_runtime.load(bundle) as session:
        expected = run_positions(session)
    with tempfile.TemporaryDirectory(prefix="damage-") as folder, open(report, "w", encoding="utf-8") as lines:
        path = os.path.join(folder, "m.ingot")
        for number in range(first, first + count):
            name, content = damaged(data, number, seed)
            with open(path, "wb") as file:
                file.write(content)
            executor = "vm" if name == "forge_program" or number % 7 == 0 else "aot"
            print(json.dumps([number, name, ""]), file=lines, flush=True)
            print(json.dumps([number, name, outcome(path, expected, executor)]), file=lines, flush=True)


def run_cases(bundle: str, count: int, seed: int = 0, first: int = 0) -> dict[tuple[str, str], list[int]]:
    """Run `count` cases in child processes; return (damage, result) -> case numbers. A crash costs its own case only."""
    results: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    number, end = first, first + count
    while number < end:
        batch = min(_BATCH, end - number)
        for case, name, result in _child(bundle, number, batch, seed):
            results[name, result].append(case)
            number = case + 1
    return dict(results)


def _child(bundle: str, first: int, count: int, seed: int) -> list[tuple[int, str, str]]:
    """Run a batch in a child; a case that began and did not end is the one that killed it."""
    with tempfile.TemporaryDirectory(prefix="damage-report-") as folder:
        report = os.path.join(folder, "report")
        arguments = [bundle, "--batch", str(first), str(count), report, "--seed", str(seed)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        ending = ""
        try:
            done = subprocess.run(
                [sys.executable, "-W", "error", os.path.abspath(__file__), *arguments],
                env=environment, timeout=300 + _SECONDS_PER_CASE * count, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                ending = f"crash {done.returncode}: {done.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            ending = "hang"
        with open(report, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    finished = [(case, name, result) for case, name, result in lines if result]
    if ending and lines:
        case, name, result = lines[-1]
        if not result:
            finished.append((case, name, ending))
    if ending and not finished:
        raise RuntimeError(f"no case ran: {ending}")
    return finished


def main() -> int:
    """Parse the command line; print a table of results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", nargs=3, metavar=("FIRST", "COUNT", "REPORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch:
        first, count, report = options.batch
        run_batch(options.bundle, int(first), int(count), options.seed, report)
        return 0
    results = run_cases(options.bundle, options.count, options.seed)
    for (name, result), cases in sorted(results.items()):
        mark = f"  BAD: cases {cases[:10]}" if is_bad(result) else ""
        print(f"{name:16} {result:18} {len(cases):6}{mark}")
    bad = sum(len(cases) for (_, result), cases in results.items() if is_bad(result))
    print(f"{sum(map(len, results.values()))} bundles, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
