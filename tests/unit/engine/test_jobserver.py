"""The jobserver client: never more jobs than make allows, every token back whatever happens,
``-j1`` where there is no server."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingot_build_rules.engine.executors.jobserver import JobServer

# Runs ``argv[2]`` jobs of 20 ms, each a line "+" and a line "-" in the file ``argv[1]``; says the
# warning, if there is one.
WORKER = """
import os, select, sys, time
from ingot_build_rules.engine.executors.jobserver import JobServer
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
waiting, running = int(sys.argv[2]), []
server = JobServer.from_makeflags(os.environ["MAKEFLAGS"])
assert server is not None, os.environ["MAKEFLAGS"]
print(server.warning)
with server:
    while waiting or running:
        while waiting and server.try_acquire():
            waiting -= 1
            os.write(log, b"+")
            running.append(time.monotonic() + 0.02)
        rest = max(0.0, running[0] - time.monotonic()) if running else None
        assert rest is not None or server.fd is not None
        select.select([server.fd] if waiting and server.fd is not None else [], [], [], rest)
        while running and running[0] <= time.monotonic():
            running.pop(0)
            os.write(log, b"-")
            server.release()
        if len(sys.argv) > 3 and waiting <= 2:
            raise RuntimeError("a failing build")
"""


def make(folder: Path, makefile: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real make in ``folder``; ``$(RUN)`` is the worker."""
    (folder / "worker.py").write_text(WORKER)
    run = f"RUN = {sys.executable} worker.py log\n"
    (folder / "Makefile").write_text(run + makefile)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def most_at_once(log: Path) -> int:
    """Return how many jobs ran together at most; all must have ended."""
    running = most = 0
    for sign in log.read_text():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert running == 0
    return most


@pytest.mark.parametrize("jobs", [2, 3, 5])
def test_under_make_all_its_jobs_are_used_and_no_more(jobs: int, tmp_path: Path) -> None:
    """One builder below ``make -jN`` reaches N jobs, and make gets every token back."""
    done = make(tmp_path, "all:\n\t+@$(RUN) 20\n", f"-j{jobs}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
    assert most_at_once(tmp_path / "log") == jobs


def test_several_builders_share(tmp_path: Path) -> None:
    """Three builders and plain recipes together keep to the number that make was given."""
    rules = (
        "all: a b c d\na b c:\n\t+@$(RUN) 12\nd:\n\t@printf + >> log; sleep 0.1; printf - >> log\n"
    )
    done = make(tmp_path, rules, "-j3")
    assert (done.returncode, done.stderr) == (0, "")
    assert 2 <= most_at_once(tmp_path / "log") <= 3
    assert (tmp_path / "log").read_text().count("+") == 37


def test_a_failing_builder_gives_its_tokens_back(tmp_path: Path) -> None:
    """make counts its tokens at the end and finds all of them."""
    done = make(
        tmp_path, "all: a b\na:\n\t+@$(RUN) 9 fail 2>/dev/null\nb:\n\t+@$(RUN) 9\n", "-j4", "-k"
    )
    assert done.returncode == 2
    assert "Error 1" in done.stderr
    assert "token" not in done.stderr


def test_a_recipe_that_make_does_not_take_for_a_make_builds_with_one_job(tmp_path: Path) -> None:
    """make closes its pipe there, names it all the same, and the builder says what to do."""
    done = make(tmp_path, "all:\n\t@$(RUN) 5\n", "-j4")
    assert (done.returncode, done.stderr) == (0, "")
    assert "the jobserver of make is not available" in done.stdout
    assert "one job at a time; put + before the recipe's command" in done.stdout
    assert most_at_once(tmp_path / "log") == 1


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A server's pipe with the tokens ``abc``."""
    read_fd, write_fd = os.pipe()
    os.write(write_fd, b"abc")
    yield read_fd, write_fd
    os.close(read_fd)
    os.close(write_fd)


def connect(makeflags: str) -> JobServer:
    """Return a client that has no warning."""
    server = JobServer.from_makeflags(makeflags)
    assert server is not None
    assert server.warning == ""
    return server


@pytest.mark.parametrize("style", ["auth", "fds"])
def test_tokens_of_a_pipe(style: str, pipe: tuple[int, int]) -> None:
    """One implicit token and one per byte; the same bytes go back, make's first; the pipe's own
    flags stay."""
    flags = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in pipe]
    with connect(f"kw -j4 --jobserver-{style}={pipe[0]},{pipe[1]} -- A=1") as server:
        assert [server.try_acquire() for _ in range(6)] == [True, True, True, True, False, False]
        assert server.fd is not None
        assert select.select([server.fd], [], [], 0)[0] == []
        server.release()
        assert select.select([server.fd], [], [], 0)[0] == [server.fd]
        assert server.try_acquire()
        for _ in range(4):
            server.release()
        with pytest.raises(ValueError, match="not held"):
            server.release()
        assert [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in pipe] == flags
    assert sorted(os.read(pipe[0], 10)) == sorted(b"abc")


def test_tokens_of_a_fifo(tmp_path: Path) -> None:
    """The other way that make offers its tokens, from version 4.4 on."""
    path = tmp_path / "a fifo"
    os.mkfifo(path)
    keeper = os.open(path, os.O_RDWR)
    os.write(keeper, b"++")
    path.rename(path.with_name("fifo"))
    with connect(f" -j3 --jobserver-auth=fifo:{tmp_path}/fifo") as server:
        assert [server.try_acquire() for _ in range(4)] == [True, True, True, False]
    assert os.read(keeper, 10) == b"++"
    os.close(keeper)


def fail_with_all_tokens(server: JobServer, error: type[BaseException]) -> None:
    """Take every token, then raise."""
    with server:
        while server.try_acquire():
            pass
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_every_end_gives_all_tokens_back(error: type[BaseException], pipe: tuple[int, int]) -> None:
    """An exception of any kind leaves the server whole and the client closed."""
    before = len(os.listdir("/proc/self/fd"))
    server = connect(f"--jobserver-auth={pipe[0]},{pipe[1]}")
    with pytest.raises(error):
        fail_with_all_tokens(server, error)
    assert sorted(os.read(pipe[0], 10)) == sorted(b"abc")
    assert server.fd is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_interrupted_builders_give_all_tokens_back(pipe: tuple[int, int]) -> None:
    """Ctrl-C at any moment of taking and giving loses nothing and adds nothing."""
    code = (
        "import os, sys; from ingot_build_rules.engine.executors.jobserver import JobServer\n"
        "with JobServer.from_makeflags(sys.argv[1]) as server:\n"
        "  print(flush=True)\n"
        "  while True:\n"
        "    if server.try_acquire() and server.try_acquire(): server.release()\n"
        "    server.release()\n"
    )
    for index in range(8):
        command = [sys.executable, "-c", code, f"--jobserver-auth={pipe[0]},{pipe[1]}"]
        child = subprocess.Popen(
            command, pass_fds=pipe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(index / 1000)
        child.send_signal(signal.SIGINT)
        child.wait()
        child.stdout.close()
    assert sorted(os.read(pipe[0], 10)) == sorted(b"abc")


def test_a_forked_child_gives_nothing_back(pipe: tuple[int, int]) -> None:
    """The tokens are its parent's; given twice, make would run too many jobs."""
    with connect(f"--jobserver-auth={pipe[0]},{pipe[1]}") as server:
        while server.try_acquire():
            pass
        child = os.fork()
        if child == 0:
            server.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert select.select([pipe[0]], [], [], 0)[0] == []
    assert sorted(os.read(pipe[0], 10)) == sorted(b"abc")


@pytest.mark.parametrize(
    "makeflags", ["", "w", "-j4", "kw -j -- X=--jobserver-auth=3,4", "--no-jobserver-auth=3,4"]
)
def test_without_a_server_there_is_no_client(makeflags: str) -> None:
    """The caller's own number of jobs decides."""
    assert JobServer.from_makeflags(makeflags) is None


def test_of_several_servers_the_last_one_counts(pipe: tuple[int, int]) -> None:
    """As with every option that is given twice."""
    with connect(f"--jobserver-fds=998,999 -j --jobserver-auth={pipe[0]},{pipe[1]}") as server:
        assert [server.try_acquire() for _ in range(2)] == [True, True]


@pytest.mark.parametrize(
    ("auth", "reason"),
    [
        ("-2,-2", "closed"),
        ("3", "not understood"),
        ("sem:4", "not understood"),
        ("998,999", "No such file"),
        ("fifo:/nowhere", "No such file"),
        ("fifo:/dev/null", "not a pipe"),
        ("{file},{file}", "not a pipe"),
        ("{pipe},998", "No such file"),
    ],
)
def test_a_broken_server_gives_a_warning_and_one_job(
    auth: str, reason: str, pipe: tuple[int, int], tmp_path: Path
) -> None:
    """A closed, foreign or unknown server ends no build and opens nothing."""
    with (tmp_path / "file").open("w+") as file:
        auth = auth.format(file=file.fileno(), pipe=pipe[0])
        before = len(os.listdir("/proc/self/fd"))
        server = JobServer.from_makeflags(f"-j8 --jobserver-auth={auth}")
        assert server is not None
        assert reason in server.warning
        with server:
            assert [server.try_acquire(), server.try_acquire()] == [True, False]
            server.release()
            assert server.try_acquire()
        assert len(os.listdir("/proc/self/fd")) == before
