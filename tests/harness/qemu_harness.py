"""Programs for other processors, run on this one by qemu-user.

In: a bundle of one architecture. Out: an exported program, its outputs. Not done here: tests.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.harness.codegen_harness import Array

from ingot_build_rules.tools.cli.main import main
from ingot_runtime.npz import write_npz


def emulator(architecture: str, cpu: str = "") -> list[str]:
    """Return the command that runs programs of ``architecture`` (as processors of type ``cpu``)."""
    names = (f"qemu-{architecture}", f"qemu-{architecture}-static")
    path = next((path for name in names if (path := shutil.which(name))), None)
    assert path, f"this test needs {names[0]}: apt-get install qemu-user"
    return [path, *(["-cpu", cpu] if cpu else [])]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A program with a bundle in it, and the emulator for it."""

    command: tuple[str, ...]
    folder: Path

    @staticmethod
    def export(
        bundle: Path, architecture: str, cpu: str = "", *, is_dynamic: bool = False
    ) -> Foreign:
        """Write the program beside the bundle, over the cache of the tests; a dynamic one has the
        C library of Debian's package for cross-compilers."""
        path, libraries = bundle.with_suffix(""), f"/usr/{architecture}-linux-gnu"
        line = ["export", str(bundle), "--executable", "-o", str(path)]
        assert main([*line, *(["--dynamic"] if is_dynamic else [])]) == 0
        if not is_dynamic:
            return Foreign((*emulator(architecture, cpu), str(path)), bundle.parent)
        package = {"aarch64": "arm64"}.get(architecture, architecture)
        installed = Path(libraries).is_dir()
        assert installed, f"this test needs a libc: apt-get install libc6-{package}-cross"
        command = (*emulator(architecture, cpu), "-L", libraries, str(path))
        return Foreign(command, bundle.parent)

    def start(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        command = [*self.command, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={})

    def run(self, feed: dict[str, Array], *arguments: str) -> dict[str, Array]:
        """Return the outputs, by way of archives."""
        given, taken = self.folder / "given.npz", self.folder / "taken.npz"
        with open(given, "wb") as file:
            write_npz(file, feed)
        done = self.start(["--inputs", str(given), "--outputs", str(taken), *arguments])
        assert done.returncode == 0, done.stderr
        with np.load(taken) as archive:
            return {name: archive[name] for name in archive.files}
