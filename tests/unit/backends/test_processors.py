"""The table of classes of processors: every row can be meant, and none is meant by two names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingot_compiler.targets import TARGETS
from ingot_compiler.targets.processors import PROCESSORS, ProcessorClass, processors_of
from ingot_compiler.targets.target import parse_target


@pytest.mark.parametrize("row", PROCESSORS, ids=lambda row: row.name)
def test_each_class_is_that_of_its_tunings(row: ProcessorClass) -> None:
    """A target says it by any of its tunings; rates and sizes are numbers that a core can have."""
    for tuning in row.tunings:
        assert parse_target(f"{row.level}:{tuning}").processors == (row,)
    assert row in processors_of(row.level, "")
    assert 1 <= row.multiply_adds <= 4
    assert row.level1_bytes < row.level2_bytes
    assert row.far_rate <= row.level2_rate
    assert row.source


def test_each_tuning_of_a_vector_level_has_one_class_at_most() -> None:
    """No tuning stands in two rows."""
    named = [tuning for row in PROCESSORS for tuning in row.tunings]
    assert len(named) == len(set(named))
    assert set(named) <= {tuning for family in TARGETS for tuning in family.tunings}


def test_the_page_has_the_table() -> None:
    """Each row of docs/targets.md is written by this."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "targets.md").read_text()
    for row in PROCESSORS:
        apart = "yes" if row.adds_apart else "no"
        cells = (
            row.name,
            row.level,
            ", ".join(row.tunings),
            f"{row.multiply_adds}; {apart}",
            f"{row.loads:g}, {row.stores:g}",
            f"{row.level1_bytes >> 10} KiB, {row.level1_ways}; {row.level2_bytes >> 10} KiB",
            f"{row.level2_rate:g}; {row.far_rate:g}",
            row.source,
        )
        assert f"\n| {' | '.join(cells)} |\n" in page
