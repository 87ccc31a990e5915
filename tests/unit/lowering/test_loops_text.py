"""Loop programs as text: what is read back, what is refused, where and by which rule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot_compiler.ir.errors import InternalError, ModelError
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.verify_loops import verify_loops

ROWS = """\
kernel(b0: f32, b1: write f32, b2: i64; n) scratch 64 {
  parallel i in 8 grain 2 {
    m: f32 = max lanes over j in n {
      yield b0[i*n + j]
    }
    x = sub(b0[i*n], %m:f32):f32
    index k = b2[i]
    require 0: (k < n)
    if logical_and((k < 4), (0 <= k)):bool {
      vector j in n {
        b1[i*n + j] = select((j < 3), -0.5:f32, Infinity:f32):f32
      }
    }
    unroll u in 2 {
      serial v in max(2, n) {
        b1[i] = add(%x:f32, (2*u + v):f32):f32
      }
    }
  }
}
"""
BLOCKS = """\
kernel(b0: f32, b1: f32, b2: write f32) scratch 0 {
  parallel p in 1 grain 1 {
    contraction
      row=r rows=4 row_start=0 row_block=4
      column=c columns=16 column_start=0
      taps=(y in 2, x in 3) depth=d in 5 tile=4x2
      a=b0[d + r + x + y]
      b=b1[16*d + 80*floordiv(c, 16) + mod(c, 16)] panels=16 step=80 together=1
      acc: f32 -> {
      b2[c + 16*r] = %acc:f32
    }
    depthwise
      x=xx x_extent=4 channel=ch channels=8 pixels=4
      taps=(ty in 3)
      a=b0[ch + ty + xx]
      w=b1[ch + 8*ty]
      sum: f32 -> {
      b2[ch + 8*xx] = %sum:f32
    }
    depthwise plane
      y=py y_extent=4 x=px x_extent=4 rows_together=2
      image=(4, 4)
      strides=(1, 1)
      dilations=(1, 1)
      pads=(1, 1)
      taps=(fy in 3, fx in 3)
      a=b0[ic + 4*ir] over ir, ic
      w=b1[fx + 3*fy]
      plane: f32 -> {
      b2[px + 4*py] = %plane:f32
    }
    attention
      query=q queries=4 query_start=0 query_block=4
      key=k keys=3 depth=e depth_extent=2
      value=v value_extent=2 group=p
      q=b0[e + 2*q]
      k=b0[e + 2*k]
      v=b0[2*k + v]
      scale=0.5 mask=b1[k + 3*q]
      causal=True causal_offset=-1 nan_to_zero=False in_place=False
      att: f32 -> {
      b2[2*q + v] = %att:f32
    }
    transpose
      row=tr rows=8 row_start=0 row_block=4
      column=tc columns=6 column_start=0 column_block=6
      t0=b0[8*tc + tr]
      -> {
      b2[tc + 6*tr] = %t0:f32
    }
  }
}
"""

TEAM = """\
kernel(b0: f32, b1: f32, b2: write f32) scratch 0 {
  parallel p in 16 grain 1 {
    contraction
      row=r rows=20 row_start=2*mod(p, 16) row_block=2
      column=c columns=16 column_start=0
      taps=() depth=d in 5 tile=2x2
      team=16 place=mod(p, 16)
      a=b0[d + 5*r]
      b=b1[c + 16*d] panels=None
      acc: f32 -> {
      b2[c + 16*r] = %acc:f32
    }
  }
}
"""

STRASSEN = """\
kernel(b0: f32, b1: f32, b2: write f32) scratch 1024 {
  parallel p in 2 grain 1 {
    contraction
      row=r rows=9 row_start=4*p row_block=8
      column=c columns=32 column_start=0
      taps=() depth=d in 64 tile=4x2
      strassen=1 block=16
      a=b0[d + 64*r]
      b=b1[16*d + 1024*floordiv(c, 16) + mod(c, 16)] panels=16 step=1024 together=1
      acc: f32 -> {
      b2[c + 32*r] = %acc:f32
    }
  }
}
"""

EXTERN = """\
kernel(b0: f32, b1: write f32; n) scratch 0 {
  parallel p in 1 grain 1 {
    extern 0: accelerate(b0[0], b1[n], (2*n):i64, 0.5:f64)
  }
}
"""
FILTER = """\
kernel(b0: f32, b1: write f32; n) scratch 0 {
  parallel i in 8 grain 2 {
    filter end over f in n from i below 2*n {
      kept = b0[i*n + f]
      yield less(%kept:f32, 0.5:f32):bool
      b1[n] = %kept:f32
    }
    b1[end] = 0.0:f32
  }
}
"""


REACH = ROWS.replace("index k =", "index k within 47 =")


@pytest.mark.parametrize("text", [ROWS, REACH, BLOCKS, TEAM, STRASSEN, EXTERN, FILTER])
def test_every_statement_is_read_back(text: str) -> None:
    """The text of a program that has every statement and value gives the program whose text it
    is."""
    program = parse_loops(text)
    assert print_loops(program) == text
    assert parse_loops(print_loops(program)) == program
    verify_loops(program)


@pytest.mark.parametrize(
    ("text", "old", "new", "place", "why"),
    [
        (ROWS, "kernel(b0", "kernel(b1", "line 1, column 8", 'expected "b0", got \'b1\''),
        (ROWS, "b0: f32", "b0: f33", "line 1, column 12", "an element type out of"),
        (ROWS, "grain 2", "grain 0", "line 1, column 1", "units worth a thread: expected at least 1, got 0"),
        (ROWS, "grain 2", "grain two", "line 2, column 25", "expected an integer, got 'two'"),
        (ROWS, "max lanes", "mean lanes", "line 3, column 14", "expected one of sum product max min max_number"),
        (ROWS, "yield b0", "yield b7", "line 3, column 5", "buffers of the kernel: expected b0 to b2, got b7"),
        (ROWS, "over j in n", "over i in n", "line 3, column 5", "names are bound once"),
        (ROWS, "over j in n", "over j in q", "line 3, column 5", "symbols are bound before"),
        (ROWS, "sub(b0[i*n]", "sub(b0[i*j]", "line 6, column 5", "or an index, got j"),
        (ROWS, "x = sub(", "x = subtract(", "line 6, column 5", "expected an elementwise core op, got subtract"),
        (ROWS, "x = sub(", "x = neg(", "line 6, column 5", "arguments of neg: expected 1, got 2"),
        (ROWS, "%m:f32):f32", "%m:f32):f64", "line 6, column 5", "result of sub: expected f32, got f64"),
        (ROWS, "%m:f32", "%m:f64", "line 6, column 5", "a name has the type of its value: expected %m:f32, got f64"),
        (ROWS, "%m:f32", "%w:f32", "line 6, column 5", "expected a value that is named before, got %w, seen are m"),
        (ROWS, "index k = b2", "index k = b0", "line 7, column 5", "what index reads: expected a value of i8"),
        (ROWS, "require 0: (k < n)", "require 0: b2[k]", "line 8, column 5", "what require reads: expected a value of bool"),
        (ROWS, "require 0", "require -1", "line 8, column 5", "numbers of requirements: expected at least 0, got -1"),
        (ROWS, "if logical_and(", "if logical_or(b0[0], ", "line 9, column 5", "arguments of logical_or"),
        (ROWS, "vector j in n {", "vector j in n { vector w in n {}", "line 10, column 23", "loops in lanes: expected at most one"),
        (ROWS, "        b1[i*n", "        b0[i*n", "line 11, column 9", "what a kernel stores to: expected a buffer that is written"),
        (ROWS, "(j < 3)", "(j > 3)", "line 11, column 33", 'expected ")" or one of < <= =='),
        (ROWS, "(j < 3)", "1.0:f32", "line 11, column 9", "arguments of select"),
        (ROWS, "-0.5:f32", "true:f32", "line 11, column 9", "types of literals: expected a literal of f32, got True"),
        (ROWS, "unroll u in 2", "unroll u in n", "line 14, column 5", "loops that are copied: expected an extent that is a number"),
        (ROWS, "serial v", "parallel v", "line 15, column 7", "one of serial vector vector_down unroll"),
        (ROWS, "max(2, n)", "maximum(2, n)", "line 15, column 19", "a function out of broadcast floordiv max min mod"),
        (ROWS, "b1[i] =", "b1[i - 1] =", "line 16, column 9", "accesses lie in their buffers: expected an element of b1, at least 0"),
        (ROWS, "  }\n}\n", "  }\n", "line 19, column 4", 'expected "}", got the end of the text'),
        (ROWS, "  }\n}\n", "  }\n}\n}\n", "line 21, column 1", "expected the end of the text, got '}'"),
        (BLOCKS, "row_block=4\n      column=c", "row_block=0\n      column=c", "line 3, column 5", "row_block of a block: expected at least 1"),
        (BLOCKS, "tile=4x2", "tile=4 2", "line 6, column 49", "expected a number of vectors (x2)"),
        (BLOCKS, "depth=d in 5", "depth=r in 5", "line 3, column 5", "names are bound once"),
        (BLOCKS, "a=b0[d + r", "a=b0[d - r", "line 3, column 5", "got -3 at p = 0, r = 3"),
        (BLOCKS, "panels=16", "panels=x", "line 8, column 59", "expected an integer"),
        (BLOCKS, "panels=16", "panels=0", "line 3, column 5", "columns of a panel: expected at least 1, got 0"),
        (BLOCKS, "together=1", "together=1 addends=b1[0]", "line 3, column 5", "expected f32, bytes and i32"),
        (BLOCKS, "step=80", "step=96", "line 3, column 5", "steps from panel to panel: expected 96, got 80"),
        (BLOCKS, "b0: f32", "b0: i8", "line 3, column 5", "whose sums are f32: expected f32 or f16 or bf16, got i8"),
        (BLOCKS, "b1: f32", "b1: f64", "line 3, column 5", "B of a contraction whose sums are f32: expected"),
        (BLOCKS, "acc: f32", "acc: i8", "line 3, column 5", "whose sums are i8: expected other sums, got f32"),
        (BLOCKS, "columns=16", "columns=z", "line 3, column 5", "symbols are bound before"),
        (BLOCKS, "(ty in 3)", "(ty in p)", "line 15, column 7", "expected taps of fixed extents"),
        (BLOCKS, "taps=(fy in 3, fx in 3)", "taps=(fy in 3)", "line 26, column 7", "expected 2 taps, got 1"),
        (BLOCKS, "image=(4, 4)", "image=(4)", "line 22, column 15", 'expected ","'),
        (BLOCKS, "scale=0.5", "scale=1", "line 39, column 13", "expected a float"),
        (BLOCKS, "mask=b1[k + 3*q]", "mask=b1[3*q - k]", "line 32, column 5", "got -2 at"),
        (BLOCKS, "t0=b0[8*tc", "t0=b5[8*tc", "line 44, column 5", "buffers of the kernel"),
        (TEAM, "place=mod(p, 16)", "place=p", "line 3, column 5", "places of a team: expected mod(p, 16), got p"),
        (TEAM, "p in 16", "p in 24", "line 3, column 5", "units of teams: expected a multiple of 16, got 24"),
        (TEAM, "row_block=2", "row_block=4", "line 3, column 5", "tiles of a team: expected one tile of rows"),
        (TEAM, "tile=2x2", "tile=2x3", "line 3, column 5", "of 1 or 2 or 4 or 8 vectors, got row_block=2 tile=2x3"),
        (TEAM, "columns=16", "columns=p", "line 3, column 5", "sums of a team: expected f32, a number of columns, got f32, columns=p"),
        (TEAM, "team=16", "team=0", "line 3, column 5", "team of a block: expected at least 1, got 0"),
        (STRASSEN, "tile=4x2", "tile=3x2", "line 3, column 5", "halves of a tile: expected even rows, 2 vectors, got row_block=8 tile=3x2"),
        (STRASSEN, "tile=4x2", "tile=0x2", "line 3, column 5", "tile of a block: expected at least 1"),
        (STRASSEN, "strassen=1", "strassen=2", "line 3, column 5", "halves of a tile: expected even rows, 4 vectors"),
        (STRASSEN, "block=16", "block=24", "line 3, column 5", "halves of the depth: expected a multiple of 48, got 64"),
        (STRASSEN, "taps=()", "taps=(y in 1, x in 1)", "line 3, column 5", "halves of the depth: expected one loop of taps at most, got 2 loops"),
        (STRASSEN, "block=16", "block=0", "line 3, column 5", "block of a block: expected at least 1"),
        (STRASSEN, "a=b0[d + 64*r]", "a=b0[2*d + 64*r]", "line 3, column 5", "halves of factors: expected f32 in rows"),
        (EXTERN, "extern 0", "extern x", "line 3, column 12", "expected an integer"),
        (EXTERN, "extern 0", "extern -1", "line 3, column 5", "numbers of requirements: expected at least 0, got -1"),
        (EXTERN, "accelerate(", "(", "line 3, column 15", "expected a function"),
        (EXTERN, "b0[0]", "b2[0]", "line 3, column 5", "buffers of the kernel: expected b0 to b1, got b2"),
        (EXTERN, "b0[0]", "%v:f32", "line 3, column 26", "expected an element of a buffer, a number or an index"),
        (EXTERN, "(2*n):i64", "(2*n):i8", "line 3, column 5", "what extern reads: expected a value of i32"),
        (EXTERN, "(2*n)", "(2*m)", "line 3, column 5", "symbols are bound before"),
        (EXTERN, "extern 0: accelerate(b0[0], b1[n], (2*n):i64, 0.5:f64)", "vector j in 2 { extern 0: f() }", "line 3, column 21", "loops in lanes: expected no loop"),
        (FILTER, "over f", "over i", "line 3, column 5", "names are bound once"),
        (FILTER, "below 2*n", "below 2*m", "line 3, column 5", "symbols are bound before"),
        (FILTER, "yield less(%kept:f32, 0.5:f32):bool", "yield %kept:f32", "line 3, column 5", "a value of bool"),
        (FILTER, "kept = b0[i*n + f]", "require 0: (f < n)", "line 3, column 5", "what a filter runs"),
        (FILTER, "b1[n] =", "b0[n] =", "line 3, column 5", "what a kernel stores to"),
        (BLOCKS, "%t0:f32", "%t1:f32", "line 49, column 7", "a value that is named before"),
    ],
)  # fmt: skip
def test_errors_name_line_column_and_rule(
    text: str, old: str, new: str, place: str, why: str
) -> None:
    """Each thing that can be wrong with a text is refused where it stands, by the rule that it
    breaks."""
    assert text.count(old) >= 1
    with pytest.raises(ModelError) as caught:
        parse_loops(text.replace(old, new, 1))
    assert caught.value.where.startswith(f"{place}: ")
    assert why in caught.value.why
    assert caught.value.exit_code == 1


def test_accesses_are_tried_against_the_sizes_of_buffers() -> None:
    """Where the sizes of buffers are known, the last element that a loop reads or writes is
    inside."""
    program = parse_loops(BLOCKS)
    verify_loops(program, (44, 66, 50))
    for counts, buffer in (((43, 66, 50), 0), ((44, 65, 50), 1), ((44, 66, 49), 2)):
        with pytest.raises(InternalError) as caught:
            verify_loops(program, counts)
        assert f"an element of b{buffer}" in caught.value.why
        assert caught.value.where.startswith("statement ")


def test_accesses_behind_a_condition_are_tried_where_it_holds() -> None:
    """A guard excuses what would be outside without it; one that does not hold anywhere lets
    nothing be tried."""
    text = "kernel(b0: write f32) scratch 0 {{ parallel i in 9 grain 1 {{ if {} {{ b0[i - 1] = 0.0:f32 }} }} }}"
    for guard in ("(1 <= i)", "(i < 0)", "equal(b0[0], 0.0:f32):bool"):
        verify_loops(parse_loops(text.format(guard)), (8,))
    with pytest.raises(ModelError, match="accesses lie in their buffers"):
        parse_loops(text.format("(i < 5)"))


@given(st.sampled_from((ROWS, BLOCKS)), st.data())
@settings(max_examples=300)
def test_damaged_texts_are_refused_cleanly(text: str, data: st.DataObject) -> None:
    """A text with a piece cut, doubled or replaced is a program that verifies, or a ModelError with
    a line; nothing else."""
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, min(len(text), first + 12)))
    piece = data.draw(
        st.text(max_size=3)
        | st.sampled_from(
            ["{", "}", "(", "-", "99999999999999999999", "%m:f32", text[first:last] * 2]
        )
    )
    places: list[str] = []
    try:
        verify_loops(parse_loops(text[:first] + piece + text[last:]))
    except ModelError as error:
        places.append(error.where)
    assert all(place.startswith("line ") for place in places)


def test_a_loop_of_more_iterations_than_a_size_can_have() -> None:
    """Where it reads at its end is not known; nothing is refused, and nothing overflows."""
    verify_loops(
        parse_loops(
            "kernel(b0: f32, b1: write f32; n) scratch 0 {\n"
            "  parallel i in 8 grain 2 {\n"
            "    m: f32 = max over j in 99999999999999999999 {\n"
            "      yield b0[i*n + j]\n"
            "    }\n"
            "    b1[i] = %m:f32\n"
            "  }\n"
            "}\n"
        )
    )


@pytest.mark.parametrize(
    "inner",
    [
        "(" * 5000,
        "add(" * 5000,
        "if (i < 1) {" * 5000,
        "9" * 5000,
        "min(i, " * 5000,
        "i*" * 5000 + "i",
    ],
)
def test_hostile_texts_are_refused_cleanly(inner: str) -> None:
    """Deep nesting, endless numbers and products are ModelErrors, not crashes of the reader."""
    with pytest.raises(ModelError):
        parse_loops(
            f"kernel(b0: write f32) scratch 0 {{ parallel i in 9 grain 1 {{ b0[{inner}] = 0.0:f32 }} }}"
        )
    with pytest.raises(ModelError):
        parse_loops(
            f"kernel(b0: write f32) scratch 0 {{ parallel i in 9 grain 1 {{ x = {inner} }} }}"
        )
