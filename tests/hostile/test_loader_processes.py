"""Forks, threads, shutdown: sessions in odd processes end without a signal, a hang or a foreign
exception, and give back what they had."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.c_loader import library
from tests.hostile.attacks import attacked
from tests.hostile.tiny import tiny_contents, tree_entry

from ingot_artifacts.bundle.write import write_bundle

QUICK_THREADS = 4
SLOW_TIMES = 40  # with 1, 2, 3, 4 threads in turn
_SECONDS = 300

# What each script begins with. `right` runs a session on inputs large enough for several threads.
_HEAD = """
import atexit, faulthandler, gc, os, sys, threading, time
import numpy as np
from tests.hostile import loaders, trials
trials.prepare()
path, threads, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
x = np.ones((100_000, 8), np.float32)
def load():
    made = loaders.loaded(path, way, threads)
    return made if way == "c" else made.session
first = load()
expected = first.run({"x": x})["y"]
first.close()  # which joins its threads
del first
def right(session):
    return bool((session.run({"x": x})["y"] == expected).all())
def forever(session):
    while True:
        assert right(session)
def daemon(work, *arguments):
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread
def end_of(action):
    return trials.verdict(lambda: bool(action()))
def forked(work):
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
# name -> (script, what it prints)
SCRIPTS: dict[str, tuple[str, str]] = {
    "fork beside a running session": (
        """
session = load()
daemon(forever, session)
time.sleep(0.01)
print(all(forked(lambda: right(load())) for _ in range(5)), all(forked(lambda: right(session)) for _ in range(5)))
""",
        "True True",
    ),
    "fork, then run in the child and its child": (
        """
session = load()
right(session)
print(forked(lambda: right(session) and forked(lambda: right(session)) and right(session)), right(session))
""",
        "True True",
    ),
    "a child closes what it has inherited": (
        """
session = load()
def child():
    good = right(session)
    session.close()
    return good and right(load())
print(forked(child), right(session))
""",
        "True True",
    ),
    "a child drops what it has inherited": (
        """
sessions = [load()]
def child():
    sessions.clear()
    return right(load())
print(forked(child), right(sessions[0]))
""",
        "True True",
    ),
    "exit with a daemon thread inside a run": (
        """
daemon(forever, load())
daemon(forever, load())
time.sleep(0.02)
print("end")
""",
        "end",
    ),
    "exit with a daemon thread that loads and drops": (
        """
def work():
    while True:
        load()
daemon(work)
daemon(work)
time.sleep(0.05)
print("end")
""",
        "end",
    ),
    "exit with sessions in globals, cycles and atexit": (
        """
session = load()
class Holder:
    def __init__(self):
        self.me, self.session = self, load()
        right(self.session)  # the first run imports, which an interpreter that ends does not do any more
    def __del__(self):
        if end_of(lambda: right(self.session)) not in ("right", "BusyError", "ChangedError"):
            print("wrong")
        self.session.close()
holder = Holder()
Holder()
gc.collect()
atexit.register(lambda: print(right(session), right(load())))
atexit.register(session.run, {"x": x})
sys.modules["kept"] = Holder()
print("end")
""",
        "end\nTrue True",
    ),
    "a cycle that runs its session while it is collected": (
        """
class Holder:
    def __init__(self):
        self.me, self.session = self, load()
        right(self.session)
    def __del__(self):
        print(end_of(lambda: right(self.session)) in (("right", "ChangedError") if threads == 1 else ("BusyError",)))
for _ in range(3):
    Holder()
    gc.collect()
""",
        "True\nTrue\nTrue",
    ),
    "exit with faulthandler": (
        """
faulthandler.enable()
session = load()
faulthandler.disable()
faulthandler.enable()
print(right(session))
other = load()
del session
print(right(other))
""",
        "True\nTrue",
    ),
    "sessions dropped by another thread": (
        """
before = trials.held()
def drop(sessions):
    right(sessions[0])
    sessions.clear()
for _ in range(5):
    sessions = [load()]
    threads_of = [threading.Thread(target=drop, args=(sessions,))]
    threads_of[0].start()
    threads_of[0].join()
del threads_of
print(trials.leaked(before) or "nothing left")
""",
        "nothing left",
    ),
    "many sessions from eight threads": (
        """
before = trials.held()
good = []
def work(index):
    for number in range(6):
        session = load()
        good.append(right(session))
        if (number + index) % 2:
            session.close()
workers = [threading.Thread(target=work, args=(index,)) for index in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
del workers, worker
print(len(good), all(good), trials.leaked(before) or "nothing left")
""",
        "48 True nothing left",
    ),
    "close twice, close during a run, use after close": (
        """
session = load()
bound = session.bind({"x": x})
running = threading.Event()
ends = set()
def work():
    running.set()
    for _ in range(40):
        ends.add(end_of(lambda: right(session)))
worker = threading.Thread(target=work)
worker.start()
running.wait()
closed = set()
while worker.is_alive() and "right" not in closed:
    closed.add(end_of(lambda: session.close() or True))
worker.join()
session.close()
session.close()
print(closed <= {"right", "BusyError"}, ends <= {"right", "BusyError"})
for use in (lambda: right(session), bound.run, lambda: session.bind({"x": x}), session.trace, lambda: session.loaded.image):
    print(end_of(use))
print(session.cancel(), session.inputs[0].name)
""",
        "True True\nBusyError\nBusyError\nBusyError\n{trace}\nInputError\nFalse x",
    ),
    "a daemon closes all descriptors": (
        """
session = load()
assert right(session)
os.closerange(3, 100)
ours = [open("/proc/self/status", "rb") for _ in range(20)]
print(end_of(lambda: right(session)), end_of(lambda: right(session)))
session.close()
del session
print(sum(bool(file.read()) for file in ours), right(load()))
""",
        "ChangedError ChangedError\n20 True",
    ),
    "a daemon closes all descriptors and opens none": (
        """
session = load()
os.closerange(3, 100)
print(end_of(lambda: right(session)))
del session
print(right(load()))
""",
        "ChangedError\nTrue",
    ),
}


OF_EACH_LOADER = (  # what does not depend on the interpreter's collector and its end
    "fork, then run in the child and its child",
    "a child closes what it has inherited",
    "a daemon closes all descriptors",
    "a daemon closes all descriptors and opens none",
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "tiny.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def require_end(name: str, bundle: Path, threads: int, executor: str) -> None:
    """The script prints what it should, nothing on standard error, and exits with 0."""
    text, expected = SCRIPTS[name]
    library()  # made once, for all of them
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        # Newer interpreters warn of every fork beside a thread: that is what is tried here.
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", _HEAD + text, str(bundle), str(threads), executor],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
    expected = expected.replace("{trace}", "BusyError" if executor == "vm" else "InputError")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, expected, "")


@pytest.mark.sweep(60)
@attacked
@pytest.mark.parametrize("name", OF_EACH_LOADER)
def test_odd_process_of_each_loader(name: str, bundle: Path, loader: str) -> None:
    """Forks and lost descriptors: an exit code of 0, and right numbers or an error."""
    require_end(name, bundle, QUICK_THREADS, "aot" if loader == "python" else loader)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.sweep(60)
def test_odd_process(name: str, bundle: Path) -> None:
    """Forks, daemon threads, interpreter exit, drops and closes in every order: an exit code of 0
    and right numbers."""
    require_end(name, bundle, QUICK_THREADS, "aot")


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_odd_process_many_times(name: str, executor: str, bundle: Path) -> None:
    """The same, again and again, in both executors."""
    for number in range(SLOW_TIMES):
        require_end(name, bundle, 1 + number % 4, executor)
