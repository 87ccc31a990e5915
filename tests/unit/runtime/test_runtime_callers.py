"""Several callers of one session: who runs, who waits, who is refused; and what ends a wait."""

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.interrupted_child import run_interrupted
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry
from tests.hostile.two_devices import two_device_contents

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.executor.context import ExecutionContext, new_waiter
from ingot_runtime.executor.session import Session

HANG_SECONDS = 300
X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
Y = tiny_reference(X)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "dynamic.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def no_thread_is_left() -> Iterator[None]:
    """Afterwards, wait until the threads of a test are gone: others count them."""

    def count() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/task"))

    before = count()
    yield
    until(lambda: count() <= before)


settled = pytest.fixture(autouse=True)(no_thread_is_left)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as executor:
        yield executor


class Gate:
    """Holds every call at its first launch until it is opened."""

    def __init__(self, session: Session) -> None:
        self.entered: list[int] = []
        self.inside = threading.Semaphore(0)
        self.opened = threading.Event()
        session.observe(self)

    def __call__(self, ordinal: int, *_: object) -> None:
        if ordinal == 0:
            self.entered.append(threading.get_ident())
            self.inside.release()
            assert self.opened.wait(HANG_SECONDS)

    def wait_for_call(self) -> None:
        """Wait until one more call is inside."""
        assert self.inside.acquire(timeout=HANG_SECONDS)


def gated(bundle: Path, **options: Any) -> tuple[Session, Gate]:
    """Return a session whose calls stop at a gate."""
    session = ingot_runtime.load(bundle, executor="vm", **options)
    return session, Gate(session)


def contexts_of(session: Session) -> tuple[ExecutionContext, ...]:
    return session._contexts  # pyright: ignore[reportPrivateUsage]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def wait_for_line(session: Session, count: int) -> None:
    """Wait until that many callers wait."""
    until(lambda: len(contexts_of(session)[0].waiters) == count)


def is_right(session: Session, timeout: float | None = None) -> bool:
    return bool((session.run({"x": X}, timeout=timeout)["y"] == Y).all())


def end_of(future: "Future[Any]") -> str:
    """Return the name of what the call raised, or its result."""
    error = future.exception(HANG_SECONDS)
    return type(error).__name__ if error else str(future.result())


def test_who_comes_later_waits_longer(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """One session runs one call at a time, in the order in which the callers came."""
    session, gate = gated(bundle)
    calls: list[Future[bool]] = []
    idents: list[int] = []

    def call() -> bool:
        idents.append(threading.get_ident())
        return is_right(session)

    for number in range(5):
        calls.append(threads.submit(call))
        if number == 0:
            gate.wait_for_call()
        wait_for_line(session, number)
    assert len(gate.entered) == 1
    gate.opened.set()
    assert [end_of(each) for each in calls] == ["True"] * 5
    assert gate.entered == idents
    assert not contexts_of(session)[0].waiters


def test_sessions_run_at_once(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """Two of two sessions run together and a third caller waits; they share file, code and weights,
    and nothing that a call writes to."""
    session, gate = gated(bundle, sessions=2)
    calls = [threads.submit(is_right, session) for _ in range(2)]
    gate.wait_for_call()
    gate.wait_for_call()
    calls.append(threads.submit(is_right, session))
    wait_for_line(session, 1)
    gate.opened.set()
    assert [end_of(each) for each in calls] == ["True"] * 3
    one, other = (context.loaded for context in contexts_of(session))
    assert one.weights is other.weights is not None
    assert one.image is other.image
    assert one.source is other.source
    assert one.pool is not other.pool
    assert one.watch is not other.watch


@pytest.mark.parametrize("sessions", [1, 2, 3])
def test_more_callers_than_sessions(
    bundle: Path, threads: ThreadPoolExecutor, sessions: int
) -> None:
    """Every call of eight threads is right, on small and on large inputs, bound and not, with a
    timeout and without; nobody is left in a line."""
    session = ingot_runtime.load(bundle, sessions=sessions)

    def calls(number: int) -> int:
        x = np.full((50 + 4000 * (number % 2), WIDTH), number, np.float32)
        y, bound = tiny_reference(x), session.bind({"x": x})
        count = 0
        for at in range(30):
            timeout = HANG_SECONDS if at % 3 == 0 else None
            count += bool((session.run({"x": x}, timeout=timeout)["y"] == y).all())
            bound.run()
            count += bool((bound.outputs["y"] == y).all())
        return count

    assert list(threads.map(calls, range(8))) == [60] * 8
    for context in contexts_of(session):
        assert (context.waiters, len(context.free)) == ([], 1)


@pytest.mark.parametrize("sessions", [1, 2])
def test_busy_error(bundle: Path, threads: ThreadPoolExecutor, sessions: int) -> None:
    """With busy="error" nobody waits: one caller more than sessions is refused at once."""
    session, gate = gated(bundle, sessions=sessions, busy="error")
    calls = [threads.submit(is_right, session)]
    gate.wait_for_call()
    for _ in range(sessions - 1):
        calls.append(threads.submit(is_right, session))
        gate.wait_for_call()
    said = "all 2 sessions run others' calls" if sessions == 2 else "it runs others' calls"
    bound_one = lambda: session.bind({"x": X})
    for refused in (lambda: is_right(session), lambda: is_right(session, 1.0), bound_one):
        with pytest.raises(ingot_runtime.BusyError, match="the session is busy") as caught:
            refused()
        assert caught.value.__context__ is None
    with pytest.raises(ingot_runtime.BusyError, match=said):
        is_right(session)
    with pytest.raises(ingot_runtime.BusyError, match='busy="error"'):
        session.close()
    gate.opened.set()
    assert {end_of(each) for each in calls} == {"True"}
    session.close()


def test_a_timeout_while_waiting(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """The time in which a call waits counts; whoever runs is not disturbed, who comes next gets its
    turn."""
    session, gate = gated(bundle)
    first = threads.submit(is_right, session)
    gate.wait_for_call()
    with pytest.raises(ingot_runtime.TimedOutError, match="waiting for its turn"):
        is_right(session, 0.01)
    second = threads.submit(is_right, session, HANG_SECONDS)
    wait_for_line(session, 1)
    gate.opened.set()
    assert [end_of(first), end_of(second), str(is_right(session))] == ["True"] * 3


def test_cancel_ends_all_calls(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """`cancel` ends the calls that run and those that wait; the next ones run."""
    session, gate = gated(bundle, sessions=2)
    calls = [threads.submit(is_right, session) for _ in range(2)]
    gate.wait_for_call()
    gate.wait_for_call()
    calls += [threads.submit(is_right, session) for _ in range(2)]
    wait_for_line(session, 2)
    assert session.cancel()
    gate.opened.set()
    assert [end_of(each) for each in calls] == ["CancelledError"] * 4
    assert not session.cancel()
    assert is_right(session)


def test_close_waits_its_turn(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """Calls that came before `close` are completed, those behind it are refused, and closing again,
    from two threads too, does nothing."""
    session, gate = gated(bundle)
    before = [threads.submit(is_right, session)]
    gate.wait_for_call()
    before.append(threads.submit(is_right, session))
    wait_for_line(session, 1)
    closing = [threads.submit(session.close)]
    wait_for_line(session, 2)
    behind = threads.submit(is_right, session)
    wait_for_line(session, 3)
    closing.append(threads.submit(session.close))
    wait_for_line(session, 4)
    gate.opened.set()
    assert [end_of(each) for each in before] == ["True"] * 2
    assert [end_of(each) for each in closing] == ["None"] * 2
    with pytest.raises(ingot_runtime.BusyError, match="the session is closed"):
        behind.result(HANG_SECONDS)
    session.close()
    with pytest.raises(ingot_runtime.BusyError, match="the session is closed"):
        is_right(session)


def open_behind(session: Session, gate: Gate) -> None:
    wait_for_line(session, 1)
    gate.opened.set()


def test_close_of_several_sessions(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """Closing waits for the calls of all sessions; a `with` block does it."""
    with ingot_runtime.load(bundle, sessions=2, executor="vm") as session:
        gate = Gate(session)
        calls = [threads.submit(is_right, session) for _ in range(2)]
        gate.wait_for_call()
        gate.wait_for_call()
        opener = threads.submit(open_behind, session, gate)
    opener.result(HANG_SECONDS)
    assert [end_of(each) for each in calls] == ["True"] * 2
    assert all(context.queue.is_closed for context in contexts_of(session))


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_call_inside_a_call(bundle: Path, sessions: int) -> None:
    """Who would wait for itself is refused, in whatever way it calls, and at once; where another
    session is free, that one runs it."""
    session = ingot_runtime.load(bundle, executor="vm", sessions=sessions)
    ends: list[str] = []

    def end(call: Callable[[], object]) -> str:
        try:
            return str(call())
        except ingot_runtime.BusyError as error:
            return error.why

    def observe(ordinal: int, *_: object) -> None:
        if ordinal == 0:
            calls: list[Callable[[], object]] = [lambda: is_right(session)]
            if sessions == 1:
                calls += [lambda: is_right(session, 1.0), session.close]
            ends.extend(end(call) for call in calls)

    session.observe(observe)
    assert is_right(session)
    own = "this thread is in a call of it already, and would wait for itself"
    assert ends == ([own] * 3 if sessions == 1 else [own, "True"])
    assert is_right(session)


def test_a_waiter_that_an_exception_has_ended(bundle: Path) -> None:
    """A place in a line ends with its waiter, even where nobody took it out; so does the turn
    that was put aside for it."""
    session = ingot_runtime.load(bundle)
    (context,) = contexts_of(session)
    waiter = new_waiter(contexts_of(session))
    context.waiters.append(weakref.ref(waiter))
    is_right(session)  # gives the turn to who waits
    assert context.free == {False: None}
    del waiter
    gc.collect()
    assert is_right(session)
    assert (context.free, context.waiters) == ({True: None}, [])


def test_interrupt_while_waiting(bundle: Path) -> None:
    """Ctrl-C ends a wait, and leaves the line in order."""
    text = """
import sys, threading, numpy as np, ingot_runtime
session = ingot_runtime.load(sys.argv[1], executor="vm")
x = np.ones((4, 8), np.float32)
inside, opened = threading.Event(), threading.Event()
session.observe(lambda *_: (inside.set(), opened.wait()))
threads = [threading.Thread(target=session.run, args=({"x": x},)) for _ in range(2)]
threads[0].start()
inside.wait()
print("ready", flush=True)
try:
    session.run({"x": x})
except KeyboardInterrupt:
    threads[1].start()
    opened.set()
    for thread in threads:
        thread.join()
    print(len(session._contexts[0].waiters), session.run({"x": x})["y"].shape, flush=True)
"""
    code, out, err = run_interrupted(text, str(bundle), settle_seconds=0.1, limit_seconds=300)
    assert (code, out) == (0, "0 (4, 8)\n"), err


def forked(work: Callable[[], bool]) -> int:
    """Return the exit code of a child: 0 where the work is good."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork_beside_callers(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """In a forked child nobody runs and nobody waits, so it may run and close; in the parent all
    goes on."""
    session, gate = gated(bundle, sessions=2)
    calls = [threads.submit(is_right, session) for _ in range(2)]
    gate.wait_for_call()
    gate.wait_for_call()
    calls.append(threads.submit(is_right, session))
    wait_for_line(session, 1)

    def child() -> bool:
        session.observe(None)
        good = is_right(session) and is_right(session)
        session.close()
        return good

    assert forked(child) == 0
    assert len(contexts_of(session)[0].waiters) == 1
    gate.opened.set()
    assert [end_of(each) for each in calls] == ["True"] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sessions": 0}, "bad number of sessions"),
        ({"sessions": True}, "expected an integer of at least 1, got True"),
        ({"sessions": 1.5}, "bad number of sessions"),
        ({"busy": "eror"}, "did you mean 'error'?"),
        ({"busy": None}, "expected one of wait, error, got None"),
    ],
)
def test_bad_options(bundle: Path, options: dict[str, Any], message: str) -> None:
    """Options are refused by name and value."""
    with pytest.raises(ingot_runtime.InputError, match=message.replace("?", r"\?")):
        ingot_runtime.load(bundle, **options)


def test_memory_of_all_sessions(bundle: Path) -> None:
    """A limit is for all sessions together: each has an equal part, and the error says so."""
    limit = 100_000
    x = np.ones((1000, WIDTH), np.float32)  # two tensors of 32 kB, and scratch
    assert ingot_runtime.load(bundle, max_bytes=limit).run({"x": x})["y"].shape == x.shape
    session = ingot_runtime.load(bundle, max_bytes=limit, sessions=2)
    with pytest.raises(ingot_runtime.LimitError) as caught:
        session.run({"x": x})
    assert "max_bytes is 100000, 50000 for each of 2 sessions" in str(caught.value)
    assert is_right(session)


def test_threads_of_all_sessions(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they have no more threads than there are processors, and each has at least one."""

    def four(asked: int) -> int:
        return min(asked, 4)

    monkeypatch.setattr("ingot_runtime.load_bundle.usable_threads", four)
    for sessions, threads, each in ((1, 3, 3), (2, 2, 2), (2, 3, 2), (3, 4, 1), (9, 2, 1)):
        session = ingot_runtime.load(bundle, sessions=sessions, threads=threads)
        assert [context.loaded.pool.n_threads for context in contexts_of(session)] == [
            each
        ] * sessions
        session.close()


def test_digest(bundle: Path) -> None:
    """A session tells the root digest of its bundle, by which the same one can be asked for."""
    session = ingot_runtime.load(bundle)
    assert len(session.digest) == 64
    assert ingot_runtime.load(bundle, digest=session.digest).digest == session.digest
    with pytest.raises(ingot_runtime.DigestError):
        ingot_runtime.load(bundle, digest=session.digest[::-1])


def test_bound_calls_go_to_all_sessions(bundle: Path, threads: ThreadPoolExecutor) -> None:
    """Each `bind` takes the next session, so that as many bound calls as sessions run at once."""
    session, gate = gated(bundle, sessions=2)
    calls = [threads.submit(session.bind({"x": X}).run) for _ in range(2)]
    gate.wait_for_call()
    gate.wait_for_call()
    gate.opened.set()
    assert [end_of(each) for each in calls] == ["None"] * 2


def test_what_several_sessions_tell(bundle: Path, tmp_path: Path) -> None:
    """Counts of devices are sums; a trace of the last run is refused, as there are several."""
    session = ingot_runtime.load(bundle, sessions=2, executor="vm")
    for told in (session.trace, session.steps):
        with pytest.raises(ingot_runtime.InputError, match="each of 2 sessions has a last run"):
            told()
    write_bundle(two_device_contents(4), tmp_path / "two", tree_entry)
    session = ingot_runtime.load(tmp_path / "two", sessions=2)
    x = {"x": np.ones((4, WIDTH), np.float32)}
    session.run(x)
    one = session.device_counts()
    for bound in (session.bind(), session.bind()):
        bound.run()
    three = session.device_counts()
    assert one.launches
    assert three.launches == {name: 3 * count for name, count in one.launches.items()}
    assert three.copies == {edge: (3 * n, 3 * size) for edge, (n, size) in one.copies.items()}
