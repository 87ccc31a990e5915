"""Calls that are stopped from outside: cancel, timeout, signals, the end of the process; in loops,
in one long launch, native and stepped."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.interrupted_child import run_interrupted
from tests.harness.lowering_harness import normal

import ingot
import ingot_runtime
from ingot_runtime.executor.session import Session
from ingot_runtime.loader import ending
from ingot_runtime.loader.watch import Watch

FOREVER = {"n": np.array(1 << 40), "x": np.ones(4, np.float32)}
SHORT = {"n": np.array(3), "x": np.ones(4, np.float32)}
EXECUTORS = ("aot", "vm")
SOON_SECONDS, AT_ONCE_SECONDS = 0.05, 0.001


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = x + 1, n times."""
    from onnx import TensorProto, helper

    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "one"], ["w"]),
            helper.make_node("Identity", ["going"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [4]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [4]),
        ],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    model = make_model(
        nodes,
        [tensor("n", [], 7), tensor("x", [4])],
        [tensor("y", [4])],
        {"one": np.ones(1, np.float32)},
    )
    path = tmp_path_factory.mktemp("stop") / "loop.ingot"
    ingot.compile(model).save(path)
    return path


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One launch: a matrix product with any number of rows."""
    model = make_model(
        [node("MatMul", "x w", "y")],
        [tensor("x", ["n", 512])],
        [tensor("y", ["n", 512])],
        {"w": normal(0, 512, 512)},
    )
    path = tmp_path_factory.mktemp("stop") / "product.ingot"
    ingot.compile(model).save(path)
    return path


def right(session: Session) -> bool:
    """Whether a short call gives what it should."""
    return bool((session.run(SHORT)["y"] == np.full(4, 4, np.float32)).all())


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("threads", [1, 2])
def test_timeout(loop: Path, executor: str, threads: int) -> None:
    """A call ends after its time; the error is a TimeoutError, too; the next call runs without a
    limit."""
    session = ingot_runtime.load(loop, executor=executor, threads=threads)
    for _ in range(2):
        with pytest.raises(ingot_runtime.TimedOutError, match="the call took too long") as caught:
            session.run(FOREVER, timeout=SOON_SECONDS)
        assert isinstance(caught.value, TimeoutError)
        assert right(session)


def test_bad_timeouts(loop: Path) -> None:
    """Seconds above 0."""
    session = ingot_runtime.load(loop)
    for bad in (0, -1, "1", True, float("nan")):
        with pytest.raises(ingot_runtime.InputError, match="bad timeout"):
            session.run(SHORT, timeout=bad)  # type: ignore[arg-type]  # the error is what is tested
    assert right(session)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_cancel(loop: Path, executor: str) -> None:
    """Another thread ends the call; a session without a call has nothing to end, and forgets
    nothing."""
    session = ingot_runtime.load(loop, executor=executor)
    assert not session.cancel()
    over = threading.Event()
    ended: list[bool] = []

    def stop() -> None:
        while not over.is_set() and not ended:
            ended.extend([True] * session.cancel())
            time.sleep(0.001)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(ingot_runtime.CancelledError, match="the call was cancelled"):
            session.run(FOREVER)
    finally:
        over.set()
        thread.join()
    assert ended == [True]
    assert right(session)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_late_cancel_ends_no_other_call(
    loop: Path, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call ended on its own while another thread was about to set the flag; the calls after it
    are not meant."""
    session = ingot_runtime.load(loop, executor=executor)
    asked, may_set, is_set = threading.Event(), threading.Event(), threading.Event()
    cancel = Watch.cancel

    def late(watch: Watch, call: int) -> None:
        asked.set()
        assert may_set.wait(60)
        cancel(watch, call)
        is_set.set()

    monkeypatch.setattr(Watch, "cancel", late)

    def stop() -> None:
        while not session.cancel():
            time.sleep(0.001)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        while not asked.is_set():
            with pytest.raises(ingot_runtime.TimedOutError):
                session.run(FOREVER, timeout=SOON_SECONDS)
        assert asked.wait(60)
        may_set.set()
        assert is_set.wait(60)
    finally:
        may_set.set()
        thread.join()
    assert right(session)
    with pytest.raises(ingot_runtime.TimedOutError):
        session.run(FOREVER, timeout=SOON_SECONDS)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_signal_handler_runs_during_a_call(loop: Path, executor: str) -> None:
    """What it raises ends the call and is raised as it is; where it raises nothing, the call goes
    on."""

    class Alarm(Exception):
        pass

    rang: list[int] = []

    def ring(number: int, _frame: object) -> None:
        rang.append(number)
        if len(rang) == 2:
            raise Alarm

    session = ingot_runtime.load(loop, executor=executor)
    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.2)
    try:
        with pytest.raises(Alarm):
            session.run(FOREVER)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert len(rang) == 2
    assert right(session)


def test_ctrl_c_ends_a_loop(loop: Path) -> None:
    """SIGINT ends an endless call with KeyboardInterrupt, and the session works afterwards."""
    text = """
import sys, numpy as np, ingot_runtime
session = ingot_runtime.load(sys.argv[1])
x = np.ones(4, np.float32)
session.run({"n": np.array(1), "x": x})
try:
    print("ready", flush=True)
    session.run({"n": np.array(1 << 40), "x": x})
except KeyboardInterrupt:
    print(session.run({"n": np.array(3), "x": x})["y"].tolist())
"""
    code, out, err = run_interrupted(text, str(loop))
    assert (code, out) == (0, "[4.0, 4.0, 4.0, 4.0]\n"), err


@pytest.mark.broad
@pytest.mark.parametrize("threads", [1, 2])
def test_one_long_launch_is_stopped(
    product: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch is run in pieces: it ends long before it would be done, on every thread, and pieces
    change no bit."""

    def as_asked(asked: int) -> int:
        return asked

    monkeypatch.setattr("ingot_runtime.load_bundle.usable_threads", as_asked)
    session = ingot_runtime.load(product, threads=threads)
    x = normal(1, 60_000, 512)
    whole = session.run({"x": x})["y"]
    assert (whole[-1000:] == session.run({"x": x[-1000:]})["y"]).all()
    assert np.isfinite(whole).all()  # so what is still NaN below was not computed
    bound = session.bind({"x": x})
    bound.outputs["y"].fill(np.nan)
    with pytest.raises(ingot_runtime.TimedOutError):
        bound.run(timeout=AT_ONCE_SECONDS)
    assert np.isnan(bound.outputs["y"]).any()
    bound.run()
    assert (bound.outputs["y"] == whole).all()


# The process lives on for a second after its interpreter, with what daemons are inside of, which
# asks for signals then: libc calls `sleep` with the exit status.
ENDS_LATE = """
import atexit, ctypes, sys, threading, time, numpy as np, ingot_runtime
from ingot_runtime.loader import watch
watch._POLL_INTERVAL_NANOSECONDS = 600_000_000
libc = ctypes.CDLL(None)
libc.on_exit(libc.sleep, None)
going = {"n": np.array(1 << 40), "x": np.ones(4, np.float32)}
short = {"n": np.array(3), "x": np.ones(4, np.float32)}
inside = threading.Event()
def work():
    inside.set()
    while True:
        call()
def end():
    threading.Thread(target=work, daemon=True).start()
    inside.wait()
    time.sleep(0.05)
    sys.exit(1)
"""


def end_of(text: str, *arguments: object) -> tuple[int, str, str]:
    """Return the exit status of a program, what it wrote to its output, and to that for errors."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS_LATE + text, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.broad
@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_interpreter_ends_during_a_call(loop: Path, executor: str) -> None:
    """The call of a daemon thread is ended, without a word, before the interpreter that it asks for
    signals is gone."""
    text = """
session = ingot_runtime.load(sys.argv[1], executor=sys.argv[2])
call = lambda: session.run(going)
end()
"""
    assert end_of(text, loop, executor) == (1, "", "")


@pytest.mark.broad
def test_the_interpreter_ends_during_short_calls(loop: Path) -> None:
    """Neither does a daemon thread begin another one; what `atexit` calls later, the main thread
    may."""
    text = """
atexit._clear()
@atexit.register
def later():
    other = ingot_runtime.load(sys.argv[1])
    print(session.run(short)["y"].tolist(), other.run(short)["y"].tolist())
atexit.register(ending._end)
session = ingot_runtime.load(sys.argv[1])
call = lambda: session.run(short)
end()
"""
    program = "from ingot_runtime.loader import ending" + text
    four = "[4.0, 4.0, 4.0, 4.0]"
    assert end_of(program, loop) == (1, f"{four} {four}\n", "")


@pytest.mark.broad
def test_the_interpreter_ends_during_loads(product: Path) -> None:
    """Nor does one load."""
    text = """
call = lambda: ingot_runtime.load(sys.argv[1], verify="full")
end()
"""
    assert end_of(text, product) == (1, "", "")


def test_contexts_end_before_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was made first, and in whatever order a set has it."""
    told: list[str] = []

    class Told:
        def __init__(self, name: str) -> None:
            self.end = lambda: told.append(name)

    nobody: tuple[set[object], ...] = (set(), set(), set())
    monkeypatch.setattr(ending, "_registered", nobody)
    monkeypatch.setattr(ending, "_last_threads", [])
    kinds = {"context": ending.CONTEXTS, "watch": ending.WATCHES, "pool": ending.POOLS}
    kept = [(Told(name), kind) for _ in range(50) for name, kind in reversed(kinds.items())]
    for who, kind in kept:
        ending.register_ending(who, kind)
    ending._end()  # pyright: ignore[reportPrivateUsage]
    assert told == [name for name in kinds for _ in range(50)]
    late = Told("late")
    ending.register_ending(late, ending.CONTEXTS)
    assert told[-1] == "late"


@pytest.mark.broad
def test_a_call_that_takes_the_end_back_is_ended_again(loop: Path) -> None:
    """As one does that was not meant by whoever has ended it."""
    text = """
session = ingot_runtime.load(sys.argv[1])
context = session._context
main = context._main
def again(call):
    code = main(call)
    context.watch._cancel.value = 0
    return code and main(call)
context._main = again
call = lambda: session.run(going)
end()
"""
    assert end_of(text, loop) == (1, "", "")


@pytest.mark.broad
def test_a_session_that_is_made_at_the_end_is_told(loop: Path) -> None:
    """One of a daemon thread, while `atexit` calls what was registered before."""
    text = """
from ingot_runtime.executor import context as module
from ingot_runtime.loader import ending
atexit._clear()
atexit.register(time.sleep, 0.5)
atexit.register(ending._end)
register = module.register_ending
def late(*arguments):
    while not ending._last_threads:
        time.sleep(0.001)
    time.sleep(0.1)
    register(*arguments)
module.register_ending = late
call = lambda: ingot_runtime.load(sys.argv[1]).run(going)
end()
"""
    assert end_of(text, loop) == (1, "", "")


# A call that hears nothing of the end, and a thread that is inside of it.
DEAF = """
from ingot_runtime.loader import ending
session = ingot_runtime.load(sys.argv[1])
deaf = threading.Event()
def main(call):
    deaf.set()
    time.sleep(SECONDS)
    print("back", flush=True)
    return 0
session._context._main = main
call = lambda: session.run(short)
threading.Thread(target=work, daemon=True).start()
deaf.wait()
"""


@pytest.mark.broad
def test_the_interpreter_waits_for_a_call_that_hears_nothing(loop: Path) -> None:
    """As of a device that is slow: it must not come back to an interpreter that is gone."""
    text = f"SECONDS = 1.5{DEAF}sys.exit(1)"
    assert end_of(text, loop) == (1, "back\n", "")


def test_who_does_not_want_to_wait_interrupts(loop: Path) -> None:
    """The process ends at once then."""
    text = f"""SECONDS = 1e6{DEAF}
import os, signal
def interrupt():
    while not ending._last_threads:
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
sys.exit(1)
"""
    assert end_of(text, loop) == (130, "", "")
