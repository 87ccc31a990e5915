"""What all tests share: the ``--bless`` flag that rewrites golden files instead of comparing with
them, Ctrl-C, a cache, a key, an OpenCL driver, checks of every stage."""

import gc
import os
import shutil
import signal
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests import pocl_linker
from tests.opencl_plugin import OpenClTests

_FEW, _SWEEP_EVERY = 8, 4  # cases of a test that is no sweep; one in so many of more is quick

# How long an example takes says how busy the machine is.
settings.register_profile("ingot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ingot")


def pytest_configure(config: pytest.Config) -> None:
    """Children must hear Ctrl-C: a shell starts what runs in the background with it ignored, and
    that is inherited."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not _is_worker(config):  # which has what this one sets
        _set_environment()
    config.pluginmanager.register(OpenClTests(config))


def _set_environment() -> None:
    # Commands under test share a cache: no process of the test run compiles what another one has
    # compiled.
    os.environ.pop("INGOT_CACHE_MAX", None)
    os.environ["INGOT_CACHE"] = tempfile.mkdtemp(prefix="ingot-test-cache-")
    # And a key: the user's own is nobody's business.
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="ingot-test-state-")
    if pocl_linker.is_needed():
        folder = Path(os.environ["XDG_STATE_HOME"])
        pocl_linker.write_linker(folder)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="module", autouse=True)
def young_heap() -> None:
    """Let the garbage collector, which some tests call often, look only at what the tests of one
    file make: modules, the list of tests and what earlier files keep in caches stay."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a sweep, the first case and one in so many of the others are quick: chosen by their names,
    so that no axis of a sweep has the rhythm of the choice. So are the parts of a suite."""
    tests = [item.nodeid.partition("[")[0] for item in items]
    counts, begun = Counter(tests), set[str]()
    for item, test in zip(items, tests, strict=True):
        sweep = item.get_closest_marker("sweep")
        every = sweep.args[0] if sweep else _SWEEP_EVERY if counts[test] > _FEW else 1
        if test in begun and zlib.crc32(item.nodeid.encode()) % every:
            item.add_marker("broad")
        begun.add(test)
    part, count = map(int, str(config.getoption("part")).split("/"))
    chosen = [item for item in items if zlib.adler32(item.nodeid.encode()) % count == part % count]
    config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
    items[:] = chosen


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if not _is_worker(config):
        for name in ("INGOT_CACHE", "XDG_STATE_HOME"):
            shutil.rmtree(os.environ[name], ignore_errors=True)


def _is_worker(config: pytest.Config) -> bool:
    """Whether this is one of several processes of a test run."""
    return hasattr(config, "workerinput")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--bless``, ``--part``, and what concerns OpenCL."""
    parser.addoption(
        "--bless", action="store_true", help="rewrite the golden files; review the diff like code"
    )
    parser.addoption("--part", default="1/1", help="K/N: of the tests in N parts, the K-th one")
    parser.addoption(
        "--require-opencl", action="store_true", help="fail where no OpenCL driver works"
    )
    parser.addoption(
        "--opencl-driver", type=int, default=0, help="run on this one of those that work, from 0 on"
    )


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--bless"))


@pytest.fixture(scope="session", autouse=True)
def stages_are_checked() -> Iterator[None]:
    """What stands between the stages of any compilation in this process is verified, and reads back
    from its text."""
    from tests.stage_checks import checked_stages  # everything that it imports takes a second

    with checked_stages():
        yield
