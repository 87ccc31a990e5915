"""Tests that need an OpenCL driver: run where one works, listed where none does.

In: tests with ``@pytest.mark.opencl``, ``(devices=2)`` for two devices of it. Out: a driver that
they see, a line of the summary for those that were left out. Not done here: finding drivers
(``opencl_drivers``).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from tests import opencl_drivers
from tests.opencl_drivers import Driver

from ingot_runtime_devices.opencl_build import Builder


class OpenClTests:
    """A plug-in of pytest, in each process of a test run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left_out = 0
        is_spread = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
        if is_spread or config.getoption("require_opencl"):
            self._driver()  # before the other processes start: they take it from this one

    def _driver(self) -> Driver:
        driver = opencl_drivers.choose(int(self._config.getoption("opencl_driver") or 0))
        if driver.why and self._config.getoption("require_opencl"):
            what = f"no OpenCL driver that works: {driver.why}"
            raise pytest.UsageError(f"{what}\n  do: {opencl_drivers.DO}")
        return driver

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what needs more devices than there are."""
        needs = {item: mark for item in items if (mark := item.get_closest_marker("opencl"))}
        if not needs:
            return
        count = self._driver().device_count
        out = [item for item, mark in needs.items() if mark.kwargs.get("devices", 1) > count]
        if out:
            self._left_out = len(out)
            self._config.hook.pytest_deselected(items=out)
            items[:] = [item for item in items if item not in set(out)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """What is not marked must not open a device of a driver: it would be red elsewhere."""
        with pytest.MonkeyPatch.context() as patch:
            if not item.get_closest_marker("opencl"):
                patch.setattr(Builder, "failure_of", _unmarked)
                patch.setattr(opencl_drivers, "variables", _unmarked)
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Tell the process that prints the summary."""
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["opencl_left_out"] = self._left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear it: every process has left out the same."""
        output: dict[str, Any] = getattr(node, "workeroutput", {})
        self._left_out = max(self._left_out, output.get("opencl_left_out", 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was not run, why, and what to do."""
        if not self._left_out:
            return
        driver = self._driver()
        has = driver.why or f"{driver.name} has {driver.device_count} device"
        what = f"{self._left_out} tests that need an OpenCL driver that works"
        terminalreporter.write_line(f"NOT RUN: {what}: {has}; do: {opencl_drivers.DO}")


def _unmarked(*_: object) -> str:
    raise AssertionError("it opens a device of OpenCL: mark it @pytest.mark.opencl")
