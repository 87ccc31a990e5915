"""The example of two devices: its commands run as its page says, and print what it shows; the
commands that look at bundles work on its bundle."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ingot_build_rules.tools.cli.main import main

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "examples" / "heterogeneous" / "README.md"
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the page's commands ran, and what they printed."""
    folder = tmp_path_factory.mktemp("heterogeneous")
    commands = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert commands
    (folder / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", commands[1]],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture
def split(printed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Its bundle, from its folder."""
    monkeypatch.chdir(printed[0])
    return "dist/split.ingot"


def told(capsys: Output, *words: str) -> str:
    """What a command prints that works."""
    assert main(words) == 0
    return capsys.readouterr().out


@pytest.mark.broad
@pytest.mark.opencl
def test_the_commands_print_what_the_page_shows(printed: tuple[Path, str]) -> None:
    """All of the page's commands; the output of the last one is on the page."""
    shown = re.search(r"prints:\n\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown
    assert printed[1].endswith(shown[1])


@pytest.mark.broad
@pytest.mark.opencl
def test_inspect_shows_what_runs_where(split: str, capsys: Output) -> None:
    """Devices, the library, launches and copies of each, and the nodes by their names."""
    text = told(capsys, "inspect", split)
    for line in (
        "  acc: opencl:0\n",
        "  opencl opencl-c-1.2: 2 kernels, needs nothing\n",
        "  copy host to acc before launch 1, as the sizes of a call need\n",
        "  copy acc to host before launch 3, as the sizes of a call need\n",
        "/layer1/Softmax (Softmax)",
    ):
        assert line in text


@pytest.mark.opencl
def test_diff_names_the_device(split: str, capsys: Output) -> None:
    """Against the same model on the host alone: the device, its library, the option that put it
    there; against itself nothing."""
    model, host = "dist/two_layer.onnx", "dist/host.ingot"
    told(capsys, "compile", model, "-o", host, "--target", "x86-64-v3", "-q")
    assert told(capsys, "diff", split, split) == "equal\n"
    lines = told(capsys, "diff", host, split).splitlines()
    assert "device acc: only in the second" in lines
    assert "library 0: only in the second" in lines
    assert any(line.startswith("lock options: ") and "/layer1/*" in line for line in lines)


@pytest.mark.broad
@pytest.mark.opencl
def test_bench_measures_both_devices(split: str, capsys: Output) -> None:
    """Calls, and each kernel by the names of its nodes, whatever device runs it."""
    words = ("bench", split, "--inputs", "dist/two_layer.npz", "--seconds", "0.01", "--anyway")
    text = told(capsys, *words)
    assert "devices acc on opencl:0\n" in text
    for nodes in ("/layer0/Gemm, /layer0/Gelu", "/layer1/Gemm", "/layer1/Softmax"):
        assert f"{nodes}\n" in text


@pytest.mark.opencl
def test_it_is_reproduced(split: str, capsys: Output) -> None:
    """From the model, all bytes."""
    words = ("reproduce", split, "--source", "dist/two_layer.onnx", "--cached", "-q", "-j1")
    assert told(capsys, *words).startswith("reproduced: ")


@pytest.mark.opencl
def test_it_is_checked_against_the_interpreter(split: str, capsys: Output) -> None:
    """``--check`` compares the launches of all devices with the interpreter of the graph."""
    del split
    words = ("compile", "dist/two_layer.onnx", "-o", "dist/checked.ingot", "--target", "x86-64-v3",
             "--device", "acc=opencl", "--place", "/layer1/*=acc", "--check")  # fmt: skip
    text = told(capsys, *words)
    assert "  checked 3 launches against the interpreter: largest relative error" in text
