"""Completion in zsh and fish themselves, where these are installed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.test_cli import child_environment

from ingot_build_rules.tools.cli.completion import script

pytestmark = pytest.mark.shells


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model and a text, the scripts of the shells, and the command below bin."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "ingot"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ingot "$@"\n')
    command.chmod(0o755)
    (tmp_path / "a model.onnx").touch()
    (tmp_path / "another.txt").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "_ingot").write_text(script("zsh"))
    (tmp_path / "ingot.fish").write_text(script("fish"))
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    """The user's variables, with our command and a home of its own."""
    found = child_environment()
    found |= {"PATH": f"{folder / 'bin'}:{found['PATH']}", "HOME": str(folder), "TERM": "dumb"}
    return {**found, "PYTHONPATH": os.pathsep.join(sys.path)}


def in_fish(folder: Path, line: str) -> list[str]:
    """What fish offers behind a line, without descriptions."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source ingot.fish; complete -C '{line}'"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [each.partition("\t")[0] for each in done.stdout.splitlines()]


def test_fish(folder: Path) -> None:
    """Verbs, values, files with their suffix before others, folders; nothing where nothing fits."""
    assert in_fish(folder, "ingot wa") == ["watch"]
    assert in_fish(folder, "ingot compile --from gr") == ["graph"]
    assert in_fish(folder, "ingot compile --target=riscv") == ["--target=riscv64"]
    assert in_fish(folder, "ingot compile a")[0].replace("\\", "") == "a model.onnx"
    assert in_fish(folder, "ingot build -C b") == ["bin/"]
    assert in_fish(folder, "ingot build ") == []


class Zsh:
    """zsh at a terminal, as a user has it, with the script in a folder of ``fpath``."""

    def __init__(self, folder: Path) -> None:
        self._terminal, end = pty.openpty()
        self._shell = subprocess.Popen(
            ["zsh", "-f", "-i"],
            cwd=folder,
            env=environment(folder),
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
        )
        os.close(end)
        self._count = 0
        self.enter("PS1= RPS1= PROMPT_EOL_MARK=; unsetopt zle_bracketed_paste 2>/dev/null")
        self.enter("fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D")

    def enter(self, line: str) -> str:
        """Run a line; return what the terminal showed until it was done."""
        self._count += 1
        os.write(self._terminal, f"{line}\necho done-$(({self._count}))-\n".encode())
        shown = b""
        while f"\ndone-{self._count}-".encode() not in shown.replace(b"\r", b""):
            assert select.select([self._terminal], [], [], 60)[0], shown
            shown += os.read(self._terminal, 65536)
        return shown.decode()

    def completed(self, line: str) -> str:
        """What Tab makes of a line: its words are then printed instead of executed."""
        shown = self.enter(f"{line}\t\x01print -r -- '>>>' \x05 '<<<'")
        found = re.findall(r"\n>>> (.*?) ?<<<", shown.replace("\r", ""))
        return str(found[-1])

    def close(self) -> None:
        """End the shell."""
        os.close(self._terminal)
        self._shell.wait()


def test_zsh(folder: Path) -> None:
    """A word that Tab completes alone; no word where nothing fits."""
    shell = Zsh(folder)
    try:
        assert shell.completed("ingot wa") == "ingot watch"
        assert shell.completed("ingot compile --from gr") == "ingot compile --from graph"
        assert shell.completed("ingot compile --from=gr") == "ingot compile --from=graph"
        assert shell.completed("ingot compile a") == "ingot compile a model.onnx"
        assert (
            shell.completed("ingot build -C b") == "ingot build -C bin"
        )  # zsh takes the slash away again
        assert shell.completed("ingot build x") == "ingot build x"
    finally:
        shell.close()
