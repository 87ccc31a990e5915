"""``ingot sbom``: a bill of materials that names every section, every material and every tool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hostile.tiny import tiny_contents, tree_entry

from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.ship.sbom import bill_of_materials
from ingot_runtime.format import header as head

Output = pytest.CaptureFixture[str]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "m.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def test_a_bundle_as_a_document(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """Every section but weights with its digest, references that resolve, the licence; the same
    bytes each time, to a file and to standard output."""
    out = tmp_path / "m.cdx.json"
    line = ["sbom", str(bundle), "--license", "Apache-2.0"]
    assert main([*line, "-o", str(out)]) == 0
    assert main(line) == 0
    assert capsys.readouterr().out == out.read_text()
    found = json.loads(out.read_text())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["licenses"] == [{"expression": "Apache-2.0"}]
    digests = {each["name"]: each["hashes"][0]["content"] for each in found["components"]}
    with opened(bundle) as source:
        for row in source.sections:
            if row.kind != head.WEIGHTS:
                assert digests[f"{head.kind_name(row.kind)} {row.id}"] == row.digest.hex()
    references = [each["bom-ref"] for each in found["components"]]
    assert len(set(references)) == len(references)
    assert found["dependencies"][0]["dependsOn"] == references


def test_materials_and_tools(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graph, weights and versions come from the lock; without a licence there is no field for it."""
    lock: dict[str, object] = {
        "graph": "ab" * 32,
        "weights": ["cd" * 32],
        "toolchain": {"ingot": "1.2", "zig": "x"},
    }

    def read_lock(*_: object) -> dict[str, object]:
        return lock

    monkeypatch.setattr("ingot_build_rules.tools.ship.sbom.read_record", read_lock)
    with opened(bundle) as source:
        made = bill_of_materials(source, None)
    assert [each["name"] for each in made["components"]][-2:] == ["graph", "weights 0"]
    assert [each["name"] for each in made["metadata"]["tools"]["components"]] == ["ingot"]
    assert "licenses" not in made["metadata"]["component"]


def test_what_has_no_bill(tmp_path: Path, capsys: Output) -> None:
    """A file that is no bundle."""
    (tmp_path / "m.txt").write_text("text")
    assert main(["sbom", str(tmp_path / "m.txt")]) == 1
    assert "error: " in capsys.readouterr().err
