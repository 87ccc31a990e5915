"""Changes to a bundle that know its structure: one field, word, value or section becomes another,
then all is sealed again.

In: ``Parts``, a generator. Out: a ``Mutant``. Not done here: reading it (``mutants``).

Which mutants may be run: whoever makes code and digests agree controls the machine code, and what
that does is no matter of the format. So a mutant whose image was changed, or was made to agree with
a forged program or interface, is read by every reader and never loaded.
"""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.hostile.reseal import Parts, reseal_root

from ingot_artifacts.bundle.encode_head import encode_head
from ingot_artifacts.bundle.encode_plan import PlanWriter
from ingot_runtime.errors import BundleError
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.plan import DEVICE_KINDS, BundlePlan
from ingot_runtime.format.program import Program
from ingot_runtime.format.states import ROW

_WORD = 1 << 64
_MINOR_FIELD = (10, 2)
_HEADER_FIELDS = ((0, 8), (8, 2), _MINOR_FIELD, (12, 4), (16, 4), (20, 4), (24, 8), (32, 8))
_ROW_FIELDS = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 4), (28, 4), (32, 8))
_JUNK: tuple[Any, ...] = (None, True, 0, -1, "x", b"x", [], [[]], {}, {"x": 0})
_SMALL = (head.MANIFEST, head.PLAN, head.TREE, head.LOCK, head.PROGRAM, head.DEBUG, head.DEFAULT)


@dataclass(frozen=True, slots=True)
class Mutant:
    """``prefix``: all bytes before the weights; ``patches``: (offset in the weights, bytes) that
    are not as they were.

    ``size_change``: bytes that the file is longer (filled with ones) or shorter. ``may_run``: see
    above. ``is_consistent``: no digest and no other part says otherwise, so that whoever checks
    every byte may still take it for a bundle.
    """

    prefix: bytes
    patches: tuple[tuple[int, bytes], ...] = ()
    size_change: int = 0
    may_run: bool = True
    is_consistent: bool = True


@dataclass(slots=True)
class Fixed:
    """Items of a stream of words that stand there without a count."""

    items: list[Any] = field(default_factory=list[Any])


def odd_number(value: int, rng: random.Random) -> int:
    """Return another number: beside it, of the other sign, 0, -1, twice, one bit off, huge."""
    choices = (
        value + 1, value - 1, 0, -1, 1, -value, 2 * value, value ^ 1 << rng.randrange(63), value + 64, value + (1 << 20), 2**31 - 1,
        2**32, 2**40, 2**62, 2**63 - 1, -(2**63), rng.getrandbits(64) - 2**63,
    )  # fmt: skip
    return rng.choice([choice for choice in choices if choice != value])


def odd_text(text: str, rng: random.Random) -> str:
    """Return another text: empty, shorter, longer than a name may be, with what a terminal
    obeys."""
    return rng.choice(
        (
            f"{text}x",
            text[:-1],
            text[1:],
            "",
            text * 2,
            "x" * 4097,
            f"{text}\x1b[2J",
            "\u202e",
            "host",
            "\0",
        )
    )


def mutate_values(value: Any, rng: random.Random) -> Any:
    """Return nested values with one place changed, deleted, doubled, swapped, or one of another
    kind."""
    container, key = _place(value, rng)
    if container is None:
        return copy.deepcopy(rng.choice(_JUNK))
    item = container[key]
    if container.__class__ is list:
        action = rng.randrange(8)
        if action == 0:
            del container[key]
        elif action == 1:
            container.insert(key, item)
        elif action == 2:
            other = rng.randrange(len(container))
            container[key], container[other] = container[other], item
        elif action == 3:
            del container[key:]
        if action < 4:
            return value
    elif rng.random() < 0.2:
        del container[key]
        if rng.random() < 0.5:
            container[odd_text(key, rng)] = item
        return value
    container[key] = _odd(item, rng)
    return value


def _odd(item: Any, rng: random.Random) -> Any:
    if rng.random() < 0.1:
        return copy.deepcopy(rng.choice(_JUNK))
    if isinstance(item, bool):
        return not item
    if isinstance(item, int):
        return odd_number(item, rng)
    if isinstance(item, str):
        return odd_text(item, rng)
    if isinstance(item, bytes):
        return mutate_bytes(item, rng)
    return rng.choice((None, 0, "x", [item], []))


def _place(value: Any, rng: random.Random) -> tuple[Any, Any]:
    """Walk down to a random place; return its container and key, (None, None) for the whole."""
    container, key, item = None, None, value
    while True:
        inner: Any = item.items if item.__class__ is Fixed else item
        kind: Any = inner.__class__
        keys: Any = list(inner) if kind is dict else range(len(inner)) if kind is list else ()
        if not keys or (container is not None and rng.random() < 0.15):
            return container, key
        container, key = inner, rng.choice(keys)
        item = container[key]


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return other bytes: a bit, a byte or a word changed, a part cut out, doubled, moved or
    noise."""
    if not data:
        return b"\0"
    at, size = rng.randrange(len(data)), rng.choice((1, 1, 2, 4, 8, 64))
    part = data[at : at + size]
    choices: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :],
        lambda: data[:at] + rng.randbytes(len(part)) + data[at + size :],
        lambda: data[:at] + data[at + size :],
        lambda: data[:at] + part + data[at:],
        lambda: data[:at],
        lambda: data + part,
        lambda: part + data,
        lambda: data[at:] + data[:at],
        lambda: (
            data[: at & ~7]
            + _packed(odd_number(_word_at(data, at & ~7), rng))
            + data[(at & ~7) + 8 :]
        ),
    )
    return rng.choice(choices)()


def _word_at(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little", signed=True)


def _packed(value: int) -> bytes:
    return struct.pack("<Q", value % _WORD)


def plan_values(plan: BundlePlan) -> Fixed:
    """Return a plan as the values of its stream of words: lists are counted, ``Fixed`` are not."""
    tensors = [
        [Fixed([each.name, each.dtype, list(each.dims)]) for each in part]
        for part in (plan.inputs, plan.outputs)
    ]
    devices = [
        Fixed([each.name, DEVICE_KINDS.index(each.kind), each.id, each.scope, each.library])
        for each in plan.devices
    ]
    libraries = [
        Fixed([DEVICE_KINDS.index(each.kind), each.target, list(each.features), each.kernel_count])
        for each in plan.libraries
    ]
    variants = [
        Fixed([
            each.target, each.rank, list(each.features), each.kernel_count, Fixed(list(each.workspace_bytes)),
            [Fixed(list(pair)) for pair in each.ranges],
        ])
        for each in plan.variants
    ]  # fmt: skip
    return Fixed([1, plan.model, devices, libraries, list(plan.symbols), *tensors, variants])


def program_values(program: Program) -> Fixed:
    """Return a program likewise."""
    instructions = [
        Fixed([code, *(list(each) if isinstance(each, tuple) else each for each in operands)])
        for code, operands in program.instructions
    ]
    counts = [len(instructions), program.register_count, program.buffer_count]
    return Fixed([*counts, Fixed(list(instructions)), list(program.messages)])


def encode_values(value: Any) -> bytes:
    """Return the stream of words and texts; what is neither is left out."""
    out = PlanWriter()
    _write(value, out)
    return out.data()


def _write(value: Any, out: PlanWriter) -> None:
    kind: Any = value.__class__
    if kind in (int, bool):
        out.word((value + (1 << 63)) % _WORD - (1 << 63))
    elif kind is str:
        out.text(value)
    elif kind is list:
        out.word(len(value))
    for item in value if kind is list else value.items if kind is Fixed else ():
        _write(item, out)


def _mutate_stream(values: Callable[[], Fixed], data: bytes, rng: random.Random) -> bytes:
    """Change values and encode them, or change the encoded bytes."""
    if rng.random() < 0.25:
        return mutate_bytes(data, rng)
    mutated: Any = values()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutated = mutate_values(mutated, rng)
    return encode_values(mutated)


def header_field(parts: Parts, rng: random.Random) -> Mutant:
    """Change a field of the header; the root digest is made again. Another minor version that
    readers know may be that of the bundle."""
    prefix = bytearray(parts.prefix())
    field = rng.choice(_HEADER_FIELDS)
    _change_field(prefix, field, rng)
    minor = int.from_bytes(prefix[10:12], "little")
    is_known = field == _MINOR_FIELD and minor <= head.VERSION_MINOR
    return Mutant(reseal_root(bytes(prefix)), is_consistent=is_known)


def row_fields(parts: Parts, rng: random.Random) -> Mutant:
    """Change fields of rows; the root digest is made again. A section that may be left out may get
    another number, or a kind that no reader knows."""
    prefix = bytearray(parts.prefix())
    rows, is_optional = parts.rows()[0], True
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, width = rng.choice(_ROW_FIELDS)
        number = rng.randrange(len(rows))
        is_optional &= rows[number].kind in head.OPTIONAL_KINDS
        at += head.HEADER_SIZE_BYTES + number * head.ROW_SIZE_BYTES
        _change_field(prefix, (at, width), rng)
    return Mutant(reseal_root(bytes(prefix)), is_consistent=is_optional)


def _change_field(data: bytearray, place: tuple[int, int], rng: random.Random) -> None:
    at, width = place
    value = odd_number(int.from_bytes(data[at : at + width], "little"), rng)
    data[at : at + width] = _packed(value)[:width]


def rows_moved(parts: Parts, rng: random.Random) -> Mutant:
    """Exchange, double or drop whole rows, or exchange one of their fields: nothing changes where
    both say the same contents, as the debug sections of two variants may."""
    rows, size_bytes = parts.rows()
    digests = {row.offset: row.digest for row in rows}
    before = _contents(rows, digests)
    first, second = rng.sample(range(len(rows)), 2)
    action = rng.randrange(4)
    if action == 0:
        rows[first], rows[second] = rows[second], rows[first]
    elif action == 1:
        rows[first] = rows[second]
    elif action == 2:
        del rows[first]
    else:
        for name in rng.choice(
            (
                ("offset",),
                ("size_bytes",),
                ("digest",),
                ("id",),
                ("kind",),
                ("offset", "size_bytes", "digest"),
            )
        ):
            one, other = getattr(rows[first], name), getattr(rows[second], name)
            setattr(rows[first], name, other)
            setattr(rows[second], name, one)
    start, _ = encode_head(rows, size_bytes, parts.version_minor)
    is_consistent = _contents(rows, digests) == before
    return Mutant(start + parts.prefix()[len(start) :], is_consistent=is_consistent)


def _contents(
    rows: Sequence[head.Section], digests: Mapping[int, bytes]
) -> list[tuple[int, int, int, bytes, bytes]]:
    """What each section is said to be, and what lies there: ``digests`` by offset."""
    return sorted(
        (row.kind, row.id, row.size_bytes, row.digest, digests[row.offset]) for row in rows
    )


def file_size(parts: Parts, rng: random.Random) -> Mutant:
    """Cut the file, often at a border, or make it longer."""
    rows, size_bytes = parts.rows()
    if rng.random() < 0.2:
        return Mutant(
            parts.prefix(), size_change=rng.choice((1, 8, 64, 4096, 1 << 20)), is_consistent=False
        )
    borders = [offset for row in rows for offset in (row.offset, row.offset + row.size_bytes)]
    end = rng.choice(borders) if rng.random() < 0.5 else rng.randrange(size_bytes)
    end -= rng.choice((0, 0, 1, 8))
    return Mutant(
        parts.prefix(), size_change=min(-1, max(0, end) - size_bytes), is_consistent=False
    )


def flipped(parts: Parts, rng: random.Random) -> Mutant:
    """Change bytes before the weights, and seal nothing."""
    data = bytearray(parts.prefix())
    for _ in range(rng.choice((1, 1, 2, 9))):
        data[
            rng.randrange(len(data)) if rng.random() < 0.5 else rng.randrange(min(len(data), 4096))
        ] ^= 1 << rng.randrange(8)
    return Mutant(bytes(data), is_consistent=False)


def section_replaced(parts: Parts, rng: random.Random) -> Mutant:
    """Give a small section another one's bytes, half of its own, none, twice its own, zeros."""
    kind, id_ = rng.choice([key for key in parts.payloads if key[0] in _SMALL])
    data = parts.payloads[kind, id_]
    other = parts.payloads[rng.choice(list(parts.payloads))]
    parts.put(
        kind,
        id_,
        rng.choice(
            (other, data[: len(data) // 2], b"", data * 2, bytes(len(data)), data + bytes(64))
        ),
    )
    return Mutant(parts.prefix())


def plan_changed(parts: Parts, rng: random.Random) -> Mutant:
    """Change the plan; mostly the manifest agrees with it."""
    encoded = _mutate_stream(lambda: plan_values(parts.plan), parts.payloads[head.PLAN, 0], rng)
    if rng.random() < 0.85:
        parts.put_plan(encoded)
    else:
        parts.put(head.PLAN, 0, encoded)
    return Mutant(parts.prefix())


def bytes_changed(
    kind: int, *, is_consistent: bool = False
) -> Callable[[Parts, random.Random], Mutant]:
    """Return the change of bytes of a section of `kind`."""

    def change(parts: Parts, rng: random.Random) -> Mutant:
        keys = [key for key in parts.payloads if key[0] == kind]
        if keys:
            key = rng.choice(keys)
            parts.put(*key, mutate_bytes(parts.payloads[key], rng))
        return Mutant(parts.prefix(), is_consistent=is_consistent)

    return change


def weights_changed(parts: Parts, rng: random.Random) -> Mutant:
    """Change bytes of the weights."""
    if not parts.weights_size_bytes:
        return flipped(parts, rng)
    used = [pair for variant in parts.plan.variants for pair in variant.ranges]
    first, size = rng.choice(used) if used and rng.random() < 0.5 else (0, parts.weights_size_bytes)
    at = first + rng.randrange(size)
    return Mutant(
        parts.prefix(), patches=((at, bytes((rng.randrange(1, 256),))),), is_consistent=False
    )


def program_changed(parts: Parts, rng: random.Random) -> Mutant:
    """Change a program; the image was made from another one."""
    _change_program(parts, rng)
    return Mutant(parts.prefix(), is_consistent=False)


def program_resealed(parts: Parts, rng: random.Random) -> Mutant:
    """Change a program, and let the image say that it was made from it."""
    parts.reseal_program(_change_program(parts, rng))
    return Mutant(parts.prefix(), may_run=False)


def _change_program(parts: Parts, rng: random.Random) -> int:
    index = rng.choice([key[1] for key in parts.payloads if key[0] == head.PROGRAM])
    data = parts.payloads[head.PROGRAM, index]
    parts.put(
        head.PROGRAM, index, _mutate_stream(lambda: program_values(parts.program(index)), data, rng)
    )
    return index


def record_changed(kind: int) -> Callable[[Parts, random.Random], Mutant]:
    """Return the change of values of debug or lock."""

    def change(parts: Parts, rng: random.Random) -> Mutant:
        values: Any = parts.record(kind)
        for _ in range(rng.choice((1, 1, 2, 4))):
            values = mutate_values(values, rng)
        parts.put(kind, 0, pack(_packable(values)))
        return Mutant(parts.prefix())

    return change


def _packable(value: Any) -> Any:
    kind: Any = value.__class__
    if kind is dict:
        return {key: _packable(item) for key, item in value.items()}
    if kind is list:
        return list(map(_packable, value))
    return max(-(2**63), min(value, _WORD - 1)) if kind is int else value


def states_changed(parts: Parts, rng: random.Random) -> Mutant:
    """Change a number of the section of states, or add one, to a bundle that has none too."""
    there = (head.STATE, 0) in parts.payloads
    rows = [list(row) for row in ROW.iter_unpack(parts.payloads[head.STATE, 0])] if there else []
    if not rows or rng.random() < 0.2:
        rows.insert(rng.randrange(len(rows) + 1), [rng.randrange(-1, 3) for _ in range(3)])
    if rng.random() < 0.8:
        row, at = rng.choice(rows), rng.randrange(3)
        row[at] = (odd_number(row[at], rng) + 2**63) % _WORD - 2**63
    data = b"".join(ROW.pack(*row) for row in rows)
    if rng.random() < 0.1:
        data = mutate_bytes(data, rng)
    (parts.put if there else parts.add)(head.STATE, 0, data)
    return Mutant(parts.prefix())


def image_digests(parts: Parts, rng: random.Random) -> Mutant:
    """Change a digest that lies in an image: what the image was made from is then another plan or
    program."""
    index = rng.choice([key[1] for key in parts.payloads if key[0] == head.CODE])
    at = parts.export_at(index, rng.choice(("program_digest", "interface_digest"))) + rng.randrange(
        32
    )
    image = bytearray(parts.payloads[head.CODE, index])
    image[at] ^= 1 << rng.randrange(8)
    parts.put(head.CODE, index, bytes(image))
    return Mutant(parts.prefix(), is_consistent=False)


def interface_resealed(parts: Parts, rng: random.Random) -> Mutant:
    """Change the plan, and let every image say that it was made for it."""
    parts.put_plan(
        _mutate_stream(lambda: plan_values(parts.plan), parts.payloads[head.PLAN, 0], rng)
    )
    try:
        parts.reseal_interface()
    except BundleError:
        return Mutant(parts.prefix(), may_run=False)  # nobody can read the plan
    return Mutant(parts.prefix(), may_run=False)


def image_table(parts: Parts, rng: random.Random) -> Mutant:
    """Change the head or the table of exports of an image, or its size."""
    index = rng.choice([key[1] for key in parts.payloads if key[0] == head.CODE])
    image = bytearray(parts.payloads[head.CODE, index])
    if rng.random() < 0.2:
        parts.put(head.CODE, index, mutate_bytes(bytes(image), rng))
        return Mutant(parts.prefix(), may_run=False)
    words = len(abi.IMAGE_HEADER) + len(abi.EXPORTS) + parts.plan.variants[index].kernel_count
    for _ in range(rng.choice((1, 1, 2))):
        _change_field(image, (4 * rng.randrange(words), 4), rng)
    parts.put(head.CODE, index, bytes(image))
    if rng.random() < 0.3:
        count = struct.unpack_from("<I", image, 4 * 4)[0]
        values = plan_values(parts.plan)
        values.items[7][index].items[3] = count
        parts.put_plan(encode_values(values))
    return Mutant(parts.prefix(), may_run=False)


MUTATIONS: dict[str, Callable[[Parts, random.Random], Mutant]] = {
    "header field": header_field,
    "row fields": row_fields,
    "rows moved": rows_moved,
    "file size": file_size,
    "flipped": flipped,
    "section replaced": section_replaced,
    "plan": plan_changed,
    "plan again": plan_changed,
    "manifest": bytes_changed(head.MANIFEST),
    "tree": bytes_changed(head.TREE),
    "weights": weights_changed,
    "program": program_changed,
    "program resealed": program_resealed,
    "debug": record_changed(head.DEBUG),
    "debug bytes": bytes_changed(head.DEBUG, is_consistent=True),
    "lock": record_changed(head.LOCK),
    "lock bytes": bytes_changed(head.LOCK, is_consistent=True),
    "states": states_changed,
    "image digests": image_digests,
    "interface resealed": interface_resealed,
    "image table": image_table,
}


def mutant(parts: Parts, number: int, seed: int) -> tuple[str, Mutant, random.Random]:
    """Return (name of the change, the mutant, the generator for the rest) of case `number`: the
    same each time."""
    name = list(MUTATIONS)[number % len(MUTATIONS)]
    rng = random.Random(f"{seed}/{number}")
    return name, MUTATIONS[name](parts.copy(), rng), rng
