"""One more field of a bundle is one row: reader, writer, manifest, both loaders and the page follow."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from tests import c_loader
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.unit.runtime import test_format_page

from ingot_artifacts.bundle import write
from ingot_artifacts.bundle.contents import BundleContents
from ingot_artifacts.bundle.plan_of import plan_of
from ingot_build_rules.tools.export.abi_header import abi_header
from ingot_build_rules.tools.export.loader_sources import loader_sources
from ingot_runtime.format import header
from ingot_runtime.format.plan import BundlePlan, DevicePlan
from ingot_runtime.format.schema import Row
from ingot_runtime.format.source import open_file, read_plan

LATER = header.VERSION_MINOR + 1
ROW = Row("word", 0, 64, default=0, since=LATER)  # in the body of its class: cores: int = row(...)
ROW.name = ROW.key = "cores"


def written(path: Path, monkeypatch: pytest.MonkeyPatch, cores: int) -> Path:
    """A bundle whose host has that value."""

    def plan_with(contents: BundleContents) -> BundlePlan:
        plan = plan_of(contents)
        vars(plan.devices[0])["cores"] = cores
        return plan

    monkeypatch.setattr(write, "plan_of", plan_with)
    write.write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def both(path: Path) -> c_loader.Verdict:
    """What both loaders say of a bundle."""
    said = c_loader.verdict_of_python(path)
    assert c_loader.verdict_of_c(path) == said
    return said


@pytest.mark.broad
def test_one_row_is_one_more_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles of before are read, and are what would be written where the field is as it was
    before; a value is read by both loaders, its bounds are checked by both, in the same words, and
    loaders of before refuse it by the version."""
    old = tmp_path / "old.ingot"
    write.write_bundle(tiny_contents("batch"), old, tree_entry)
    with monkeypatch.context() as later:
        later.setattr(DevicePlan, "rows", (*DevicePlan.rows, ROW))
        later.setattr(header, "VERSION_MINOR", LATER)
        made = dict(loader_sources()) | {"abi.h": abi_header()}
        library = c_loader.library_of(made.items(), tmp_path)

        def other_library(*, sanitized: bool = False) -> ctypes.CDLL:
            return library

        later.setattr(c_loader, "library", other_library)
        new = written(tmp_path / "new.ingot", later, cores=3)
        same = written(tmp_path / "same.ingot", later, cores=0)
        assert same.read_bytes() == old.read_bytes()
        assert [both(path) for path in (old, new)] == [c_loader.Verdict()] * 2
        values = [vars(read_plan(open_file(path)).devices[0])["cores"] for path in (old, new)]
        assert (values, open_file(new).minor) == ([0, 3], LATER)

        def unchecked(data: bytes, minor: int = 0) -> None:
            """Else it is not written."""

        later.setattr(write, "decode_plan", unchecked)
        beyond = written(tmp_path / "beyond.ingot", later, cores=65)
        assert both(beyond).what == "bad device cores"
        columns, rows = next(each for each in test_format_page.tables() if "`device`" in each[0][0])
        assert rows[-1] == ("`cores`", "0 to 64", "`cores`", f"1.{LATER}"), columns
    assert both(new).kind == "VersionError"
