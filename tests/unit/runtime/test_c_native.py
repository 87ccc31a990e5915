"""Programs without Python: what `ingot export --executable` writes, the examples in C and C++, the
loader in C under sanitizers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from tests.c_loader import find_opencl, verdict_of_c, verdict_of_python
from tests.hostile.mutant_bundles import BUNDLES
from tests.hostile.mutations import mutant
from tests.hostile.reseal import Parts
from tests.hostile.two_devices import tree_entry, two_device_contents
from tests.tidy.source import ROOT
from tests.unit.backends.test_opencl_models import chain
from tests.unit.runtime.test_c_loader import feed, mutated
from tests.unit.runtime.test_signatures import Owner, sign

import ingot
import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.format import header as head
from ingot_runtime.format.file import TRAILER, TRAILER_MAGIC
from ingot_runtime.npz import write_npz

pytestmark = pytest.mark.native
PROGRAMS = ROOT / "tests" / "unit" / "c_programs"
SIZE_BYTES_MAX = 100_000
DYNAMIC_SIZE_BYTES_MAX = 160_000
MUTANT_COUNT = 2500  # of each bundle
THREADS = ("-fsanitize=thread", "-g", "-O1")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")


def run(
    command: Sequence[str | os.PathLike[str]],
    code: int = 0,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run a program, which ends with ``code``; of the environment it has the path, and what is
    given."""
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of open sizes, loops and branches as a program, over the cache of the tests."""
    folder = tmp_path_factory.mktemp("program")
    BUNDLES["dynamic"](folder / "m.ingot")
    arguments = ["export", str(folder / "m.ingot"), "--executable", "-o", str(folder / "m")]
    assert main(arguments) == 0
    return folder / "m"


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with a call to prove it by, as a program."""
    folder = tmp_path_factory.mktemp("proved")
    model = ROOT / "tests" / "models" / "lstm" / "static.onnx"
    line = ["compile", str(model), "-o", str(folder / "m.ingot"), "--selftest", "1", "-q"]
    assert main([*line, "--target", "x86-64-v2"]) == 0
    arguments = ["export", str(folder / "m.ingot"), "--executable", "-o", str(folder / "m")]
    assert main(arguments) == 0
    return folder / "m"


def test_program_gives_the_same_bits(program: Path, tmp_path: Path) -> None:
    """From .npz to .npz, from .npy and bare elements to the same; numpy reads all of it."""
    with open(tmp_path / "x.npz", "wb") as file:
        write_npz(file, feed())
    np.save(tmp_path / "x.npy", feed()["x"])
    (tmp_path / "count.raw").write_bytes(feed()["count"].tobytes())
    (tmp_path / "which.raw").write_bytes(feed()["which"].tobytes())
    with ingot_runtime.load(program) as session:
        wanted = session.run(feed())
    run(
        [program, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz", "--threads", "2"]
    )
    pairs = ("x=x.npy", "count=count.raw", "which=which.raw")
    given = [item for pair in pairs for item in ("--inputs", pair.replace("=", f"={tmp_path}/"))]
    taken = ["--outputs", f"y={tmp_path}/y.npy", "--outputs", f"places={tmp_path}/places.raw"]
    run([program, *given, *taken])
    with np.load(tmp_path / "y.npz") as found:
        for name, array in wanted.items():
            assert (found[name].shape, found[name].tobytes()) == (array.shape, array.tobytes())
    assert np.load(tmp_path / "y.npy").tobytes() == wanted["y"].tobytes()
    assert (tmp_path / "places.raw").read_bytes() == wanted["places"].tobytes()


def test_program_reads_compressed_archives(program: Path, tmp_path: Path) -> None:
    """What ``numpy.savez_compressed`` wrote, and not what was damaged."""
    np.savez_compressed(tmp_path / "x.npz", allow_pickle=False, **feed())
    with ingot_runtime.load(program) as session:
        wanted = session.run(feed())["y"]
    run([program, "--inputs", tmp_path / "x.npz", "--outputs", f"y={tmp_path}/y.npy"])
    assert np.load(tmp_path / "y.npy").tobytes() == wanted.tobytes()
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[60] ^= 4
    (tmp_path / "x.npz").write_bytes(data)
    assert "cannot read inputs" in run([program, "--inputs", tmp_path / "x.npz"], 1).stderr


def test_program_proves_itself(program: Path, proved: Path, tmp_path: Path) -> None:
    """One line and exit code 0, or 4 where an output is another; the loader in Python prints it,
    too."""
    assert "the bundle holds no selftest" in run([program, "--selftest"], 1).stderr
    told = run([proved, "--selftest"]).stdout
    line = [sys.executable, "-m", "ingot_runtime", "selftest", str(proved)]
    assert told == run(line).stdout
    assert re.fullmatch(rf"{proved}: passed, 1 of x86-64-v2, error \S+\n", told)
    with opened(proved) as source:
        data = bytearray(source.section(head.SELFTEST, 0))
        data[-61] ^= 0x40
        rewrite_bundle(source, Changes({(head.SELFTEST, 0): bytes(data)}), tmp_path / "m.ingot")
    arguments = ["export", str(tmp_path / "m.ingot"), "--executable", "-o", str(tmp_path / "m")]
    assert main(arguments) == 0
    assert "failed, 1 of x86-64-v2" in run([tmp_path / "m", "--selftest"], 4).stdout


def test_program_asks_for_a_signature(program: Path, tmp_path: Path) -> None:
    """By PEM files and hex digits; of one of several."""
    alice, bob = Owner(tmp_path, "alice", 1), Owner(tmp_path, "bob", 2)
    bundle = tmp_path / "m.ingot"
    BUNDLES["dynamic"](bundle)
    sign(bundle, alice)
    assert main(["export", str(bundle), "--executable", "-o", str(tmp_path / "m")]) == 0
    asked: list[str | Path] = [tmp_path / "m", "--describe", "--require-key"]
    run([*asked, alice.public])
    run([*asked, alice.raw.hex()])
    run([*asked, bob.public, "--require-key", alice.public])
    assert "the bundle is not signed by a required key" in run([*asked, bob.public], 4).stderr
    assert "not a public key" in run([*asked, alice.secret], 1).stderr
    sign(bundle, bob, "--detached")
    (tmp_path / "m.ingot.sig").rename(tmp_path / "m.sig")
    run([*asked, bob.public])
    policy = tmp_path / "policy.toml"
    policy.write_text('keys = ["alice.pub", "bob.pub"]\nrequired = 2\n')
    run([tmp_path / "m", "--describe", "--policy", policy])
    (tmp_path / "m.sig").unlink()
    refused = run([tmp_path / "m", "--describe", "--policy", policy], 4).stderr
    assert f"expected 2 of {alice.public} or {bob.public}" in refused
    assert "a policy and keys" in run([*asked, bob.public, "--policy", policy], 1).stderr
    assert "cannot read '/none'" in run([*asked, "/none"], 1).stderr
    assert "the bundle is not signed" in run([program, *asked[1:], bob.public], 4).stderr


def loader_of(program: Path) -> bytes:
    """What stands in a program before its bundle, without the zeros between them."""
    content = program.read_bytes()
    start, *_ = TRAILER.unpack(content[-TRAILER.size :])
    return content[:start].rstrip(b"\0")


def test_program_is_small_static_and_reproducible(program: Path, tmp_path: Path) -> None:
    """The loader has at most 100 kB, no interpreter and no libraries; written twice it is the same."""
    loader = loader_of(program)
    assert len(loader) <= SIZE_BYTES_MAX
    assert b"/ld-" not in loader
    again = tmp_path / "again"
    assert main(["export", str(program), "--executable", "-o", str(again)]) == 0
    assert again.read_bytes() == program.read_bytes()
    assert os.access(again, os.X_OK)


@pytest.mark.opencl
def test_dynamic_program_opens_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A static one is refused; a dynamic one has the bits of the loader in Python, on OpenCL's device
    and on the processor, says what it is bound to, and has at most 160 kB."""
    bundle, program = tmp_path / "m.ingot", tmp_path / "m"
    ingot.compile(
        chain(), targets=["x86-64-v3"], devices={"acc": "opencl|cpu:1"}, place={"*": "acc"}
    ).save(bundle)
    assert main(["export", str(bundle), "--executable", "-o", str(program)]) == 3
    assert "--dynamic" in capsys.readouterr().err
    assert main(["export", str(bundle), "--executable", "--dynamic", "-o", str(program)]) == 0
    loader = loader_of(program)
    assert len(loader) <= DYNAMIC_SIZE_BYTES_MAX
    assert b"/lib64/ld-linux" in loader
    x = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    given = ["--inputs", f"x={tmp_path}/x.npy", "--outputs", f"y={tmp_path}/y.npy"]
    driver = find_opencl()
    for bound in ("opencl:0", "cpu:2"):
        with ingot_runtime.load(bundle, devices={"acc": bound}) as session:
            wanted = session.run({"x": x})["y"]
        run([program, *given, "--device", f"acc={bound}"], variables=driver)
        assert np.load(tmp_path / "y.npy").tobytes() == wanted.tobytes()
    assert "device acc: opencl:0" in run([program, "--describe"], variables=driver).stdout
    missing = {"INGOT_OPENCL_LIBRARY": "/none/libOpenCL.so"}
    assert "device acc: cpu:1" in run([program, "--describe"], variables=missing).stdout
    refused = run([program, "--describe", "--device", "acc=opencl"], 5, missing).stderr
    assert "error: device 'acc' needs an OpenCL driver" in refused


def test_static_program_refuses_devices(program: Path, tmp_path: Path) -> None:
    """One that was made for another bundle says what to make instead."""
    write_bundle(two_device_contents(), tmp_path / "m.ingot", tree_entry)
    content = bytearray(program.read_bytes())
    start, *_ = TRAILER.unpack(content[-TRAILER.size :])
    bundle = (tmp_path / "m.ingot").read_bytes()
    made = tmp_path / "m"
    made.write_bytes(content[:start] + bundle + TRAILER.pack(start, len(bundle), TRAILER_MAGIC))
    made.chmod(0o755)
    told = run([made], 5).stderr
    assert told.startswith("error: no devices beside the host here\n  where: ")
    assert "the bundle has the device 'acc', null:0" in told
    assert "ingot export --executable --dynamic" in told


def test_program_is_a_bundle(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``inspect`` and ``verify`` take it; a changed byte of the bundle is found by it, too."""
    assert main(["verify", str(program)]) == 0
    assert main(["inspect", str(program)]) == 0
    capsys.readouterr()
    assert "input x: float32[n, 4]" in run([program, "--describe"]).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 1, "only you know its sizes"),
        (["--shape", "x=3x4", "--inputs", "/none"], 1, "cannot read inputs from '/none'"),
        (["--thread", "2"], 1, "unrecognized arguments: --thread"),
        (["--threads", "0"], 1, "bad number of threads"),
        (["--shape", "x=3x4", "--verify", "most"], 1, "bad value of --verify: 'most'"),
        (["--shape", "z=3x4"], 1, "no input 'z'"),
        (["--shape", "x=3x5"], 1, "wrong shape of input 'x'"),
        (["--shape", "x=3x4", "--max-bytes", "9"], 2, "a call needs too much memory"),
        (["--shape", "x=3x4", "--variant", "x86-64-v9"], 1, "no variant 'x86-64-v9'"),
        (["--shape", "x=3x4", "--digest", "0" * 64], 4, "another bundle than the one asked for"),
        (["--shape", "x=3x4", "--outputs", "/none/y.npz"], 1, "cannot write '/none/y.npz'"),
    ],
)  # fmt: skip
def test_program_refuses_in_four_parts(
    program: Path, arguments: list[str], code: int, said: str
) -> None:
    """With the exit code of the loader in Python."""
    told = run([program, *arguments], code).stderr
    assert told.startswith("error: ")
    assert said in told


def test_damaged_program_is_refused(program: Path, tmp_path: Path) -> None:
    """By a digest, with exit code 4."""
    data = bytearray(program.read_bytes())
    data[-100] ^= 1
    (tmp_path / "m").write_bytes(data)
    os.chmod(tmp_path / "m", 0o700)
    assert "are damaged in MiB" in run([tmp_path / "m", "--shape", "x=3x4"], 4).stderr


@pytest.mark.gcc
def test_examples_print_the_same(tmp_path: Path) -> None:
    """The pages' commands: C, C++ without exceptions, and a linked model print what the model gives."""
    compilers = [name for name in ("cc", "c++") if shutil.which(name)]
    assert compilers, "this test needs a C compiler: apt-get install gcc g++"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for name in ("examples", "runtime"):
        (tmp_path / name).symlink_to(ROOT / name)
    printed: list[str] = []
    for example in ("c", "cpp", "library"):
        page = (ROOT / "examples" / example / "README.md").read_text(encoding="utf-8")
        blocks = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
        done = subprocess.run(
            ["sh", "-ec", blocks], cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines()[-1])
    x = (np.arange(96, dtype=np.float32) % 7 / 7).reshape(3, 32)
    with ingot_runtime.load(tmp_path / "dist" / "two_layer.ingot") as session:
        spec = session.inputs[0]
        width = spec.shape[1]
        assert isinstance(width, int)
        x = (np.arange(3 * width, dtype=np.float32) % 7 / 7).reshape(3, width)
        wanted = session.run({spec.name: x})["probabilities"].ravel()
    for line in printed:
        name, *numbers = line.split()
        assert name == "probabilities:"
        assert np.allclose([float(number) for number in numbers], wanted, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in BUNDLES if name != "large"])
def test_mutants_under_sanitizers(tmp_path: Path, name: str) -> None:
    """Mutants by the thousand: undefined behaviour ends the process; the verdict is that of the
    loader in Python."""
    BUNDLES[name](tmp_path / "m.ingot")
    parts = Parts((tmp_path / "m.ingot").read_bytes())
    kinds: set[str] = set()
    for number in range(MUTANT_COUNT):
        _, made, _ = mutant(parts, number, 3)
        if made.may_run:
            data = mutated(parts, made)
            verdict = verdict_of_python(data)
            assert verdict_of_c(data, sanitized=True) == verdict, number
            kinds.add(verdict.kind)
    assert kinds >= {"", "FormatError", "DigestError", "VersionError"}


@pytest.mark.gcc
def test_address_sanitizer(tmp_path: Path) -> None:
    """The command, compiled by Debian's gcc with ASan and UBSan: damaged files are refused, and
    nothing else happens."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    checked = tmp_path / "ingot-run"
    run(
        [
            compiler,
            "-std=c11",
            *SANITIZERS,
            ROOT / "runtime" / "c" / "run.c",
            "-o",
            checked,
            "-lpthread",
        ]
    )
    BUNDLES["small"](tmp_path / "m.ingot")
    parts, path = Parts((tmp_path / "m.ingot").read_bytes()), tmp_path / "mutant.ingot"
    codes: set[int] = set()
    for number in range(400):
        _, made, _ = mutant(parts, number, 5)
        if not made.may_run:
            continue
        path.write_bytes(mutated(parts, made))
        done = subprocess.run([checked, path], env={}, capture_output=True, text=True, check=False)
        assert "Sanitizer" not in done.stderr, (number, done.stderr)
        assert "runtime error" not in done.stderr, (number, done.stderr)
        codes.add(done.returncode)
    assert codes == {0, 1, 4, 5}


def built(source: Path, program: Path, *files: Path, flags: Sequence[str] = ("-O2",)) -> Path:
    """Compile a program in C by Debian's gcc."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    common = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "runtime" / "c")
    run([compiler, *common, *flags, source, *files, "-o", program, "-lpthread"])
    return program


@pytest.mark.gcc
def test_a_call_takes_no_memory(tmp_path: Path) -> None:
    """Between the first call and the last of a thousand, the process asks the system for nothing. In
    memory is less than a megabyte beside weights and workspace."""
    ingot.compile(ROOT / "tests" / "models" / "resnet" / "static.onnx").save(tmp_path / "m.ingot")
    program = built(PROGRAMS / "calls.c", tmp_path / "calls")
    done = run([program, tmp_path / "m.ingot", "1000"])
    assert re.search(r"^0 allocations", done.stdout), done.stdout
    found = re.search(
        r"^(\d+) bytes in memory beside (\d+) of weights and", done.stdout, re.MULTILINE
    )
    assert found, done.stdout
    assert 0 < int(found[1]) <= 1_000_000
    assert int(found[2]) > 0


@pytest.mark.gcc
def test_a_token_takes_no_memory(tmp_path: Path) -> None:
    """Of 3,000 tokens some twenty take larger blocks, for states by doubling; the others nothing."""
    BUNDLES["states"](tmp_path / "m.ingot")
    program = built(PROGRAMS / "tokens.c", tmp_path / "tokens")
    done = run([program, tmp_path / "m.ingot", "3000"]).stdout
    found = re.fullmatch(r"0 of 3000 calls took memory, (\d+) were for larger blocks\n", done)
    assert found, done
    assert 7 <= int(found[1]) <= 30


@pytest.mark.gcc
def test_sessions_with_states_under_sanitizers(tmp_path: Path) -> None:
    """20,000 steps by chance of sessions that are forked, cut, reordered and closed: no report, no
    leak."""
    BUNDLES["states"](tmp_path / "m.ingot")
    program = built(PROGRAMS / "sequences.c", tmp_path / "sequences", flags=SANITIZERS)
    done = run([program, tmp_path / "m.ingot", "20000"])
    assert done.stderr == ""
    good = int(done.stdout.split()[0])
    assert 5_000 < good < 20_000


@pytest.mark.gcc
@pytest.mark.parametrize("flags", [SANITIZERS, THREADS], ids=["addresses", "threads"])
def test_lent_threads_under_sanitizers(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Two callers, whose sessions ask one pool of the program's for threads: the bits of own threads
    for any count, no report, no leak, also where the pool has fewer threads or none to spare."""
    model = ROOT / "tests" / "models" / "resnet" / "static.onnx"
    ingot.compile(model, targets=["x86-64-v2"]).save(tmp_path / "m.ingot")
    program = built(PROGRAMS / "lent.c", tmp_path / "lent", flags=flags)
    for threads, pool in ((1, 0), (3, 0), (3, 1), (5, 2), (8, 8)):
        done = run([program, tmp_path / "m.ingot", str(threads), str(pool)])
        whom = "for threads" if threads > 1 else "nobody"
        assert done.stdout == f"the same bits in 80 calls, asked {whom}\n"
        assert done.stderr == ""


@pytest.mark.gcc
def test_the_decoder_in_c_says_what_the_one_in_python_says(tmp_path: Path) -> None:
    """``examples/llm``: the same tokens behind a prompt, over a growth of the caches; bad input."""
    folder = ROOT / "examples" / "llm"
    run([sys.executable, folder / "make_decoder.py", tmp_path / "m.onnx", "40"])
    ingot.compile(tmp_path / "m.onnx").save(tmp_path / "m.ingot")
    program = built(folder / "generate.c", tmp_path / "generate", ROOT / "runtime/c/ingot.c")
    python: list[str | os.PathLike[str]] = [sys.executable, folder / "generate.py"]
    python.append(tmp_path / "m.ingot")
    for prompt in ("5,6,7", "3"):
        wanted = run([*python, "--ids", prompt, "--count", "80"]).stdout
        assert run([program, tmp_path / "m.ingot", prompt, "80"]).stdout == wanted
    assert "usage:" in run([program, tmp_path / "m.ingot", "one", "8"], 1).stderr
    BUNDLES["dynamic"](tmp_path / "d.ingot")
    assert "has no state" in run([program, tmp_path / "d.ingot", "1", "8"], 1).stderr
