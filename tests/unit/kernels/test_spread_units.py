"""Units of machines that run thousands of them: the same results in any order, from more units."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, Array, run_program

from ingot_compiler.ir.dims import substitute
from ingot_compiler.kernels.spread_units import spread_units
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.lowering.loops.verify_loops import find_loop_problems

LANES = 8
_DEPTHWISE = """\
kernel(b0: f32, b1: f32, b2: write f32) scratch 0 {{
  parallel p in 5 grain 1 {{
    depthwise
      x=x x_extent={pixels} channel=channel channels={channels} pixels=4
      taps=(tap0 in 3, tap1 in 3)
      a=b0[channel + {row}*p + {row}*tap0 + {channels}*tap1 + {channels}*x]
      w=b1[channel + {tap_row}*tap0 + {channels}*tap1]
      acc: f32 -> {{
      b2[channel + {channels}*x + {result}*p] = %acc:f32
    }}
  }}
}}
"""
_ALONE = """\
kernel(b0: write f32; n) scratch 0 {
  parallel p in 3 grain 1 {
    vector j in n {
      b0[n*p + j] = add(b0[n*p + j], 1.0:f32):f32
    }
  }
}
"""
_HALO = """\
kernel(b0: f32, b1: write f32) scratch 0 {
  parallel p in 4 grain 1 {
    v = b0[p]
    if (1 <= p) {
      vector i in 5 {
        b1[100*p + i] = %v:f32
      }
      vector j in 20 {
        b1[100*p + j + 70] = %v:f32
      }
    }
    if (p < 1) {
      vector k in 100 {
        b1[100*p + k] = %v:f32
      }
    }
  }
}
"""
_READ_AGAIN = """\
kernel(b0: write f32) scratch 0 {
  parallel p in 2 grain 1 {
    v = b0[64*p]
    vector j in 64 {
      b0[64*p + j] = %v:f32
    }
  }
}
"""
_SUM = """\
kernel(b0: f32, b1: write f32) scratch 0 {
  parallel p in 2 grain 1 {
    total: f32 = sum lanes over i in 64 {
      yield b0[64*p + i]
    }
    vector j in 64 {
      b1[64*p + j] = %total:f32
    }
  }
}
"""


def _depthwise(channels: int, pixels: int) -> tuple[LoopProgram, list[Array]]:
    row = (pixels + 2) * channels
    text = _DEPTHWISE.format(
        channels=channels, pixels=pixels, row=row, tap_row=3 * channels, result=pixels * channels
    )
    sizes = 7 * row, 9 * channels, 5 * pixels * channels
    return parse_loops(text), [_numbers(size) for size in sizes]


def _numbers(count: int) -> Array:
    return np.random.default_rng(count).standard_normal(count).astype(np.float32)


def _units(program: LoopProgram, scalars: Mapping[str, int]) -> int:
    extent = substitute(program.extent, dict(scalars))
    assert isinstance(extent, int)
    return extent


def _expect_same(
    program: LoopProgram, arrays: list[Array], scalars: Mapping[str, int] | None = None
) -> int:
    """The same bits from smaller units, the last ones first; how many there are."""
    made, given = spread_units(program, LANES), scalars or {}
    assert not list(find_loop_problems(made))
    expected, found = ([array.copy() for array in arrays] for _ in range(2))
    run_program(program, RUNNABLE[0], expected, given)
    units = _units(made, given)
    thirds = [units * third // 3 for third in range(4)]
    for first, last in reversed(list(pairwise(thirds))):
        run_program(made, RUNNABLE[0], found, given, first, last)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    return units


@pytest.mark.parametrize(
    ("channels", "pixels", "units"),
    [(32, 12, 5 * 4 * 12), (24, 7, 5 * 3 * 7), (20, 6, 5 * 6), (7, 1, 5)],
)
def test_a_row_of_a_depthwise_convolution(channels: int, pixels: int, units: int) -> None:
    """Channels in whole vectors where these divide them, pixels alone."""
    assert _expect_same(*_depthwise(channels, pixels)) == units


@pytest.mark.parametrize("count", [1, 8, 63, 700])
def test_one_loop_may_change_what_it_reads(count: int) -> None:
    """Its iterations do not depend on each other; the number of units is that of the vectors."""
    assert _expect_same(parse_loops(_ALONE), [_numbers(3 * count)], {"n": count}) >= 3


def test_loops_of_several_lengths() -> None:
    """Each is cut by the vectors of the longest one; shorter ones end before."""
    assert _expect_same(parse_loops(_HALO), [_numbers(4), _numbers(400)]) == 4 * 13


@pytest.mark.parametrize("text", [_READ_AGAIN, _SUM])
def test_what_depends_on_others_stays(text: str) -> None:
    """A value that another unit would have overwritten; a sum that each would compute again."""
    program = parse_loops(text)
    assert spread_units(program, LANES) == program


def test_enough_units_stay() -> None:
    """Nothing is cut where there are thousands of units."""
    program = parse_loops(_ALONE.replace("p in 3", "p in 5000"))
    assert spread_units(program, LANES) == program
