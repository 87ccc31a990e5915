"""``python -m tests.device_rows [ROW...]``: runs the tests of rows, and prints how each row fares.

In: numbers of rows; none means all. Out: a line per row; the exit code is 1 if one of its tests
fails. Not done here: the page (``page``).
"""

from __future__ import annotations

import sys

import pytest
from tests.device_rows.page import ALL
from tests.device_rows.row import Row


class _Outcomes:
    """What pytest tells of each test function."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def of(self, row: Row) -> str:
        """``open``, ``passes``, ``fails``; a test that did not run fails."""
        if not row.tests:
            return row.state
        bad = [test for test in row.tests if not self._has_passed(test)]
        return f"fails: {', '.join(bad)}" if bad else "passes"

    def _has_passed(self, test: str) -> bool:
        return _covers(test, self.passed) and not _covers(test, self.failed)


def _covers(test: str, nodes: set[str]) -> bool:
    """Whether one of these is the test, or one of its cases."""
    return any(node == test or node.startswith(f"{test}[") for node in nodes)


def main(numbers: list[str]) -> int:
    """Run, print, and return the exit code."""
    unknown = sorted(set(numbers) - {row.number for row in ALL})
    if unknown:
        print(f"no row {', '.join(unknown)}", file=sys.stderr)
        return 1
    rows = [row for row in ALL if not numbers or row.number in numbers]
    tests = list(dict.fromkeys(test for row in rows for test in row.tests))
    outcomes = _Outcomes()
    if tests:
        pytest.main(["-q", "-m", "", *tests], plugins=[outcomes])
    for row in rows:
        print(f"{row.number:>4}  {outcomes.of(row):8}  {row.says}")
    return int(any(outcomes.of(row).startswith("fails") for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
