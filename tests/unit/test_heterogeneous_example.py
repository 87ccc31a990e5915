"""The example of two devices: its commands run as its page says, and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "examples" / "heterogeneous" / "README.md"


def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    """All of the page's commands; the output of the last one is on the page."""
    text = PAGE.read_text(encoding="utf-8")
    commands = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"prints:\n\n```\n(.*?)```", text, re.DOTALL)
    assert commands
    assert shown
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", commands[1]],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(shown[1])
