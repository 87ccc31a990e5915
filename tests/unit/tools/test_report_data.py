"""What a report says of a bundle: the call, the graph, memory, costs; each beside an oracle."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from tests.hostile.model_builder import model, value

import ingot
import ingot_runtime
from ingot_build_rules.tools.view.evaluate_call import CopyStep, LaunchStep
from ingot_build_rules.tools.view.layered_layout import layered_layout
from ingot_build_rules.tools.view.memory_timeline import memory_timeline
from ingot_build_rules.tools.view.report_data import report_data
from ingot_build_rules.tools.view.report_page import report_page
from ingot_build_rules.tools.view.report_subject import ReportSubject, read_subject
from ingot_compiler.ir.errors import UserError

ROWS, WIDTH, COLUMNS = 9, 40, 24
HOSTILE = "</script><script>alert(1)</script>"


def matmul_chain(rows: int | str = ROWS) -> bytes:
    """x @ w -> gelu-like -> @ v, and a branch that skips the second product."""
    rng = np.random.default_rng(0)
    constants = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, rng.standard_normal(shape).ravel())
        for name, shape in (("w", (WIDTH, COLUMNS)), ("v", (COLUMNS, COLUMNS)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name=HOSTILE),
        helper.make_node("Softmax", ["a"], ["b"], name="soft", axis=-1),
        helper.make_node("MatMul", ["b", "v"], ["c"], name="second"),
        helper.make_node("Add", ["c", "a"], ["y"], name="skip"),
    ]
    made = model(nodes, [value("x", [rows, WIDTH])], [value("y", [rows, COLUMNS])])
    made.graph.initializer.extend(constants)
    return bytes(made.SerializeToString())


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the chain, with two devices."""
    path = tmp_path_factory.mktemp("report") / "m.ingot"
    ingot.compile(matmul_chain(), devices={"acc": "null"}, place={"second": "acc"}).save(path)
    return path


@pytest.fixture(scope="module")
def subject(bundle: Path) -> ReportSubject:
    """The bundle, evaluated."""
    return read_subject(bundle, None, {})


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_the_call_is_what_the_vm_does(tmp_path: Path, rows: int) -> None:
    """Launches, and the sizes of their buffers, as the vm sees them; shapes as the run gives."""
    ingot.compile(matmul_chain("rows")).save(tmp_path / "m.ingot")
    subject = read_subject(tmp_path / "m.ingot", None, {"x": (rows, WIDTH)})
    seen: list[tuple[int, str, list[int]]] = []
    with ingot_runtime.load(tmp_path / "m.ingot", executor="vm") as session:
        session.observe(
            lambda launch, kernel, _, buffers: seen.append(
                (launch, kernel, [buffer.nbytes for buffer in buffers])
            )
        )
        y = session.run({"x": np.zeros((rows, WIDTH), np.float32)})["y"]
    steps = [step for step in subject.call.steps if isinstance(step, LaunchStep)]
    assert seen == [
        (step.ordinal, subject.symbol(step), [subject.size_bytes(span) for span in step.buffers])
        for step in steps
    ]
    assert subject.call.output_shapes == {0: y.shape}
    assert subject.call.problem == ""


def test_sizes_that_main_refuses(tmp_path: Path) -> None:
    """The page says what `main` would say."""
    ingot.compile(matmul_chain("rows")).save(tmp_path / "m.ingot")
    refused = read_subject(tmp_path / "m.ingot", None, {"x": (3, WIDTH + 1)})
    assert "expected 40" in refused.call.problem


def test_operations_of_matrix_products(subject: ReportSubject) -> None:
    """Two per multiply-add, and at most some more for what is fused to it."""
    rows = {
        row["nodes"][0][0]: row for row in report_data(subject, None)["launches"] if row["nodes"]
    }
    first, second = 2 * ROWS * WIDTH * COLUMNS, 2 * ROWS * COLUMNS * COLUMNS
    assert rows[HOSTILE]["operations"] == first
    assert second <= rows["second"]["operations"] <= second + 2 * ROWS * COLUMNS
    touched = 4 * (ROWS * WIDTH + WIDTH * COLUMNS + ROWS * COLUMNS)
    assert touched * 0.9 <= rows[HOSTILE]["bytes"] <= touched * 1.5  # columns are padded


def test_the_graph_is_the_flow_of_the_model(subject: ReportSubject) -> None:
    """x feeds the first product; the branch has two readers; copies stand between devices."""
    data = report_data(subject, None)
    vertices: list[dict[str, Any]] = data["vertices"]
    edges: list[tuple[int, int]] = [(source, target) for source, target, *_ in data["edges"]]
    called = [_called(vertex, data["launches"]) for vertex in vertices]
    flow = {(called[source], called[target]) for source, target in edges}
    assert ("input x", HOSTILE) in flow
    assert (HOSTILE, "soft") in flow
    assert ("soft", "copy") in flow
    assert ("copy", "second") in flow
    assert any(target == "output y" for _, target in flow)
    assert all(vertices[source]["layer"] < vertices[target]["layer"] for source, target in edges)


def _called(vertex: dict[str, Any], launches: list[dict[str, Any]]) -> str:
    if "step" not in vertex:
        return f"{vertex['kind']} {vertex['name']}"
    row = launches[int(vertex["step"])]
    return str(row["nodes"][0][0]) if row["nodes"] else str(row["step"])


def test_memory_in_use_at_once_does_not_overlap(subject: ReportSubject) -> None:
    """Bytes that are alive at the same step have one owner, and lie in the workspace."""
    found = memory_timeline(subject.call, subject.writes)
    lives = [life for life in found if life.span.origin == "workspace"]
    assert len(lives) >= 2
    for life in lives:
        room = subject.call.workspace_bytes[life.span.device]
        assert 0 <= life.span.offset <= life.span.offset + life.span.size_bytes <= room
    for one, other in itertools.combinations(lives, 2):
        together = one.first < other.first <= one.last and one.span.device == other.span.device
        apart = (
            one.span.offset + one.span.size_bytes <= other.span.offset
            or other.span.offset + other.span.size_bytes <= one.span.offset
        )
        assert apart or not together


def test_copies_are_steps(subject: ReportSubject) -> None:
    """Each copy of the program is one, with its bytes."""
    copies = [step for step in subject.call.steps if isinstance(step, CopyStep)]
    told = subject.described["device_use"][subject.target]["copies"]
    assert [step.size_bytes for step in copies] == [copy["size_bytes"] for copy in told]
    assert copies


def test_unknown_variant(bundle: Path) -> None:
    """The error names those that there are."""
    with pytest.raises(UserError, match="no variant 'x86-64-v9'"):
        read_subject(bundle, "x86-64-v9", {})


def test_the_page_is_closed(subject: ReportSubject) -> None:
    """Nothing of a model's names is markup, nothing is fetched, and equal data give equal pages."""
    page = report_page(report_data(subject, None))
    assert HOSTILE not in page
    assert page.count("<script") == 2
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "default-src 'none'" in page
    assert page == report_page(report_data(subject, None))


@pytest.mark.broad
@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_layout(count: int, random: Any) -> None:
    """Edges lead down and have a bend in each layer that they pass; nothing stands in one place."""
    pairs = {tuple(sorted(random.sample(range(count), 2))) for _ in range(count) if count > 1}
    edges = sorted((int(a), int(b)) for a, b in pairs)
    layout = layered_layout(count, edges)
    places = [*layout.vertices, *itertools.chain.from_iterable(layout.bends)]
    assert len(set(places)) == len(places)
    for (source, target), bends in zip(edges, layout.bends, strict=True):
        layers = range(layout.vertices[source][0], layout.vertices[target][0])
        assert [layer for layer, _ in bends] == list(layers)[1:]
        assert layers
