"""Stage 7 of a group as text: steps and kernels are read back, or refused where they stand, by the
rule that they break."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.lowering_harness import BEST, Builder, compile_graph

from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.text.loops_file import read_groups
from ingot_compiler.backends.host.hooks import lower_group
from ingot_compiler.ir.errors import InternalError, ModelError
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.lowering.groups.group_steps import GroupLaunch, GroupSteps, one_launch
from ingot_compiler.lowering.groups.parse_lowered import parse_lowered
from ingot_compiler.lowering.groups.print_lowered import print_lowered
from ingot_compiler.lowering.groups.verify_lowered import verify_lowered
from ingot_compiler.lowering.loops.parse_loops import parse_loops

COPY = "kernel(b0: f32, b1: write f32) scratch 0 {\n  parallel p in 4 grain 1 {\n    b1[p] = b0[p]\n  }\n}\n"
SUM = """\
kernel(b0: f32, b1: f32, b2: write f32; n) scratch 0 {
  parallel p in n grain 1 {
    b2[p] = add(b0[p], b1[p]):f32
  }
}
"""
STEPS = f"""\
group {{
  workspace b2: f32 x 4*s0
  workspace b3: f32 x 4
  launch 0(b0, b2)
  launch 1(b2, b3)
  if min(1, n) {{
    launch 2(b0, b2, b1)
  }} else {{
    if s0 {{
      launch 2(b3, b0, b1)
    }} else {{
      launch 0(b0, b1)
    }}
  }}
}}
{COPY}{COPY}{SUM}"""


def test_every_step_is_read_back() -> None:
    """Workspace, launches and choices."""
    lowered = parse_lowered(STEPS)
    assert print_lowered(lowered) == STEPS
    assert len(lowered.steps.workspace) == 2
    assert lowered.steps.group_buffer_count == 2
    verify_lowered(lowered)


def test_one_launch_is_the_text_of_its_kernel() -> None:
    """Nothing is said of steps where there is nothing to say; the same buffers in another order are
    steps."""
    lowered = parse_lowered(COPY)
    assert lowered == one_launch(parse_loops(COPY))
    assert print_lowered(lowered) == COPY
    turned = parse_lowered("group {\n  launch 0(b1, b0)\n}\n" + COPY)
    assert print_lowered(turned) != COPY
    assert print_lowered(parse_lowered("group {\n  launch 0(b0, b1)\n}\n" + COPY)) == COPY


@pytest.mark.parametrize(
    ("old", "new", "place", "why"),
    [
        ("group {", "group (", "line 1, column 7", 'expected "{"'),
        ("workspace b2", "workspace b4", "line 2, column 3", "from b2 on, which launches name, got b4"),
        ("workspace b3: f32 x 4\n", "workspace b3: f32 x 4\n  workspace b4: f32 x 4\n", "line 2, column 3", "got b2"),
        ("launch 0(b0, b2)", "start 0(b0, b2)", "line 4, column 3", "expected one of launch if, got 'start'"),
        ("launch 0(b0, b2)", "launch 0(b0)", "line 4, column 3", "buffers of a launch: expected 2 that differ, got b0"),
        ("launch 0(b0, b2)", "launch 0(b2, b2)", "line 4, column 3", "expected 2 that differ, got b2, b2"),
        ("launch 0(b0, b2)", "launch -1(b0, b2)", "line 4, column 3", "expected a kernel below 3, got -1"),
        ("launch 0(b0, b2)", "launch 0(b3, b2)", "line 4, column 3", "workspace: expected a launch before it that writes it"),
        ("workspace b2: f32", "workspace b2: i32", "line 4, column 3", "element types of buffers: expected b2 of i32, got f32"),
        ("if s0", "if q(s0)", "line 9, column 8", "expected a function out of"),
        ("  } else {\n      launch 0", "  }\n      launch 0", "line 12, column 7", 'expected "else"'),
        ("launch 0(b0, b1)\n", "launch 0(b0, b1)\n launch 4(b0, b1)\n", "line 31, column 2", 'expected "kernel"'),
        (SUM, "", "line 25, column 2", 'expected "kernel", got the end of the text'),
        (SUM, SUM + SUM, "line 31, column 1", "expected the end of the text, got 'kernel'"),
    ],
)  # fmt: skip
def test_errors_name_line_column_and_rule(old: str, new: str, place: str, why: str) -> None:
    """Each thing that can be wrong with steps is refused where it stands."""
    assert old in STEPS
    with pytest.raises(ModelError) as caught:
        parse_lowered(STEPS.replace(old, new, 1))
    assert why in caught.value.why
    assert caught.value.where.startswith(f"{place}: ")


def test_what_one_way_does_is_not_there_behind_both() -> None:
    """Workspace that only one way of a choice writes cannot be read behind it; what both write
    can."""
    text = "group {{\n  workspace b2: f32 x 4\n  if n {{\n{}  }} else {{\n{}  }}\n  {}\n}}\n{}"
    write, read = "launch 0(b0, b2)\n", "launch 0(b2, b1)"
    parse_lowered(text.format(write, write, read, COPY))
    for then, otherwise in ((write, ""), ("", write)):
        with pytest.raises(ModelError, match="a launch before it that writes it, on every way"):
            parse_lowered(text.format(then, otherwise, read, COPY))


def test_steps_are_compared_with_their_group() -> None:
    """Operands are only read, results are written on every way, buffers have the group's types."""
    builder = Builder([TensorType("f32", (4,))])
    fused = compile_graph(builder.finish([builder.op("neg", 0)])).fused
    group = launches_of(fused)[0].group
    lowered = lower_group(group, str(BEST))
    verify_lowered(lowered, group, fused.buffers)
    turned = replace(lowered, steps=GroupSteps((GroupLaunch(0, (1, 0)),)))
    longer = replace(lowered, steps=replace(lowered.steps, workspace=(("f32", 4),)))
    others = tuple(replace(buffer, dtype="i32") for buffer in fused.buffers)
    for made, buffers, why in (
        (
            turned,
            fused.buffers,
            "operands of a group: expected a kernel that only reads it, got b0 written",
        ),
        (replace(lowered, programs=()), fused.buffers, "expected a kernel below 0, got 0"),
        (replace(lowered, programs=lowered.programs * 2), fused.buffers, "launches of a group"),
        (lowered, others, "element types of buffers: expected b0 of i32, got f32"),
        (
            replace(longer, steps=replace(longer.steps, steps=(GroupLaunch(0, (0, 2)),))),
            fused.buffers,
            "result b",
        ),
    ):
        with pytest.raises(InternalError) as caught:
            verify_lowered(made, group, buffers)
        assert why in caught.value.why


def test_a_text_of_groups_is_read_and_printed_again(tmp_path: Path) -> None:
    """``--from loops`` takes steps, too: its text is the same, its kernels are all of them."""
    text, found = tmp_path / "l.txt", tmp_path / "out.txt"
    text.write_text(f'target "x86-64-v3"\n{STEPS}{COPY}')
    assert (
        main(["compile", str(text), "--from", "loops", "--to", "loops", "-o", str(found), "-q"])
        == 0
    )
    assert found.read_text() == text.read_text()
    assert (
        main(["compile", str(text), "--from", "loops", "--to", "library", "-o", str(found), "-q"])
        == 0
    )
    assert len(found.read_text().splitlines()) == 1 + 3 + 1
    assert [len(group.lowered.programs) for group in read_groups(text.read_text(), ())] == [3, 1]


@given(st.data())
@settings(max_examples=100)
def test_damaged_texts_are_refused_cleanly(data: st.DataObject) -> None:
    """A text with a piece cut, doubled or replaced is a group that verifies, or a ModelError with a
    line; nothing else."""
    first = data.draw(st.integers(0, STEPS.index("kernel")))
    last = data.draw(st.integers(first, first + 12))
    piece = data.draw(
        st.sampled_from(["", "{", "}", "-", "b9", "if n {", "999999999", STEPS[first:last] * 2])
    )
    places: list[str] = []
    try:
        verify_lowered(parse_lowered(STEPS[:first] + piece + STEPS[last:]))
    except ModelError as error:
        places.append(error.where)
    assert all(place.startswith("line ") for place in places)
