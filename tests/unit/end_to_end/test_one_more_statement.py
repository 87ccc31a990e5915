"""One more block of loops is the six edits of CONTRIBUTING.md, no more."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tidy.source import ROOT

LOOPS = "compiler/ingot_compiler/lowering/loops/program.py"
PARTS = "compiler/ingot_compiler/lowering/loops/loop_blocks.py"
ORACLE = "compiler/ingot_compiler/oracles/interpret_blocks.py"
EMITTER = "compiler/ingot_compiler/codegen/emit/blocks/row_sum.py"
EMITTERS = "compiler/ingot_compiler/codegen/emit/kernel.py"
COSTS = "build_rules/ingot_build_rules/tools/view/kernel_costs.py"
TYPES = "build_rules/ingot_build_rules/making/values/artifact_types.py"

CLASS = '''
@dataclass(frozen=True, slots=True)
class RowSum:
    """The sum of each row below ``rows`` over ``depth``; the row is no vector variable."""

    TEXT: ClassVar = """row sum
  row=$row rows=$rows| depth=$depth in $depth_extent|
  a=$a[$a_index]
  $accumulator: f32 -> {
$epilogue}"""
    row: Variable
    rows: Dim
    a: BufferNumber
    a_index: Index
    accumulator: str
    epilogue: tuple[Statement, ...]
    depth: Variable = "k"
    depth_extent: Dim = 1


Block = RowSum | '''
NEW_PARTS = """        case RowSum():
            inside = scope.looped(block.row, block.rows)
            reading = inside.looped(block.depth, block.depth_extent)
            reads = ((reading, block.a, block.a_index),)
            return BlockParts((), reads, inside, ((block.accumulator, "f32"),))
        case Contraction():
"""
MEANING = """        case RowSum():
            return blocks.row_sum(block)
        case Contraction():
"""
MEANINGS = """    def row_sum(self, s: RowSum) -> Results:
        for place in _points(((s.row, s.rows),), self.at):
            places = _points(((s.depth, s.depth_extent),), place)
            yield place, {s.accumulator: sum(self._load(s.a, s.a_index, at) for at in places)}

    def contraction("""
CODE = """from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.statement import emit_statements
from ingot_compiler.lowering.loops.loop_values import Load
from ingot_compiler.lowering.loops.program import For, Reduce, RowSum


def emit_row_sum(context: EmitContext, s: RowSum) -> None:
    element = Load(s.a, s.a_index)
    total = Reduce(s.accumulator, "sum", s.depth, s.depth_extent, "f32", (), element)
    emit_statements(context, (For(s.row, s.rows, "serial", (total, *s.epilogue)),))
"""
COUNT = """            case RowSum():
                cells = trips * self.size(statement.rows)
                self.elements[statement.a] += cells * self.size(statement.depth_extent)
                self.statements(statement.epilogue, cells)
            case Contraction():
"""
IMPORTED = "    Contraction,\n", "    Contraction,\n    RowSum,\n"
EMITTED = "EMITTERS: Emitters = {\n", "EMITTERS: Emitters = {\n    RowSum: emit_row_sum,\n"
EMIT_IMPORT = (
    "from ingot_compiler.lowering.loops.kernel_of",
    (
        "from ingot_compiler.codegen.emit.blocks.row_sum import emit_row_sum\n"
        "from ingot_compiler.lowering.loops.kernel_of"
    ),
)
CASE = "        case Contraction():\n"
COUNTED = "            case Contraction():\n"
EDITS: dict[str, tuple[tuple[str, str], ...]] = {
    LOOPS: (("\nBlock = ", CLASS),),
    PARTS: (IMPORTED, (CASE, NEW_PARTS)),
    ORACLE: (IMPORTED, (CASE, MEANING), ("    def contraction(", MEANINGS)),
    EMITTER: (("", CODE),),
    EMITTERS: (IMPORTED, EMIT_IMPORT, EMITTED),
    COSTS: (IMPORTED, (COUNTED, COUNT)),
    TYPES: (("Require Store", "Require RowSum Store"),),
}
TEXT = """\
kernel(b0: f32, b1: write f32) scratch 0 {
  parallel p in 1 grain 1 {
    row sum
      row=r rows=3 depth=d in 4
      a=b0[d + 4*r]
      total: f32 -> {
      b1[r] = %total:f32
    }
  }
}
"""
USES = """
import sys
import numpy as np
from tests.harness.codegen_harness import RUNNABLE, interpret, run_program
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.values import MemoryBlobs, Values
from ingot_build_rules.making.values.artifact_types import ARTIFACT_TYPES
from ingot_build_rules.tools.view.evaluate_call import LaunchStep
from ingot_build_rules.tools.view.kernel_costs import kernel_costs
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.lowering.loops.kernel_of import kernel_of
from ingot_compiler.lowering.loops.nested import bound_names
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops

text = sys.argv[1]
program = parse_loops(text)
print("printed", print_loops(program) == text, print_loops(parse_loops(text)) == text)
short = text.replace(" depth=d in 4", "").replace("d + ", "")
print("defaults", print_loops(parse_loops(short)) == short)
print("bound", sorted(bound_names(program.body)))
for old, new in (("rows=3", "rows=n"), ("row=r", "row=p"), ("a=b0", "a=b7"), ("d in", "d of"), ("%total", "%sum")):
    try:
        parse_loops(text.replace(old, new))
    except ModelError as error:
        print(error.where.split(":")[0], error.why)
codec = Codec(ARTIFACT_TYPES)
content, _ = codec.encode(program)
print("kept", codec.decode(content, Values(MemoryBlobs(), codec)) == program)
a = np.arange(12, dtype=np.float32)
wanted = a.reshape(3, 4).sum(1)
for run in (interpret, run_program):
    arrays = [a, np.zeros(3, np.float32)]
    run(kernel_of(program), RUNNABLE[0], arrays, {})
    print(run.__name__, (arrays[1] == wanted).all())
launch = LaunchStep(0, 0, 0, (), (), 1)
print(kernel_costs(program, launch, (48, 12), 512).touched_bytes)
"""
SAID = """\
printed True True
defaults True
bound ['d', 'r']
line 3, column 5 symbols are bound before: expected a scalar, a loop's variable or an index, got n
line 3, column 5 names are bound once: expected a name that is new where it is bound, got p
line 3, column 5 buffers of the kernel: expected b0 to b1, got b7
line 4, column 28 expected "in", got 'of'
line 7, column 7 names of values: expected a value that is named before, got %sum, seen are total
kept True
interpret True
run_program True
60
"""


def test_a_block_is_six_edits(tmp_path: Path) -> None:
    """A block of a class, its parts, its meaning, its code, its costs and its name in the cache is
    printed, read, verified, interpreted, kept, compiled and counted."""
    for part in ("compiler", "build_rules"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    for name, changes in EDITS.items():
        path = tmp_path / name
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        for old, new in changes:
            assert old in source, f"{name}: {old}"
            source = source.replace(old, new, 1)
        path.write_text(source, encoding="utf-8")
    copied = (tmp_path / part for part in ("compiler", "build_rules"))
    paths = *copied, ROOT, ROOT / "artifacts", ROOT / "runtime"
    done = subprocess.run(
        [sys.executable, "-c", USES, TEXT],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == SAID, done.stderr


def test_the_page_names_them() -> None:
    """The table of CONTRIBUTING.md has a row for each edit: a new file and its line are one."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("\n## A block of loops: Transpose\n")[1].split("\n## ")[0]
    named = [
        re.findall(r"`((?:compiler|build_rules)/[^`]*\.py)`", line) for line in section.splitlines()
    ]
    rows = [
        files
        for line, files in zip(section.splitlines(), named, strict=True)
        if line[:1] == "|" and files
    ]
    assert len(rows) == 6
    transposed = {name.replace("row_sum", "transpose") for name in EDITS}
    assert {name for files in rows for name in files} == transposed
