"""System calls that fail: whatever the kernel refuses while a bundle is loaded, run and closed, the
loader answers in its own words.

The calls are made to fail by ptrace, which an ordinary user may do to his own children, in
containers too (since Linux 4.8).
"""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from tests.hostile import trials
from tests.hostile.attacks import attacked
from tests.hostile.loaders import LOADERS
from tests.hostile.system_call_faults import SESSIONS
from tests.hostile.tiny import (
    WEIGHTS_AT,
    WEIGHTS_SECTION_BYTES,
    WIDTH,
    tiny_contents,
    tiny_reference,
    tree_entry,
)

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.errors import ResourceError
from ingot_runtime.loader import sigbus, system

QUICK_TRIALS = 30  # besides those of the first call of each kind, for each of the sessions
X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def require_good(ends: dict[str, list[str]], least: int) -> None:
    """Every trial ended right or by the right class of error, and there were as many as there
    should be."""
    assert {end: cases for end, cases in ends.items() if not trials.is_good(end)} == {}
    assert sum(map(len, ends.values())) >= least
    assert {"right", "FileError", "ResourceError"} <= set(ends)


@pytest.mark.broad
def test_some_calls_fail(bundle: Path) -> None:
    """Results or an error of the right class; nothing left of descriptors, threads, mappings; the
    next load works."""
    require_good(
        trials.run_driver("system_call_faults", str(bundle), str(QUICK_TRIALS), seconds=600),
        len(SESSIONS) * QUICK_TRIALS,
    )


@pytest.mark.slow
def test_all_calls_fail(bundle: Path) -> None:
    """The same for each call, each errno that it may have, once and for ever."""
    require_good(trials.run_driver("system_call_faults", str(bundle), "0", seconds=3600), 1000)


@pytest.fixture
def no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing were guarded: other tests of this process may keep sessions, whose handler then
    lies beneath."""
    monkeypatch.setattr(sigbus, "_installed", {})
    monkeypatch.setattr(sigbus, "_tables", {})


@pytest.mark.usefixtures("no_handler")
def test_refused_handler_is_installed_by_the_next_load(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load that cannot install the guard fails; the one after it is guarded, and the last one
    takes the handler along."""
    assert not any(handler.is_installed for handler in sigbus._installed.values())  # pyright: ignore[reportPrivateUsage]
    installed: list[int] = []
    found = system.install_action

    def refuse(number: int, action: int, old: int) -> None:
        if action:
            raise ResourceError("the system refused sigaction")
        found(number, action, old)

    def count(number: int, action: int, old: int) -> None:
        installed.append(action)
        found(number, action, old)

    monkeypatch.setattr(system, "install_action", refuse)
    with pytest.raises(ResourceError, match="refused sigaction"):
        ingot_runtime.load(bundle)
    monkeypatch.setattr(system, "install_action", count)
    session = ingot_runtime.load(bundle)
    assert sum(map(bool, installed)) == 1
    assert (session.run({"x": X})["y"] == tiny_reference(X)).all()
    session.close()
    assert not any(handler.is_installed for handler in sigbus._installed.values())  # pyright: ignore[reportPrivateUsage]


@attacked
@pytest.mark.usefixtures("no_handler")
def test_handler_goes_with_a_load_that_fails(bundle: Path, loader: str) -> None:
    """A load that fails after the guard was installed leaves no handler, and no image that holds
    it."""
    before = action_now()
    data = bytearray(bundle.read_bytes())
    data[WEIGHTS_AT - WEIGHTS_SECTION_BYTES] ^= 1
    bundle.write_bytes(data)
    with pytest.raises(ingot_runtime.DigestError, match="weights are damaged"):
        LOADERS[loader](bundle)
    assert not any(handler.is_installed for handler in sigbus._installed.values())  # pyright: ignore[reportPrivateUsage]
    assert action_now() == before


@pytest.mark.usefixtures("no_handler")
def test_interrupted_installation_is_finished(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before or after the handler is there: the next load guards, and the action from before
    us comes back."""
    before = action_now()
    found = system.install_action
    for done in (False, True):
        interrupts: list[object] = [KeyboardInterrupt]

        def interrupt(
            number: int,
            action: int,
            old: int,
            done: bool = done,
            interrupts: list[object] = interrupts,
        ) -> None:
            if done or not action or not interrupts:
                found(number, action, old)
            if action and interrupts:
                interrupts.clear()
                raise KeyboardInterrupt

        monkeypatch.setattr(system, "install_action", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ingot_runtime.load(bundle)
        assert not interrupts
        with ingot_runtime.load(bundle) as session:
            assert action_now() != before
            assert (session.run({"x": X})["y"] == tiny_reference(X)).all()
        assert action_now() == before


def action_now() -> bytes:
    """The present handler of SIGBUS."""
    action = ctypes.create_string_buffer(152)
    system.install_action(7, 0, ctypes.addressof(action))
    return action.raw[:8]
