"""Loop programs as text: the view of stage 7 (``--to loops``), and the canonical form that names a
kernel.

In: a ``LoopProgram``. Out: text in which different programs differ; how statements are read back.
Not done here: values (``loop_value_text``), reading a program (``parse_loops``), the steps of a
group (``print_lowered``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import get_args

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.ir.text.read_terms import read_dim, read_dtype, read_float
from ingot_compiler.ir.text.spelling import Language, Speller, Starts, listed, numbered
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_parts import (
    FixedTaps,
    Moved,
    SplitFactors,
    Taps,
    TwoTaps,
    VectorCount,
)
from ingot_compiler.lowering.loops.loop_value_text import (
    print_access,
    print_argument,
    print_value,
    read_access,
    read_argument,
    read_range,
    read_value,
)
from ingot_compiler.lowering.loops.loop_values import (
    BufferNumber,
    ExternArgument,
    FunctionName,
    Index,
    Value,
    Variable,
    WholeBuffer,
)
from ingot_compiler.lowering.loops.program import (
    LoopProgram,
    Statement,
    Store,
)


def print_loops(program: LoopProgram) -> str:
    """Print a program; the text ends with a line end."""
    buffers = ", ".join(
        f"b{number}: {'write ' if buffer.written else ''}{buffer.dtype}"
        for number, buffer in enumerate(program.buffers)
    )
    scalars = f"; {', '.join(program.scalars)}" if program.scalars else ""
    head = f"kernel({buffers}{scalars}) scratch {format_dim(program.scratch_bytes)} {{"
    loop = f"  parallel {program.index} in {format_dim(program.extent)} grain {program.grain} {{"
    return f"{head}\n{loop}\n{_print_body(program.body, '    ')}  }}\n}}\n"


def read_body(reader: Reader) -> tuple[Statement, ...]:
    """``STATEMENT ...``, up to the brace or the word that ends it."""
    found: list[Statement] = []
    with reader.nested():
        while not reader.at("}") and not (reader.at("yield") and reader.ahead() != "="):
            reader.enter(len(found))
            found.append(_read_statement(reader))
            reader.leave()
    return tuple(found)


def _print_body(body: Sequence[Statement], space: str = "  ") -> str:
    lines = [_LOOPS.show(statement).replace("\n", f"\n{space}") for statement in body]
    return "".join([f"{space}{each}\n" for each in lines])


@cache
def _starts() -> tuple[Starts, Starts]:
    """The statements by the sign behind their first name, and by their first word."""
    found = _LOOPS.starts(
        [each for kind in get_args(Statement) for each in get_args(kind) or (kind,)]
    )
    signs = {start: kinds for start, kinds in found.items() if not start.isidentifier()}
    return signs, {word: kinds for word, kinds in found.items() if word not in signs}


def _read_statement(reader: Reader) -> Statement:
    """One statement; its first words say which."""
    signs, words = _starts()
    start = reader.token
    kinds = signs.get(reader.ahead()) or words.get(start.text)
    if kinds is None:
        word, known = reader.name("a statement"), " ".join(words)
        why = f"expected one of {known} or a name before '=', got {word}"
        raise reader.fail(why, start)
    ahead = reader.ahead()
    statement: Statement = _LOOPS.read(dict(kinds).get(ahead, kinds[0][1]), reader)
    return statement


# ---- parts of statements -------------------------------------------------------------------------


def _read_stores(reader: Reader) -> tuple[Store, ...]:
    """``STORE ...``, up to the brace."""
    found: list[Store] = []
    while not reader.at("}"):
        found.append(_LOOPS.read(Store, reader))
    return tuple(found)


def _print_moved(values: Moved) -> str:
    """A line each."""
    return "".join(f"  {name}={print_access(buffer, index)}\n" for name, buffer, index in values)


def _read_moved(reader: Reader) -> Moved:
    """``name=b0[INDEX] ...``, up to the arrow."""
    found: list[tuple[str, int, Dim]] = []
    while not reader.at("->"):
        name = reader.name()
        reader.expect("=")
        found.append((name, *read_access(reader)))
    return tuple(found)


def _print_split(split: SplitFactors) -> str:
    """``split=1 b4[0] b5[0] plain=b0[INDEX] fits=b6[0]``: lower parts of A, then of B."""
    lower = " ".join(print_access(buffer, 0) for buffer in (*split.a, *split.b))
    plain = print_access(split.plain, split.plain_index)
    return f"{len(split.a)} {lower}\n  plain={plain} fits={print_access(split.fits, 0)}"


def _read_split(reader: Reader) -> SplitFactors:
    count = reader.integer()
    a, b = (tuple(_read_whole(reader) for _ in range(count)) for _ in range(2))
    reader.expect("plain", "=")
    plain = read_access(reader)
    reader.expect("fits", "=")
    return SplitFactors(a, b, *plain, _read_whole(reader))


def _read_whole(reader: Reader) -> int:
    """``b0[0]``."""
    buffer = reader.buffer()
    reader.expect("[", "0", "]")
    return buffer


def _print_taps(taps: Sequence[tuple[str, Dim]]) -> str:
    return f"({', '.join(f'{name} in {format_dim(extent)}' for name, extent in taps)})"


def _read_taps(reader: Reader) -> Taps:
    """``(y in 3, x in s0)``."""
    reader.expect("(")
    return reader.items(lambda: read_range(reader), ")")


def _read_fixed_taps(reader: Reader) -> FixedTaps:
    """Read ``(y in 3, x in 5)``: taps whose extents are numbers."""
    return tuple((name, _fixed(reader, extent)) for name, extent in _read_taps(reader))


def _fixed(reader: Reader, extent: Dim) -> int:
    if not isinstance(extent, int):
        raise reader.fail(f"expected taps of fixed extents, got {extent}")
    return extent


def _read_two_taps(reader: Reader) -> TwoTaps:
    """``taps=(y in 3, x in 3)``, of which an error names the beginning."""
    start = reader.expect("taps", "=")
    taps = _read_fixed_taps(reader)
    if len(taps) != 2:
        raise reader.fail(f"expected 2 taps, got {len(taps)}", start)
    return taps[0], taps[1]


_NAME = Speller(str, Reader.name)
_BUFFER = numbered("b", "a buffer (b0)")
_DIM = Speller(format_dim, read_dim)
_LOOPS = Language(
    {
        str: _NAME,
        Variable: _NAME,
        FunctionName: Speller(str, lambda reader: reader.name("a function")),
        int: Speller(str, Reader.integer),
        float: Speller(repr, read_float),
        bool: Speller(str, lambda reader: reader.choice(("True", "False")) == "True"),
        Dim: _DIM,
        Index: _DIM,
        DType: Speller(str, read_dtype),
        BufferNumber: _BUFFER,
        WholeBuffer: Speller(lambda buffer: print_access(buffer, 0), _read_whole),
        VectorCount: numbered("x", "a number of vectors (x2)"),
        SplitFactors: Speller(_print_split, _read_split),
        Value: Speller(print_value, read_value),
        tuple[ExternArgument, ...]: listed(Speller(print_argument, read_argument)),
        tuple[Statement, ...]: Speller(_print_body, read_body),
        tuple[Store, ...]: Speller(_print_body, _read_stores),
        Taps: Speller(_print_taps, _read_taps),
        FixedTaps: Speller(_print_taps, _read_fixed_taps),
        TwoTaps: Speller(lambda taps: f"taps={_print_taps(taps)}", _read_two_taps),
        Moved: Speller(_print_moved, _read_moved),
    }
)
"""How the parts of statements are written, by the types of fields."""
