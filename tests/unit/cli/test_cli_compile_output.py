"""Where ``ingot compile`` writes, and what it says of a file that is for this machine alone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.test_cli import assert_refused, child_environment, small_model

from ingot_build_rules.tools.cli.building.compile_output import default_output
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell import portable_note as notes
from ingot_compiler.targets.target import Target, parse_target

TARGET = ["--target", "x86-64-v3"]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model in a folder of its own; the current folder is an empty one beside it."""
    (tmp_path / "models").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return str(small_model(tmp_path / "models" / "small.v1.onnx"))


def test_without_a_name_the_bundle_is_called_like_the_model(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the current folder, and without a note: the file runs on most machines."""
    assert main(["compile", model, *TARGET]) == 0
    assert os.listdir() == ["small.v1.ingot"]
    out, err = capsys.readouterr()
    assert out.startswith("small.v1.ingot: ")
    assert "note:" not in err
    assert main(["inspect", "small.v1.ingot", "--variant", "x86-64-v3", "--json"]) == 0


def test_a_wrong_variant_is_refused(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By name, with those that there are; also beside ``--asm``, and of several only one is
    shown."""
    assert main(["compile", model, *TARGET, "--target", "x86-64-v2", "-q"]) == 0
    for more in ([], ["--asm", "k_"], ["--fusion"], ["--json"]):
        assert_refused(
            capsys,
            ["inspect", "small.v1.ingot", "--variant", "x86-64-v4", *more],
            1,
            "no variant 'x86-64-v4'",
            "x86-64-v2, x86-64-v3",
        )
    assert main(["inspect", "small.v1.ingot", "--variant", "x86-64-v2"]) == 0
    shown = capsys.readouterr().out
    assert "launches of x86-64-v2:" in shown
    assert "x86-64-v3" not in shown


def test_the_model_is_never_overwritten(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where its own name is the one that the bundle would get."""
    os.rename(model, "odd.ingot")
    before = Path("odd.ingot").read_bytes()
    assert_refused(capsys, ["compile", "odd.ingot", *TARGET], 1, "the output is an input")
    assert Path("odd.ingot").read_bytes() == before


def test_a_bundle_goes_to_a_pipe(model: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The same bytes as in a file; what there is to say goes to standard error, and a failure
    writes nothing."""
    assert main(["compile", model, *TARGET, "-o", "file", "-q"]) == 0
    assert main(["compile", model, *TARGET, "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == Path("file").read_bytes()
    assert b"standard output: " in err
    assert main(["compile", model, "--to", "graph", *TARGET, "-o", "-", "-q"]) == 0
    assert b"matmul" in capfdbinary.readouterr().out
    assert main(["compile", __file__, "-o", "-", "-q"]) == 1
    assert capfdbinary.readouterr().out == b""
    assert os.listdir() == ["file"]


def test_what_does_not_go_with_standard_output(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A depfile needs a name, JSON needs the stream for itself."""
    arguments = ["compile", model, "-o", "-"]
    assert_refused(capsys, [*arguments, "--depfile", "d"], 1, "a depfile without an output")
    assert_refused(capsys, [*arguments, "--json"], 1, "two results on standard output")
    refused = ["compile", model, "--to", "graph", "--depfile", "d"]
    assert_refused(capsys, refused, 1, "a depfile without an output")


def test_a_terminal_gets_no_bundle(model: str) -> None:
    """It would take the bytes as commands."""
    main_end, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "ingot", "compile", model, "-o", "-"],
        stdout=terminal,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(),
        check=False,
    )
    os.close(terminal)
    os.close(main_end)
    assert done.returncode == 1
    assert "no file is written to a terminal" in done.stderr
    assert "> small.v1.ingot" in done.stderr


@pytest.mark.parametrize(
    ("native", "words"),
    [
        ("x86-64-v4+avx512vnni", ["avx512f", "avx512vnni", "--target x86-64-v3"]),
        ("x86-64-v2+avx", ["needs avx besides x86-64-v2", "--target x86-64-v2"]),
        ("aarch64+i8mm", ["needs i8mm besides aarch64", "--target aarch64"]),
        ("x86-64-v3", []),
        ("riscv64", []),
    ],
)
def test_a_file_for_this_machine_alone_is_told_in_one_line(
    native: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The features that it needs, and how to make one for most machines; nothing where the targets
    were named, or where the machine has nothing special."""

    def resolved(_: str) -> Target:
        return parse_target(native)

    monkeypatch.setattr(notes, "resolve_target", resolved)
    for requested in ([], ["native"], ["x86-64-v3", "native"]):
        note = notes.portable_note("m.ingot", requested)
        assert (note is not None) == bool(words)
        assert not note or (note.startswith("note: m.ingot ") and "\n" not in note)
        assert all(word in str(note) for word in words)
    assert notes.portable_note("m.ingot", ["x86-64-v4"]) is None


def test_bundles_of_a_project_for_this_machine_alone(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are told when they are built, in one line for all of them; ``-q`` keeps it quiet."""

    def resolved(_: str) -> Target:
        return parse_target("x86-64-v3+avx512vnni")

    monkeypatch.setattr(notes, "resolve_target", resolved)
    names = {"a": "native", "b": "machine", "c": "x86-64-v2"}
    bundles = [f'[bundle.{name}]\nmodel="m"\ntargets=["{it}"]' for name, it in names.items()]
    head = f'[model.m]\nsource = "{os.path.basename(model)}"\n[target.machine]\ntarget = "native"'
    project = Path(model).parent
    (project / "ingot.toml").write_text("\n".join([head, *bundles]))
    monkeypatch.chdir(project)

    def notes_of(*words: str) -> list[str]:
        assert main(["build", *words]) == 0
        return [it for it in capsys.readouterr().err.splitlines() if it.startswith("note:")]

    assert notes_of("c") == []
    (one,) = notes_of("a")
    assert one.startswith("note: dist/a.ingot is for processors like this one: it needs avx512f")
    assert 'targets = ["x86-64-v3"] in ingot.toml' in one
    assert notes_of("a") == []  # nothing was built
    for path in ("dist/a.ingot", "dist/b.ingot"):
        Path(path).unlink(missing_ok=True)
    (both,) = notes_of()
    assert both.startswith("note: 2 bundles are for processors like this one: they need avx512f")
    Path("dist/a.ingot").unlink()
    assert notes_of("-q") == []


def test_the_default_target_is_told(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing is said of the target, on standard error; ``-q`` keeps it quiet."""
    note = notes.portable_note("small.v1.ingot", [])
    assert main(["compile", model]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert [line for line in shown if line.startswith("note:")] == ([note] if note else [])
    assert main(["compile", model, "-q"]) == 0
    assert "note:" not in capsys.readouterr().err


def test_default_names() -> None:
    """The last suffix goes, whatever it is, and so does the folder."""
    assert default_output("a/b.c.onnx", ".ingot") == "b.c.ingot"
    assert default_output("graph", ".ingot") == "graph.ingot"
    assert default_output("a/.onnx", ".o") == ".onnx.o"
