"""What the objects of both packages say of themselves, in a line and in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.hostile.model_builder import relu_chain

import ingot
import ingot_runtime


@pytest.fixture(scope="module")
def bundle() -> ingot.Bundle:
    """A bundle for two targets."""
    return ingot.compile(relu_chain(), targets=["x86-64-v2", "x86-64-v3"])


def cells(shown: Any) -> list[list[str]]:
    """The table that a notebook shows, row by row; the title is the first."""
    table = ET.fromstring(shown._repr_html_())
    return [
        ["".join(row.itertext())] if row.tag == "caption" else [cell.text or "" for cell in row]
        for row in table
    ]


def test_a_bundle(bundle: ingot.Bundle) -> None:
    """Its call, targets, size and digest."""
    assert repr(bundle) == (
        "<ingot.Bundle test(x: f32[n, 3]) -> (y: f32[n, 512]); x86-64-v2, x86-64-v3; "
        f"{len(bundle.to_bytes()) / 1e6:.1f} MB, digest {bundle.digest[:16]}>"
    )
    title, *rows = cells(bundle)
    assert title == ["bundle of test"]
    assert rows[0] == ["inputs", "x: f32[n, 3]"]
    assert rows[-1] == ["digest", bundle.digest]


def test_a_session(bundle: ingot.Bundle) -> None:
    """Its call, and what runs it; a closed one, too."""
    session = ingot_runtime.load(bundle.to_bytes(), variant="x86-64-v2")
    with session:
        shown = repr(session)
        assert shown == (
            "<ingot_runtime.Session test(x: f32[n, 3]) -> (y: f32[n, 512]); target x86-64-v2, "
            f"threads 1, digest {bundle.digest[:16]}>"
        )
        assert cells(session) == [
            ["session of test"],
            ["inputs", "x: f32[n, 3]"],
            ["outputs", "y: f32[n, 512]"],
            ["target", "x86-64-v2"],
            ["threads", "1"],
            ["digest", bundle.digest[:16]],
        ]
        assert cells(session.inputs[0]) == [["x"], ["f32", "n, 3"]]
    assert repr(session) == shown.replace("threads 1", "threads 0 (closed)")


def test_names_of_others_are_only_shown() -> None:
    """A model cannot write markup."""
    model = relu_chain()
    model.graph.name = "<script>&"
    bundle = ingot.compile(model, targets="x86-64-v2")
    with ingot_runtime.load(bundle.to_bytes()) as session:
        tables: list[Any] = [bundle, session]
        for shown in tables:
            assert "<script>&(" in repr(shown)
            assert "of &lt;script&gt;&amp;</caption>" in shown._repr_html_()


def test_a_report(tmp_path: Path) -> None:
    """How many ended in which way, and a row for each."""
    (tmp_path / "m.onnx").write_bytes(relu_chain().SerializeToString())
    project = ingot.Project(tmp_path)
    project.model("m", "m.onnx")
    project.bundle("m", "m", targets=["x86-64-v2"])
    report = project.build(cache=tmp_path / "cache")
    assert repr(report).startswith("<ingot.Report 1 built; ")
    assert " actions ran, 0 from the cache, " in repr(report)
    (_, row) = cells(report)
    (result,) = report.results
    assert row == ["m", "built", result.path, result.root[:16]]
    assert repr(project.build(cache=tmp_path / "cache")).startswith("<ingot.Report 1 unchanged; ")
