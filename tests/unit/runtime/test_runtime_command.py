"""``python -m ingot_runtime``: files in, files out, four lines and an exit code for every mistake."""

import os
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry
from tests.json_schemas import checked

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import describe_bundle, verify_bundle
from ingot_runtime.json_output import array_values

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles")
    write_bundle(tiny_contents(), path / "static.ingot", tree_entry)
    write_bundle(tiny_contents("batch", names=("file", "self")), path / "dynamic.ingot", tree_entry)
    np.savez(path / "x.npz", x=X)
    np.save(path / "x.npy", X)
    (path / "broken.npz").write_bytes((path / "x.npz").read_bytes()[:100])
    return path


def command(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-m", "ingot_runtime", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.sweep(60)
@pytest.mark.parametrize(
    "options", [(), ("--threads", "2"), ("--executor", "vm"), ("--verify", "fast")]
)
def test_run(folder: Path, options: tuple[str, ...]) -> None:
    """Inputs from a file, outputs to a file, the same bits whatever the options."""
    done = command(
        folder, "run", "static.ingot", "--inputs", "x.npz", "--outputs", "y.npz", *options
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with np.load(folder / "y.npz") as outputs:
        assert outputs.files == ["y"]
        assert (outputs["y"] == tiny_reference(X)).all()


def test_run_without_files(folder: Path) -> None:
    """Zeros are run where all sizes are known; a summary is printed."""
    done = command(folder, "run", "static.ingot")
    assert done.returncode == 0
    assert done.stdout == "y: float32[4, 8] = [1, 1.14286, 1.28571, 1.42857, ...]\n"


def test_run_with_shapes(folder: Path) -> None:
    """Zeros have the sizes that are given; what is fixed may be given, too."""
    done = command(folder, "run", "dynamic.ingot", "--shape", "file=2x8")
    assert done.stdout == "self: float32[2, 8] = [1, 1.14286, 1.28571, 1.42857, ...]\n"
    assert command(folder, "run", "static.ingot", "--shape", "x=4x8").returncode == 0


def test_version(folder: Path) -> None:
    """The loader's own."""
    done = command(folder, "--version")
    assert (done.returncode, done.stdout) == (0, f"ingot-runtime {ingot_runtime.__version__}\n")


def test_names_that_clash_with_python(folder: Path) -> None:
    """ONNX names are kept, whatever numpy's own functions call their arguments."""
    with (
        zipfile.ZipFile(folder / "named.npz", "w") as archive,
        archive.open("file.npy", "w") as member,
    ):
        np.lib.format.write_array(member, X)  # np.savez(path, file=X) is a TypeError
    done = command(
        folder, "run", "dynamic.ingot", "--inputs", "named.npz", "--outputs", "named_y.npz"
    )
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(folder / "named_y.npz") as outputs:
        assert (outputs["self"] == tiny_reference(X)).all()


@pytest.mark.parametrize(
    ("arguments", "code", "first", "last"),
    [
        (
            ("run", "none.ingot"),
            1,
            "error: cannot open 'none.ingot'",
            "  do: check the path and its permissions",
        ),
        (("run", "x.npz"), 1, "error: not a bundle", "  do: give a file made by `ingot compile`"),
        (
            ("run", "dynamic.ingot"),
            1,
            "error: no inputs",
            "  do: give sizes, e.g. --shape file=4x8, or --inputs F.npz",
        ),
        (
            ("run", "dynamic.ingot", "--shape", "file=4x9"),
            1,
            "error: wrong shape of input 'file'",
            None,
        ),
        (
            ("run", "dynamic.ingot", "--shape", "x=4x8", "--shape", "file=4x8"),
            1,
            "error: no input 'x'",
            None,
        ),
        (
            ("run", "dynamic.ingot", "--shape", "file=4,8"),
            1,
            "error: bad --shape 'file=4,8'",
            "  do: e.g. --shape file=4x8",
        ),
        (
            ("run", "static.ingot", "--shape", "x=4x8", "--inputs", "x.npz"),
            1,
            "error: inputs and shapes are given",
            "  do: leave one of them out",
        ),
        (
            ("run", "static.ingot", "--inputs", "none.npz"),
            1,
            "error: cannot read inputs from 'none.npz'",
            "  do: check the path and its permissions",
        ),
        (
            ("run", "static.ingot", "--inputs", "broken.npz"),
            1,
            "error: cannot read inputs from 'broken.npz'",
            None,
        ),
        (
            ("run", "static.ingot", "--inputs", "x.npy"),
            1,
            "error: cannot read inputs from 'x.npy'",
            None,
        ),
        (
            ("run", "static.ingot", "--outputs", "none/y.npz"),
            1,
            "error: cannot write 'none/y.npz'",
            None,
        ),
        (
            ("run", "static.ingot", "--variant", "x86-64-v3"),
            1,
            "error: no variant 'x86-64-v3'",
            None,
        ),
        (
            ("run", "static.ingot", "--executor", "aott"),
            1,
            "error: unknown value of executor",
            "  do: did you mean 'aot'?",
        ),
        (
            ("run", "static.ingot", "--device", "gpu"),
            1,
            "error: bad --device 'gpu'",
            "  do: e.g. --device acc=cpu:0",
        ),
        (
            ("run", "static.ingot", "--device", "host=cuda:0"),
            5,
            "error: device 'host' cannot be 'cuda:0'",
            None,
        ),
        (
            ("run", "static.ingot", "--device", "a=cpu:0", "--device", "a=cpu:1"),
            1,
            "error: 'a' is given twice",
            "  do: leave one of them out",
        ),
        (
            ("run", "static.ingot", "--max-bytes", "8"),
            2,
            "error: a call needs too much memory",
            "  do: allow more with max_bytes (--max-bytes)",
        ),
        (
            ("run", "static.ingot", "--max-bytes", "0.008kB"),
            2,
            "error: a call needs too much memory",
            None,
        ),
        (
            ("run", "static.ingot", "--max-bytes", "much"),
            1,
            "error: argument --max-bytes: expected a size such as 5GB, 500MB or 2GiB, got 'much'",
            None,
        ),
        (("run", "static.ingot", "--max-bytes", "0"), 1, "error: bad limit of memory", None),
        (("run", "static.ingot", "--timeout", "-1"), 1, "error: bad timeout", None),
        (("ran", "static.ingot"), 1, None, "  do: python -m ingot_runtime --help"),
        ((), 1, None, "  do: python -m ingot_runtime --help"),
    ],
)
@pytest.mark.sweep(48)
def test_mistakes(
    folder: Path, arguments: tuple[str, ...], code: int, first: str | None, last: str | None
) -> None:
    """Four parts on stderr, nothing on stdout, the exit code of the contract, no traceback, nothing
    half-written."""
    before = sorted(path.name for path in folder.iterdir())
    done = command(folder, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("  where: ")
    assert "Traceback" not in done.stderr
    assert first is None or lines[0] == first
    assert last is None or lines[-1] == last
    assert sorted(path.name for path in folder.iterdir()) == before


def test_damaged(folder: Path, tmp_path: Path) -> None:
    """A damaged bundle: exit code 4, and the file's path before the section."""
    data = bytearray((folder / "static.ingot").read_bytes())
    data[700] ^= 1
    (tmp_path / "m.ingot").write_bytes(data)
    for verb in ("run", "inspect"):
        done = command(tmp_path, verb, "m.ingot")
        assert done.returncode == 4
        assert done.stderr.startswith(
            "error: section manifest 0 is damaged\n  where: m.ingot, section manifest 0\n"
            "  why: expected sha256 "
        )


@pytest.mark.parametrize(
    ("start", "stop", "place"),
    [
        (0, 0, "the first 8 bytes"),
        (1, None, "the first 8 bytes"),
        (0, 40, "header"),
        (0, 300, "header, file size"),
    ],
)
def test_errors_name_the_file(
    folder: Path, tmp_path: Path, start: int, stop: int | None, place: str
) -> None:
    """What is no bundle, or a part of one, is refused with its path, by each reader, once; one in
    memory has none."""
    data = (folder / "static.ingot").read_bytes()[start:stop]
    path = tmp_path / "m.ingot"
    path.write_bytes(data)
    for read in (
        ingot_runtime.load,
        describe_bundle,
        partial(verify_bundle, tree_entry=tree_entry),
    ):
        with pytest.raises(ingot_runtime.BundleError) as caught:
            read(path)
        assert caught.value.where == f"{path}, {place}"
        assert caught.value.__traceback__ is not None
    with pytest.raises(ingot_runtime.BundleError) as caught:
        ingot_runtime.load(data)
    assert caught.value.where == place


def test_inspect_and_identify(folder: Path) -> None:
    """Both speak to people and, with --json, to programs."""
    described = checked(
        "device-inspect", command(folder, "inspect", "static.ingot", "--json").stdout
    )
    assert [row["name"] for row in described["inputs"]] == ["x"]
    assert "x: f32[4, 8]" in command(folder, "inspect", "static.ingot").stdout
    machine = checked("device-identify", command(folder, "identify", "--json").stdout)
    assert machine["architecture"] in command(folder, "identify").stdout


@pytest.mark.broad
def test_run_tells_programs(folder: Path) -> None:
    """With --json, one object: the bundle's digest, times, what each output is; or the error, which
    people read on stderr, and the same exit code. The file of outputs is written all the same."""
    done = command(folder, "run", "static.ingot", "--inputs", "x.npz", "--json")
    told = checked("run", done.stdout)
    reference = tiny_reference(X)
    assert (done.returncode, done.stderr) == (0, "")
    assert told["outputs"]["y"] == {
        "dtype": "f32", "numpy_dtype": "float32", "shape": [4, WIDTH],
        "least": reference.min(), "greatest": reference.max(),
    }  # fmt: skip
    digest = checked("device-inspect", command(folder, "inspect", "static.ingot", "--json").stdout)
    assert told["digest"] == digest["digest"]
    done = command(folder, "run", "static.ingot", "--json", "--outputs", "json.npz")
    assert checked("run", done.stdout)["outputs"]["y"]["shape"] == [4, WIDTH]
    assert (folder / "json.npz").exists()
    for verb, name, code in (("run", "x.npz", 1), ("inspect", "x.npz", 1), ("run", "--json", 1)):
        done = command(folder, verb, name, "--json")
        error = checked(verb, done.stdout)["error"]
        assert (done.returncode, error["exit_code"]) == (code, code)
        assert done.stderr.startswith(f"error: {error['what']}\n")


def test_numbers_that_json_has_not(folder: Path) -> None:
    """The range of an array is text where JSON has no number for it; bits of a bf16 have none."""
    nan, infinite = np.full(2, np.nan, np.float32), np.array([1, np.inf], np.float64)
    assert array_values("f32", nan)["least"] == "nan"
    assert (array_values("f64", infinite)["least"], array_values("f64", infinite)["greatest"]) == (
        1.0, "inf",
    )  # fmt: skip
    largest = np.array([2**64 - 1], np.uint64)
    assert array_values("u64", largest)["greatest"] == 2**64 - 1
    assert "least" not in array_values("bf16", np.zeros(2, np.uint16))
