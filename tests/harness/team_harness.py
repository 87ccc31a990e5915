"""Products that a team of units computes, as loop programs, and their runs on a GPU that a program
of Python stands for.

In: sizes, tiles. Out: programs, results, what was read. Not done here: models
(``test_cuda_models``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from tests.harness import cuda_harness
from tests.harness.codegen_harness import NUMPY, Array
from tests.harness.opencl_harness import DevicePrograms
from tests.ptx.fake_driver import Machine, installed
from tests.ptx.traffic import Traffic
from tests.unit.kernels.test_contraction import P, ceil_div, panels, product_program

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.machines import TEAM_MACHINE
from ingot_compiler.lowering.loops.loop_parts import RegisterTile, Team
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value
from ingot_compiler.lowering.loops.program import Contraction, LoopProgram
from ingot_runtime_devices.device import Device

UNITS = TEAM_MACHINE.team_units
LARGE = RegisterTile(8, 8)
_M, _N = symbol("m"), symbol("n")


@dataclass(frozen=True, slots=True)
class Case:
    """A product: sizes, the tile of a unit, whether B is in panels, which sizes are open, whether
    the epilogue is a long one; how far elements of A along the depth are apart; the element type of
    B."""

    rows: int
    columns: int
    depth: int
    tile: RegisterTile = LARGE
    is_packed: bool = True
    open_rows: bool = False
    open_depth: bool = False
    is_heavy: bool = False
    depth_pitch: int = 1
    open_pitch: bool = False
    b_dtype: DType = "f32"

    @property
    def scalars(self) -> dict[str, int]:
        """The sizes that are open."""
        found = (
            ("M", self.rows, self.open_rows),
            ("K", self.depth, self.open_depth),
            ("S", self.depth_pitch, self.open_pitch),
        )
        return {name: size for name, size, is_open in found if is_open}

    def arrays(self, seed: int = 0) -> list[Array]:
        """A, B, C, a bias, a residual."""
        draw = np.random.default_rng(seed)
        a, b = self.operands(seed)
        stored = panels(b) if self.is_packed else b
        apart = np.full((self.rows, self.depth, self.depth_pitch), np.nan, np.float32)
        apart[:, :, 0] = a
        result = np.full((self.rows, self.columns), np.nan, np.float32)
        bias = draw.standard_normal(self.columns).astype(np.float32)
        residual = draw.standard_normal((self.rows, self.columns)).astype(np.float32)
        return [apart, stored.copy(), result, bias, residual]

    def operands(self, seed: int = 0) -> tuple[Array, Array]:
        """The two matrices."""
        draw = np.random.default_rng(seed + 1)
        a = draw.standard_normal((self.rows, self.depth)).astype(np.float32)
        b = draw.standard_normal((self.depth, self.columns)).astype(NUMPY[self.b_dtype])
        return a, b


def alone_program(case: Case) -> LoopProgram:
    """The product, of units that each read their operands themselves."""
    rows: Dim = symbol("M") if case.open_rows else case.rows
    depth: Dim = symbol("K") if case.open_depth else case.depth
    pitch: Dim = symbol("S") if case.open_pitch else case.depth_pitch
    strides = None if pitch == 1 else (dim_mul(case.depth, pitch), pitch)
    made = product_program(
        TEAM_MACHINE, rows, case.columns, depth, case.tile, row_block=case.tile.rows,
        packed=case.is_packed, a_strides=strides,
        epilogue=_heavy(case.columns) if case.is_heavy else None,
    )  # fmt: skip
    buffers = list(made.buffers)
    buffers[1] = replace(buffers[1], dtype=case.b_dtype)
    return replace(made, buffers=tuple(buffers), scalars=tuple(case.scalars))


def team_program(case: Case) -> LoopProgram:
    """The product, its units in teams."""
    alone, tile = alone_program(case), case.tile
    (product,) = alone.body
    assert isinstance(product, Contraction)
    team, place = dim_floordiv(P, UNITS), dim_mod(P, UNITS)
    blocks = ceil_div(product.rows, tile.rows * UNITS)
    width = tile.vectors * TEAM_MACHINE.f32_lanes
    start = dim_mod(team, blocks) * (tile.rows * UNITS) + place * tile.rows
    product = replace(
        product,
        row_start=start,
        column_start=dim_floordiv(team, blocks) * width,
        team=Team(UNITS, place),
    )
    extent = ceil_div(case.columns, width) * blocks * UNITS
    return replace(alone, body=(product,), extent=extent)


def _heavy(columns: int) -> Value:
    """tanh(sum + bias) + residual."""
    biased = Apply("add", (Local("acc", "f32"), Load(3, _N)), "f32")
    bent = Apply("tanh", (biased,), "f32")
    return Apply("add", (bent, Load(4, _M * columns + _N)), "f32")


def on_gpu(
    program: LoopProgram, case: Case, lanes: tuple[int, ...] = (), traffic: Traffic | None = None
) -> Array:
    """The result of a program."""
    with installed(Machine(lanes=lanes)) as machine:
        machine.traffic = traffic
        return run_on(cuda_harness.open_programs([program]), program, case)


def run_on(device: Device, program: LoopProgram, case: Case) -> Array:
    """The result of a program that a device has as its only one."""
    arrays = case.arrays()
    assert DevicePrograms([program], device).run(0, arrays, case.scalars) == 0
    return arrays[2]
