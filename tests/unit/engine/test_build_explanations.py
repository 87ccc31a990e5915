"""Explanations of a build: each action that ran has a line that names an ingredient, what it was
and is, and where it comes from."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.harness.build_harness import (
    Workbench,
    chain,
    convolution,
    model_of,
    new_weight,
    ran,
    with_external,
)

from ingot_build_rules.engine.actions.key import Ingredient
from ingot_build_rules.engine.events.differ import differences
from ingot_build_rules.engine.events.explain import explain, name_of
from ingot_build_rules.engine.events.trace_file import TargetTrace, TracedAction
from ingot_build_rules.tools.workspace.build_report import Report
from ingot_build_rules.tools.workspace.difference_text import short_texts

FROM_OUTSIDE = re.compile(
    r"(source|file|code|tool|target|options|planner|shapes|place|devices|toolchain)\b"
)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A project over the cache that all tests share, with a convolution as model ``a``."""
    bench = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    bench.project({"a": convolution()})
    bench.build()
    return bench


def check_complete(report: Report) -> list[str]:
    """Every action of bundle ``a`` that ran is explained; return the lines."""
    assert ran(report)
    lines = list(report.explanations["a"])
    actions = [item for item in report.results[0].actions if item.status == "ran"]
    assert len(actions) == sum(ran(report).values())
    for item in actions:
        heads = (f"{name_of(item)}: ", f"{name_of(item)} is new: ")
        found = [line for line in lines if line.startswith(heads) and " -> " in line]
        assert found, item
        for line in found:
            rest = line.removeprefix(heads[0]).removeprefix(heads[1])
            assert "made by " in rest or FROM_OUTSIDE.match(rest), line
    return lines


@pytest.mark.broad
def test_attribute(bench: Workbench) -> None:
    """A stride: the file with both digests, the node, the attribute with both values, every
    producer."""
    before = bench.build().results[0].sources[0][1]

    def stride(model: onnx.ModelProto) -> None:
        next(item for item in model.graph.node[0].attribute if item.name == "strides").ints[:] = [
            2,
            2,
        ]

    bench.edit("a", stride)
    report = bench.build()
    after = report.results[0].sources[0][1]
    lines = check_complete(report)
    assert (
        lines[0]
        == f"import_model: source changed {before[:12]} -> {after[:12]}, file {bench.folder / 'a.onnx'}"
    )
    assert lines[1] == "  node /stem/Conv (Conv), strides[0]: 1 -> 2"
    assert any(
        line.startswith("infer_types: model changed") and line.endswith("made by import_model")
        for line in lines
    )
    assert [line for line in lines if line.startswith("  ")] == [
        lines[1],
        "  node /stem/Conv (Conv), strides[1]: 1 -> 2",
    ]


def test_weight(bench: Workbench) -> None:
    """A tensor by its name, with both digests."""
    bench.edit("a", new_weight)
    lines = check_complete(bench.build())
    assert re.fullmatch(r"  tensor 'w' [0-9a-f]{12} -> [0-9a-f]{12}", lines[1])
    assert any(line.startswith("pack_constant (w): leaves changed ") for line in lines)


def test_documentation(bench: Workbench) -> None:
    """A doc string: said to decide nothing."""
    bench.edit("a", lambda model: setattr(model, "doc_string", "new"))
    assert (
        check_complete(bench.build())[1]
        == "  nothing in it that decides a result (doc strings, metadata)"
    )


def test_node_name(bench: Workbench) -> None:
    """A node's name, old and new."""
    bench.edit("a", lambda model: setattr(model.graph.node[1], "name", "/stem/Activation"))
    assert "  name nodes[1][0]: /stem/Relu -> /stem/Activation" in check_complete(bench.build())


def test_op(bench: Workbench) -> None:
    """Another op in a node's place; its kernel stands for the one that it was."""
    bench.edit("a", lambda model: setattr(model.graph.node[1], "op_type", "Sigmoid"))
    lines = check_complete(bench.build())
    assert "  node /stem/Relu (Sigmoid), op: Relu -> Sigmoid" in lines
    assert not any(" is new: " in line for line in lines)


def test_new_layer(bench: Workbench) -> None:
    """What was not there before: named, and its parts with their producers."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    bench.project({"a": chain([4, 8, 13, 4])})
    lines = check_complete(bench.build())
    assert "  node /layer2/Gemm (Gemm) is new" in lines
    assert any(
        re.match(r"lower \(.*layer2.*\) is new: group nothing -> \w+, made by fuse", line)
        for line in lines
    )


def test_external_data(bench: Workbench) -> None:
    """A file beside the model and the tensor in it."""
    bench.project({"a": with_external(convolution(), bench.folder, "parts/a.bin")})
    bench.build()
    path = bench.folder / "parts/a.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    lines = check_complete(bench.build())
    assert re.fullmatch(
        rf"import_model: file {path} changed [0-9a-f]{{12}} -> [0-9a-f]{{12}}", lines[0]
    )
    assert lines[1].startswith("  tensor 'w' ")


def test_options(bench: Workbench) -> None:
    """Options with both values, without all that stayed."""
    asked = ", asked for by the project"
    lines = check_complete(bench.build(config=["bundle.a.planner=hill_climb"]))
    assert f"plan_memory (x86-64-v3): planner changed best -> hill_climb{asked}" in lines
    assert f"bundle: options changed planner='best' -> planner='hill_climb'{asked}" in lines
    bench.build()
    lines = check_complete(bench.build(config=["model.a.shape.x=1x3x8x8"]))
    assert f"import_model: shapes changed () -> ((('x', '1x3x8x8'),),){asked}" in lines


def test_sizes_in_a_constant(bench: Workbench) -> None:
    """A shape that the graph was read from: the tensor by its name."""

    def reshape(*shape: int) -> onnx.ModelProto:
        sizes = numpy_helper.from_array(np.array(shape, np.int64), "shape")
        return model_of(
            [helper.make_node("Reshape", ["x", "shape"], ["y"], name="/r")],
            [2, 6],
            ["a", "b"],
            [sizes],
        )

    bench.project({"a": reshape(3, 4)})
    bench.build()
    bench.project({"a": reshape(4, 3)})
    lines = check_complete(bench.build())
    assert any(
        re.match(r"infer_types: tensor 'shape' changed \w+ -> \w+, made by import_model", line)
        for line in lines
    )


@pytest.mark.broad
def test_lost_cache(bench: Workbench, tmp_path: Path) -> None:
    """Nothing changed and the cache is empty: that is said, with the key."""
    (bench.folder / "dist/a.ingot").unlink()
    bench.cache = tmp_path / "empty"
    lines = bench.build().explanations["a"]
    assert lines[0].startswith("import_model: the cache had no result for key ")


def test_first_build_is_one_line(bench: Workbench) -> None:
    """There is nothing to compare a first build with."""
    bench.project({"b": chain([3, 5])})
    (line,) = bench.build("b").explanations["b"]
    assert re.fullmatch(r"first build here: \d+ actions had no result in the cache", line)


def test_explanation_is_kept(bench: Workbench) -> None:
    """A build that runs nothing keeps the explanation of the last one that did."""
    from ingot_build_rules.engine.events.trace_file import read_trace
    from ingot_build_rules.tools.workspace.state import trace_path

    bench.edit("a", lambda model: setattr(model.graph.node[1], "op_type", "Tanh"))
    lines = bench.build().explanations["a"]
    (bench.folder / "dist/a.ingot").unlink()
    assert bench.build().explanations == {}
    trace = read_trace(trace_path(str(bench.folder), "a"))
    assert trace is not None
    assert trace.explanation == lines


def test_code_tables_are_kept_once(bench: Workbench) -> None:
    """One table for all bundles, which only the code of today is in."""
    bench.project({"a": convolution(), "b": chain([4, 8, 4])})
    bench.write(".ingot/code/" + "0" * 64, b"of yesterday")
    bench.build()
    assert len(list((bench.folder / ".ingot/code").iterdir())) == 1


def action(rule: str, label: str, status: str, **ingredients: str) -> TracedAction:
    """Return an action with one artifact of its own name."""
    parts = tuple(Ingredient(name, digest, "", (digest,)) for name, digest in ingredients.items())
    key = f"{rule} {label} {ingredients}"
    return TracedAction(rule, label, key, status, 0.0, parts, (), (f"made by {label}",), (), "")


def test_counterparts() -> None:
    """Equal labels first, then labels that are alike; what is left is new."""
    old = TargetTrace(
        (action("r", "layer 1 relu", "ran", x="1"), action("r", "layer 2 relu", "ran", x="2"))
    )
    new = TargetTrace(
        (
            action("r", "layer 2 tanh", "ran", x="3"),
            action("r", "layer 1 relu", "ran", x="4"),
            action("r", "unlike", "ran", x="made by layer 1 relu"),
        )
    )
    first, second, third = explain(old, new, {})
    assert (first.kind, second.kind, third.kind) == ("changed", "changed", "new")
    assert [change.old for item in (first, second, third) for change in item.changes] == [
        "2",
        "1",
        "",
    ]
    assert third.changes[0].maker == "r (layer 1 relu)"


def test_files_of_loaded_code_are_told_with_it() -> None:
    """Each ingredient of code has the files of its own; what has the name of a rule and is none of
    them has none."""
    before = action("r", "", "ran", **{"code": "1", "code p.a": "1", "names": "1"})
    after = action("r", "", "ran", **{"code": "2", "code p.a": "2", "names": "2"})
    files = {name: ((f"{name}.py", "1", "2"),) for name in ("r", "p.a", "p.b", "names")}
    (reason,) = explain(TargetTrace((before,)), TargetTrace((after,)), files)
    assert {change.name: change.files for change in reason.changes} == {
        "code": files["r"], "code p.a": files["p.a"], "names": (),
    }  # fmt: skip
    (new,) = explain(TargetTrace(()), TargetTrace((after,)), files)
    assert [change.name for change in new.changes] == ["names"], (
        "code that nothing was made by before is no change"
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("best", "hill_climb", ("best", "hill_climb")),
        ("same", "same", None),
        ("", "", None),
        (
            f"A(x=1, y=(1, 2, 3), z={'0' * 99})",
            f"A(x=1, y=(1, 5, 3), z={'0' * 99})",
            ("y=(1, 2, 3)", "y=(1, 5, 3)"),
        ),
        (f"A(x=1, z={'0' * 99})", f"A(x=2, z={'0' * 99})", ("x=1", "x=2")),
        ("f" * 64, "e" * 64, ("f" * 12, "e" * 12)),
    ],
)
def test_texts_are_cut_to_what_differs(old: str, new: str, told: tuple[str, str] | None) -> None:
    """Long values show their differing field; digests are shortened."""
    assert short_texts(old, new) == told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ((1, 2, 3), (1, 9, 3), [((1,), 2, 9)]),
        ((1, 2, 3), (1, 3), [((1,), 2, None)]),
        ((1, 3), (1, 2, 3), [((1,), None, 2)]),
        ((1, 2), (3, 4, 5), [((), (1, 2), (3, 4, 5))]),
        (((1,), (2,)), ((3,), (4,), (5,)), [((), "2 elements", "3 elements")]),
        ({"a": 1, "b": 2}, {"a": 1, "c": 3}, [(("b",), 2, None), (("c",), None, 3)]),
        (1, "1", [((), 1, "1")]),
        ((), (), []),
    ],
)
def test_differences(old: object, new: object, told: list[tuple[object, object, object]]) -> None:
    """Leaves by their path; what was only put in or taken out shifts nothing."""
    assert [(item.path, item.old, item.new) for item in differences(old, new)] == told
