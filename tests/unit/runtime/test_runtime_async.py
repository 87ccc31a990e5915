"""Calls from coroutines: they wait in order, end with their coroutine, and let the loop go on."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry
from tests.unit.runtime.test_runtime_callers import Gate, contexts_of, forked, no_thread_is_left

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.executor.session import Session

HANG_SECONDS = 300
X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
Y = tiny_reference(X)

settled = pytest.fixture(autouse=True)(no_thread_is_left)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "dynamic.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


async def is_right(session: Session, timeout: float | None = None) -> bool:  # noqa: ASYNC109  # the session's
    return bool(((await session.arun({"x": X}, timeout=timeout))["y"] == Y).all())


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_SECONDS
    while not condition():  # a thread without a loop changes it
        assert time.monotonic() < end
        await asyncio.sleep(0.001)


async def start(session: Session, gate: Gate, count: int) -> list["asyncio.Task[bool]"]:
    """Start calls, and return when they are held at the gate."""
    tasks = [asyncio.create_task(is_right(session)) for _ in range(count)]
    await until(lambda: len(gate.entered) >= count)
    return tasks


async def ends_of(tasks: list["asyncio.Task[bool]"]) -> list[str]:
    """Return the names of what the calls raised, or their results."""
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    return [type(end).__name__ if isinstance(end, BaseException) else str(end) for end in ends]


@pytest.mark.parametrize("sessions", [1, 2])
def test_many_coroutines(bundle: Path, sessions: int) -> None:
    """More calls than sessions: all are right, in at most as many threads as sessions."""
    before = threading.active_count()
    with ingot_runtime.load(bundle, sessions=sessions) as session:

        async def main() -> list[bool]:
            return await asyncio.gather(*(is_right(session) for _ in range(40)))

        assert asyncio.run(main()) == [True] * 40
        assert asyncio.run(main()) == [True] * 40  # another loop
        assert threading.active_count() <= before + sessions
    end = time.monotonic() + HANG_SECONDS
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.001)
    assert threading.active_count() == before


def test_the_loop_goes_on(bundle: Path) -> None:
    """While one call runs and another waits, other coroutines run; a thread may call, too."""
    session = ingot_runtime.load(bundle, executor="vm")
    gate = Gate(session)

    async def main() -> list[str]:
        tasks = await start(session, gate, 1)
        tasks.append(asyncio.create_task(is_right(session)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        gate.opened.set()
        return await ends_of(tasks)

    assert asyncio.run(main()) == ["True"] * 2
    assert (session.run({"x": X})["y"] == Y).all()


def test_a_cancelled_coroutine(bundle: Path) -> None:
    """A coroutine that is cancelled ends its own call, running or waiting, and no other one."""
    session = ingot_runtime.load(bundle, executor="vm", sessions=2)
    gate = Gate(session)

    async def main() -> list[str]:
        tasks = await start(session, gate, 2)
        tasks += [asyncio.create_task(is_right(session)) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[2].cancel()
        assert await ends_of([tasks[0], tasks[2]]) == ["CancelledError"] * 2
        gate.opened.set()
        return await ends_of([tasks[1], tasks[3], asyncio.create_task(is_right(session))])

    assert asyncio.run(main()) == ["True"] * 3
    assert len(gate.entered) == 4  # the call that waited never ran
    session.close()


def test_timeouts(bundle: Path) -> None:
    """A timeout counts from the call on, and is the loader's own error; the next call runs."""
    session = ingot_runtime.load(bundle, executor="vm")
    gate = Gate(session)

    async def main() -> None:
        (task,) = await start(session, gate, 1)
        with pytest.raises(ingot_runtime.TimedOutError, match="the call took too long") as caught:
            await is_right(session, 0.01)
        assert isinstance(caught.value, TimeoutError)
        gate.opened.set()
        assert await task
        assert await is_right(session, HANG_SECONDS)
        for bad in (0, -1.0, True, "1"):
            with pytest.raises(ingot_runtime.InputError, match="bad timeout"):
                await session.arun({"x": X}, timeout=bad)  # type: ignore[arg-type]  # what is tested

    asyncio.run(main())


def test_errors_of_the_model(bundle: Path) -> None:
    """What `run` would raise comes out of the coroutine."""
    session = ingot_runtime.load(bundle)
    with pytest.raises(ingot_runtime.InputError, match="wrong dtype of input 'x'"):
        asyncio.run(session.arun({"x": X.astype(np.float64)}))
    session.close()
    with pytest.raises(ingot_runtime.BusyError, match="the session is closed"):
        asyncio.run(session.arun({"x": X}))


def test_busy_error(bundle: Path) -> None:
    """With busy="error" a coroutine that would wait is refused, also by other coroutines."""
    session = ingot_runtime.load(bundle, executor="vm", busy="error", sessions=2)
    gate = Gate(session)

    async def main() -> list[str]:
        tasks = [asyncio.create_task(is_right(session)) for _ in range(5)]
        await until(lambda: len(gate.entered) == 2)
        gate.opened.set()
        return await ends_of(tasks)

    ends = asyncio.run(main())
    assert sorted(ends) == ["BusyError"] * 3 + ["True"] * 2


def test_cancel_of_the_session(bundle: Path) -> None:
    """`cancel` ends calls of coroutines by the loader's own error."""
    session = ingot_runtime.load(bundle, executor="vm")
    gate = Gate(session)

    async def main() -> None:
        (task,) = await start(session, gate, 1)
        assert session.cancel()
        gate.opened.set()
        with pytest.raises(ingot_runtime.CancelledError, match="the call was cancelled"):
            await task

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork(bundle: Path) -> None:
    """A forked child makes itself new threads."""
    session = ingot_runtime.load(bundle)
    asyncio.run(session.arun({"x": X}))

    def child() -> bool:
        results: dict[str, Any] = asyncio.run(session.arun({"x": X}))
        return bool((results["y"] == Y).all())

    assert forked(child) == 0
    assert asyncio.run(is_right(session))
    assert not contexts_of(session)[0].waiters
