"""No test says how fast the machine is: no deadlines of examples, no times of access, no limits
that are not for a hang."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, settings
from tests.tidy.source import ROOT

HANG_SECONDS_MIN = 300
_LIMIT = re.compile(r"\btimeout=(\d+)\b")
# pattern -> why no test has it
FORBIDDEN = {
    r"\bdeadline=": "tests/conftest.py sets it for all: none",
    r"\.stat\(\) [!=]= ": "it compares the time of the last access, which any reader changes; use stamp_of",
}
TESTS = sorted(
    path
    for path in (ROOT / "tests").rglob("*.py")
    if "benchmarks" not in path.parts and path.name != "test_clocks.py"
)


def test_examples_have_no_deadline() -> None:
    """Hypothesis measures examples by default."""
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_no_test_measures(pattern: str) -> None:
    """Neither deadlines nor times of access."""
    found = [
        str(path.relative_to(ROOT))
        for path in TESTS
        if re.search(pattern, path.read_text(encoding="utf-8"))
    ]
    assert set(found) <= {"tests/conftest.py"}, FORBIDDEN[pattern]


def test_limits_are_for_what_hangs() -> None:
    """A process that a test waits for has minutes: a loaded machine needs some of them."""
    limits = {
        (str(path.relative_to(ROOT)), int(found[1]))
        for path in TESTS
        for found in _LIMIT.finditer(path.read_text(encoding="utf-8"))
    }
    assert limits
    assert {(path, seconds) for path, seconds in limits if seconds < HANG_SECONDS_MIN} == set()
