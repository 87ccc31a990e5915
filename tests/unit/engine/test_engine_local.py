"""Where actions run: in the command's own process while there is little to do, in workers when
there is much."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hostile.engine_harness import BOOK, each, open_scheduler, read_log

from ingot_artifacts.store.folder_layer import FolderLayer
from ingot_artifacts.store.layout import versioned
from ingot_build_rules.engine.actions.build import Count
from ingot_build_rules.engine.executors.executor import InlineExecutor
from ingot_build_rules.engine.executors.local import LocalExecutor
from ingot_build_rules.engine.executors.pool import PoolExecutor
from ingot_build_rules.engine.scheduler import Scheduler


@contextmanager
def local(
    folder: Path, jobs: int, warn: Callable[[str], None] = lambda _: None
) -> Generator[Scheduler]:
    """A build whose executor begins in this process."""
    with open_scheduler(folder) as build:
        address = FolderLayer(versioned(str(folder))).address
        pool = PoolExecutor(BOOK, [address], str(folder / "v1" / "tmp"))
        executor = LocalExecutor(
            InlineExecutor(BOOK, build.values), pool, jobs, build.backlog, warn
        )
        build.executor = executor
        try:
            yield build
        finally:
            executor.close(kill=False)


def processes(log: Path) -> set[int]:
    """Who ran actions."""
    return {line.process for line in read_log(log) if line.what == "begin"}


def test_a_small_build_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred quick actions are done before a worker would listen."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    log = tmp_path / "log"
    with local(tmp_path / "cache", 8) as build:
        build.run(each(build, range(100), str(log)))
    assert len(processes(log)) == 1


@pytest.mark.broad
def test_a_large_build_goes_on_in_workers(tmp_path: Path) -> None:
    """At first here, then in as many processes as there are jobs."""
    log = tmp_path / "log"
    with local(tmp_path / "cache", 2) as build:
        build.run(each(build, range(60), str(log), 0.1))
    lines = [line for line in read_log(log) if line.what == "begin"]
    assert len(processes(log)) == 3
    assert {line.process for line in lines[-20:]} == processes(log) - {lines[0].process}


@pytest.mark.sweep(60)
@pytest.mark.parametrize("exists", [True, False])
def test_without_workers_all_is_done_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    """Workers that end before they listen, or cannot be started: one warning, no endless starting
    of others, a right build."""
    program, log = tmp_path / "python", tmp_path / "log"
    if exists:
        program.write_text("#!/bin/sh\nexit 7\n")
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    warnings: list[str] = []
    with local(tmp_path / "cache", 2, warnings.append) as build:
        build.run(each(build, range(30), str(log), 0.1))
    assert len(processes(log)) == 1
    (warning,) = warnings
    assert ("it ended with status 7" if exists else "No such file") in warning


def test_expected_seconds_leave_out_what_loading_takes() -> None:
    """One slow first action says nothing of the others."""
    assert Count().expected_seconds() == 0
    assert Count(ran=1, seconds=0.15).expected_seconds() == 0
    assert Count(ran=10, seconds=5.2).expected_seconds() == pytest.approx(0.5)
