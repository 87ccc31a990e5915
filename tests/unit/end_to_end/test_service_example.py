"""The service example: right answers, refusals with a reason, and an end that loses no request."""

import asyncio
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry
from tests.tidy.source import ROOT
from tests.unit.runtime.test_runtime_callers import Gate, until

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle

sys.path.insert(0, str(ROOT / "examples" / "service"))

import client
import serve
from app import App, Event
from service import Service, Settings

HANG_SECONDS = 300
X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "dynamic.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def arrays_of(body: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(body)) as found:
        return dict(found)


def app_of(bundle: Path, executor: str = "aot", **settings: Any) -> App:
    """Return the application as it is after startup."""
    app = App()
    app.service = Service(Settings(str(bundle), 1, **settings))
    app.service.session = ingot_runtime.load(bundle, executor=executor)
    return app


class Client:
    """One request to an application, without a server between."""

    def __init__(self, app: App, body: bytes = b"", route: str = "POST /run") -> None:
        self.sent: list[Event] = []
        self.left = asyncio.Event()
        self.events: list[Event] = [
            {"type": "http.request", "body": body[:100], "more_body": True},
            {"type": "http.request", "body": body[100:], "more_body": False},
        ]
        method, path = route.split()
        headers = [(b"content-length", str(len(body)).encode())]
        scope = {"type": "http", "method": method, "path": path, "headers": headers}
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Event:
        if self.events:
            return self.events.pop(0)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, event: Event) -> None:
        self.sent.append(event)

    async def answer(self) -> tuple[int, bytes]:
        """Return status and body."""
        await asyncio.wait_for(self.task, HANG_SECONDS)
        start, body = self.sent
        return start["status"], body["body"]


def answer_to(app: App, body: bytes = b"", route: str = "POST /run") -> tuple[int, bytes]:
    """Return status and body of one request."""

    async def main() -> tuple[int, bytes]:
        return await Client(app, body, route).answer()

    return asyncio.run(main())


def test_answers(bundle: Path) -> None:
    """A run gives the outputs; the health tells which bundle is served, and counts."""
    app = app_of(bundle)
    status, body = answer_to(app, npz(x=X))
    assert status == 200
    assert (arrays_of(body)["y"] == tiny_reference(X)).all()
    status, body = answer_to(app, route="GET /health")
    assert app.service
    assert (status, json.loads(body)["digest"]) == (200, app.service.session.digest)
    assert (json.loads(body)["served"], json.loads(body)["running_or_waiting"]) == (1, 0)


def bomb() -> bytes:
    """Return a small archive that unpacks into a large one."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(1 << 20))
    return file.getvalue()


@pytest.mark.parametrize(
    ("body", "route", "status", "said"),
    [
        (npz(x=X.astype(np.float64)), "POST /run", 400, "wrong dtype of input 'x'"),
        (npz(z=X), "POST /run", 400, "no input 'z'"),
        (npz(x=np.array([{}], object)), "POST /run", 400, "the body is no .npz file"),
        (b"PK nothing", "POST /run", 400, "the body is no .npz file"),
        (b"", "POST /run", 400, "the body is no .npz file"),
        (bytes(20_000), "POST /run", 413, "the body is too large"),
        (bomb(), "POST /run", 413, "the arrays are too large"),
        (b"", "GET /run", 404, "no GET /run"),
        (b"", "POST /other", 404, "no POST /other"),
    ],
)
def test_refusals(bundle: Path, body: bytes, route: str, status: int, said: str) -> None:
    """What cannot be run is refused with the reason, and the next request is answered."""
    app = app_of(bundle, body_bytes_max=10_000)
    got, told = answer_to(app, body, route)
    error = json.loads(told)["error"]
    assert (got, error["what"]) == (status, said)
    assert set(error) == {"what", "where", "why", "do"}
    assert all(error.values())
    assert answer_to(app, npz(x=X))[0] == 200


ODD_HEADER = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4L, 8L)}\n"


def odd_bodies() -> Iterator[bytes]:
    """Yield bodies that nobody's client writes: other compressions, passwords, sizes that lie, many
    members, headers that are none, each byte of the heads changed, cut anywhere."""
    one = io.BytesIO()
    np.save(one, X)
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", kind) as made:
            made.writestr("x.npy", one.getvalue())
        yield packed.getvalue()
    for header in (ODD_HEADER, b"(" * 9000, b"", b"\xff" * 80):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made:
            length = len(header).to_bytes(2, "little")
            made.writestr("x.npy", b"\x93NUMPY\1\0" + length + header + X.tobytes())
        yield file.getvalue()
    yield one.getvalue()
    yield b"PK\x01\x02" * 20_000 + npz(x=X)
    good = npz(x=X)
    yield from (good[:end] for end in range(0, len(good), 11))
    for start in (0, good.index(b"PK\x01\x02")):
        for at in range(start, start + 46):
            for value in (0, 1, 255):
                yield good[:at] + bytes((value,)) + good[at + 1 :]


def test_odd_bodies_are_the_fault_of_the_client(bundle: Path) -> None:
    """Whatever a body is, it is run, or refused as bad (400) or too large (413); never is the
    service said to have failed."""
    service = app_of(bundle).service
    assert service
    found: set[int] = set()
    for body in odd_bodies():
        try:
            outputs = service.session.run(service.decode(body))
            assert outputs["y"].shape[1] == WIDTH
            found.add(200)
        except Exception as error:  # what any is told to the client as
            found.add(service.answer_to(error).status)
    assert found <= {200, 400, 413}
    assert {200, 400} <= found


def test_outputs_of_any_name(bundle: Path) -> None:
    """Also ``file``, ``args`` and ``allow_pickle``, which numpy takes for options."""
    names = ("file", "args", "kwds", "allow_pickle", "a/b", "ü")
    answer = Service.encode(dict.fromkeys(names, X))
    assert answer.status == 200
    assert list(arrays_of(answer.body)) == list(names)


@pytest.mark.parametrize("sent", [0, 50, 150])
def test_a_body_that_does_not_arrive(bundle: Path, sent: int) -> None:
    """A client that stops in its body is told so at the deadline, and its place is free: the next
    one is answered."""
    app = app_of(bundle, timeout_seconds=0.05, waiting_max=0)
    assert app.service

    async def main() -> tuple[int, bytes]:
        slow = Client(app, npz(x=X))
        parts = slow.events[: sent // 100]  # what it has sent
        slow.events = [*parts, *([{**slow.events[0], "body": b"x" * 7}] if sent % 100 else [])]
        return await slow.answer()

    status, body = asyncio.run(main())
    assert (status, json.loads(body)["error"]["where"]) == (408, "the body")
    assert json.loads(app.service.health().body)["running_or_waiting"] == 0


def test_the_wait_for_a_body_counts(bundle: Path) -> None:
    """Body and call have one deadline: that of the server, where it gives one."""
    app = app_of(bundle)
    assert app.service
    given: list[float] = []

    async def arun(_: object, timeout: float) -> dict[str, Any]:  # noqa: ASYNC109
        given.append(timeout)
        return {}

    app.service.session = cast("Any", SimpleNamespace(arun=arun))
    body = npz(x=X)

    async def main() -> None:
        deadline = asyncio.get_running_loop().time() + 1000
        scope = {"type": "http", "method": "POST", "path": "/run", "deadline": deadline}
        headers = [(b"content-length", str(len(body)).encode())]
        events: list[Event] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Event:
            if not events:
                await asyncio.Event().wait()  # the client stays
            return events.pop(0)

        async def send(_: Event) -> None:
            """Take the answer."""

        await app({**scope, "headers": headers}, receive, send)

    asyncio.run(main())
    (seconds,) = given
    assert 30 < seconds <= 1000


def test_answers_are_not_held_back() -> None:
    """Connections send at once what there is, also where a server has the listening socket's number
    alone and takes it for another kind."""
    with serve.listen("127.0.0.1", 0) as listening:
        duplicate = socket.fromfd(listening.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
        for each in (listening, duplicate):
            with socket.create_connection(listening.getsockname()):
                accepted: int = cast("Any", each)._accept()[0]
                with socket.socket(fileno=accepted) as connection:
                    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        duplicate.close()


def test_every_error_has_four_parts() -> None:
    """Those of calls, and what nobody has thought of."""
    errors: list[tuple[Exception, int]] = [
        (ingot_runtime.InputError("the model refuses these inputs", "", "why"), 400),
        (ingot_runtime.LimitError("a call needs too much memory", "", "why"), 413),
        (ingot_runtime.BusyError("the session is closed", "", "why"), 503),
        (ingot_runtime.ChangedError("the bundle changed", "", "why"), 500),
        (KeyError("x"), 500),
    ]
    for error, status in errors:
        answer = Service.answer_to(error)
        parts = json.loads(answer.body)["error"]
        assert (answer.status, list(parts)) == (status, ["what", "where", "why", "do"])
        assert all(parts.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.ingot", "--how", "threads"], "cannot open 'none.ingot'\n  where"),
        (["none.ingot"], "cannot open 'none.ingot'\n  where"),
        (["BUNDLE", "--port", "TAKEN"], "error: cannot listen on 127.0.0.1:"),
        (["BUNDLE", "--processes", "2"], "threads serve in one process\n  do: --how uvicorn"),
        (["BUNDLE", "--sessions", "0"], "argument --sessions: invalid count value: '0'"),
        (["BUNDLE", "--processes", "0"], "argument --processes: invalid count value: '0'"),
    ],
)
def test_a_server_that_cannot_start(
    words: list[str],
    said: str,
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It says why, without a traceback, before anybody connects."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stands_for = {"BUNDLE": str(bundle), "TAKEN": str(taken.getsockname()[1])}
        given = [stands_for.get(word, word) for word in words]
        monkeypatch.setattr(sys, "argv", ["serve.py", *given])
        with pytest.raises(SystemExit) as caught:
            serve.main()
    assert said in f"{caught.value.code}\n{capsys.readouterr().err}"


def not_installed(_name: str) -> None:
    """What ``find_spec`` says of a package that is not there."""


def test_a_server_without_uvicorn(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what to install, and the way that needs nothing."""
    monkeypatch.setattr(sys, "argv", ["serve.py", str(bundle), "--how", "uvicorn"])
    monkeypatch.setattr("importlib.util.find_spec", not_installed)
    with pytest.raises(SystemExit, match="pip install uvicorn httptools, or --how threads"):
        serve.main()


def test_a_client_that_cannot_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that are not there, and an address that is none."""
    for words, said in (
        (["http://127.0.0.1:9", str(tmp_path / "none")], "error: cannot read "),
        (["localhost", str(tmp_path)], "error: cannot read "),
        (["localhost", __file__], "error: 'localhost' is no address of a service"),
    ):
        monkeypatch.setattr(sys, "argv", ["client.py", *words])
        with pytest.raises(SystemExit) as caught:
            client.main()
        assert str(caught.value.code).startswith(said)


def test_too_many_requests(bundle: Path) -> None:
    """Beyond the sessions and those who may wait, requests are refused at once; the others are
    answered; who leaves makes room."""
    app = app_of(bundle, "vm", waiting_max=2)
    assert app.service
    service, gate = app.service, Gate(app.service.session)

    async def main() -> list[int]:
        clients = [Client(app, npz(x=X)) for _ in range(3)]
        await asyncio.to_thread(gate.wait_for_call)
        status, body = await Client(app, npz(x=X)).answer()
        assert (status, json.loads(body)["error"]["do"]) == (503, "try again in a second")
        clients[1].left.set()
        await asyncio.wait_for(clients[1].task, HANG_SECONDS)
        assert clients[1].sent == []
        clients[1] = Client(app, npz(x=X))
        await asyncio.sleep(0)
        gate.opened.set()
        return [(await client.answer())[0] for client in clients]

    assert asyncio.run(main()) == [200] * 3
    assert json.loads(service.health().body)["refused"] == 1
    assert len(gate.entered) == 3


def test_a_slow_request(bundle: Path) -> None:
    """A call that takes longer than the service allows is ended and told."""
    app = app_of(bundle, "vm", timeout_seconds=0.05)
    assert app.service
    gate = Gate(app.service.session)
    status, body = answer_to(app, npz(x=X))
    gate.opened.set()
    assert (status, json.loads(body)["error"]["what"]) == (504, "the call took too long")


@pytest.fixture
def server(request: pytest.FixtureRequest, bundle: Path) -> Iterator["subprocess.Popen[str]"]:
    """A server in a process of its own."""
    with serving(request.param, bundle) as process:
        yield process


@contextmanager
def serving(param: str, bundle: Path, *more: str) -> Generator["subprocess.Popen[str]"]:
    how, processes = (*param.split(", "), "1")[:2]
    script = ROOT / "examples" / "service" / "serve.py"
    options = [str(bundle), "--port", "0", "--how", how, "--processes", processes.split()[0]]
    options += more
    with subprocess.Popen(
        [sys.executable, str(script), *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def post(port: int, body: bytes) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_SECONDS)) as connection:
        connection.request("POST", "/run", body)
        response = connection.getresponse()
        return response.status, response.read()


@pytest.mark.broad
@pytest.mark.parametrize("server", ["threads", "uvicorn", "uvicorn, 2 processes"], indirect=True)
def test_served(server: "subprocess.Popen[str]") -> None:
    """Callers from several threads get right answers; after SIGTERM, a request that was accepted is
    still answered, and the server ends without a word."""
    assert server.stdout
    assert server.stderr
    port = int(server.stdout.readline().rsplit(":", 1)[1])
    large = np.ones((50_000, WIDTH), np.float32)
    with ThreadPoolExecutor(8) as threads:
        for x in (X, large):
            answers = list(threads.map(post, [port] * 16, [npz(x=x)] * 16))
            assert [status for status, _ in answers] == [200] * 16
            assert all((arrays_of(body)["y"] == tiny_reference(x)).all() for _, body in answers)
    body = npz(x=large)
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as client:
        head = f"POST /run HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Connection: close\r\n\r\n".encode() + body[:1000])
        assert post(port, npz(x=X))[0] == 200  # so the other one was accepted before
        server.send_signal(signal.SIGTERM)
        client.sendall(body[1000:])
        with client.makefile("rb") as file:
            assert file.read().split()[1] == b"200"
    until(lambda: server.poll() is not None)
    assert server.returncode in (0, -signal.SIGTERM)
    said = server.stderr.read()
    assert said == "", said


HEAD = b"POST /run HTTP/1.1\r\nHost: here\r\nContent-Length: 60000\r\n"
UNFINISHED = {
    "no byte": b"",
    "half a line": b"POST /ru",
    "half the headers": HEAD,
    "no body": HEAD + b"\r\n",
    "half the body": HEAD + b"\r\n" + bytes(1000),
}


@pytest.mark.broad
@pytest.mark.parametrize("how", ["threads", "uvicorn"])
def test_slow_clients_keep_no_place(how: str, bundle: Path) -> None:
    """Clients that stop anywhere in a request, or drip, or do not read, are cut off, and whoever
    comes then is answered: more of them than there are places hold nothing for ever."""
    more = ("--timeout", "1", "--sessions", "1", "--waiting", "1")
    with serving(how, bundle, *more) as process, ExitStack() as stack:
        assert process.stdout
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        slow: list[socket.socket] = []
        for sent in (*UNFINISHED.values(), *UNFINISHED.values()):
            client = socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS)
            slow.append(stack.enter_context(client))
            client.sendall(sent)
        for client in slow:
            with suppress(ConnectionError):  # an end is an end
                while client.recv(1 << 16):
                    pass
        until(lambda: post(port, npz(x=X))[0] == 200)
        body = npz(x=np.ones((200_000, WIDTH), np.float32))
        head = f"POST /run HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
        deaf = socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS)
        stack.enter_context(deaf)
        with suppress(ConnectionError):
            deaf.sendall(head.encode() + body)
        process.send_signal(signal.SIGTERM)
        until(lambda: process.poll() is not None)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("how", ["threads", "uvicorn"])
def test_an_end_waits_for_nobody_who_asks_nothing(how: str, bundle: Path) -> None:
    """Connections without a whole head are ended by SIGTERM, whatever the deadline."""
    with serving(how, bundle, "--timeout", "100000") as process, ExitStack() as stack:
        assert process.stdout
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        for sent in list(UNFINISHED.values())[:3]:
            client = socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS)
            stack.enter_context(client).sendall(sent)
        assert post(port, npz(x=X))[0] == 200  # so the others were accepted before
        process.send_signal(signal.SIGTERM)
        until(lambda: process.poll() is not None)


@pytest.mark.parametrize("how", ["threads", "uvicorn"])
def test_huge_requests_are_told_so(how: str, bundle: Path) -> None:
    """A body beyond the limit, a length of any number of digits, none at all: an answer in four
    parts, also for a client that sends all of it first."""
    with serving(how, bundle) as process:
        assert process.stdout
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        for length, status in (("68000000", 413), ("9" * 18, 413), ("-1", 400), ("x", 400)):
            with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as client:
                head = f"POST /run HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n"
                client.sendall(head.encode() + bytes(100_000))
                with client.makefile("rb") as file:
                    assert int(file.readline().split()[1]) == status
        assert post(port, npz(x=X))[0] == 200


@pytest.mark.parametrize("how", ["threads", "uvicorn"])
def test_connections_stay(how: str, bundle: Path) -> None:
    """Requests follow each other on a connection, also a waiting one behind the one before; after
    SIGTERM, a connection that asks for nothing is not waited for."""
    with serving(how, bundle, "--timeout", "100000") as process:
        assert process.stdout
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        body = npz(x=X)
        head = f"POST /run HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as client:
            client.sendall(2 * (head.encode() + body))
            answers = client.makefile("rb")
            for _ in range(3):
                assert answers.readline().split()[1] == b"200"
                length = int(http.client.parse_headers(answers)["content-length"])
                assert (arrays_of(answers.read(length))["y"] == tiny_reference(X)).all()
                client.sendall(head.encode() + body)
            process.send_signal(signal.SIGTERM)
            until(lambda: process.poll() is not None)


ODD_HEADS = (
    b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"X: " + b"x" * 1_000_000,
    200_000 * b"X: x\r\n",
)


@pytest.mark.parametrize("how", ["threads", "uvicorn"])
def test_odd_heads(how: str, bundle: Path) -> None:
    """A request whose end is not clear, or whose head has no end, is refused, and its connection is
    over: what follows is no request."""
    with serving(how, bundle) as process:
        assert process.stdout
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        for head in ODD_HEADS:
            said = said_to(port, b"POST /run HTTP/1.1\r\nHost: here\r\n" + head + b"\r\nabcde")
            assert said == b"" or said.split()[1] in (b"400", b"431")
            assert b" 200 " not in said
        assert post(port, npz(x=X))[0] == 200


def said_to(port: int, request: bytes) -> bytes:
    """All that comes after a request, with another one behind it."""
    said, health = b"", b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as client:
        with suppress(ConnectionError):  # an end is an end
            client.sendall(request + health)
            while part := client.recv(1 << 16):
                said += part
        return said


@pytest.mark.broad
@pytest.mark.parametrize("how", ["threads", "uvicorn"])
def test_new_weights(how: str, tmp_path: Path) -> None:
    """SIGHUP brings those of the file that is there then; of one with other code, the reason."""
    path, other = tmp_path / "m.ingot", tmp_path / "other.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    with serving(how, path) as process:
        assert process.stdout
        assert process.stderr
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        for contents, seed, said in (
            (tiny_contents(seed=5), 5, "serves "),
            (tiny_contents("batch"), 5, "goes on with the old weights"),
        ):
            assert post(port, npz(x=X))[0] == 200  # it is there
            write_bundle(contents, other, tree_entry)
            other.rename(path)
            process.send_signal(signal.SIGHUP)
            assert process.stderr.readline().startswith(said)
            status, body = post(port, npz(x=X))
            assert (status, arrays_of(body)["y"].tobytes()) == (
                200,
                tiny_reference(X, seed).tobytes(),
            )
        process.send_signal(signal.SIGTERM)
        process.communicate()
