"""The table of classes of processors: every row can be meant, and none is meant by two names."""

from __future__ import annotations

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
