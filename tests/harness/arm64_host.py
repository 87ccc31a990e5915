"""An emulated machine with an ARM processor that has this clone and what it depends on.

In: Debian's packages, wheels of the same versions as here, qemu-user. Out: what commands do there.
Not done here: tests. The emulator is known to the kernel in a user namespace alone, so that the
machine's own settings stay as they are. ``/proc/cpuinfo`` there is that of this machine, and tells
no feature of an ARM processor. It needs root, ``debootstrap`` and ``qemu-user-static``.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from glob import glob
from pathlib import Path

ROOT = Path(__file__).parents[2]
_EMULATOR = "/usr/lib/binfmt.d/qemu-aarch64.conf"
_PACKAGES = "python3"
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux2014_aarch64")
_PATHS = ("runtime", "compiler", "artifacts", "build_rules", "")
_CLONE_NEWNS, _CLONE_NEWUSER, _IDS = 0x20000, 0x10000000, "0 0 65536"
_ENTER = """
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
cat {emulator} > /proc/sys/fs/binfmt_misc/register
mount --rbind /dev {root}/dev
mount --bind /proc {root}/proc
mount --bind {clone} {root}/clone
exec chroot {root} /usr/bin/env -i PATH=/usr/bin:/bin HOME=/work PYTHONPATH={path} "$@"
"""


class Arm64:
    """``folder``: where its files are, made by the first that asks; ``work`` is shared with it, as
    ``/work``."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "root"
        self.work = self._root / "work"
        if not self.work.is_dir():
            _make_system(self._root)
            _install(self._root / "packages")
            (self._root / "clone").mkdir()
            self.work.mkdir()

    def run(self, *arguments: str) -> None:
        """Run Python there."""
        path = ":".join(["/packages", *(f"/clone/{name}" for name in _PATHS)])
        script = _ENTER.format(emulator=_EMULATOR, root=self._root, clone=ROOT, path=path)
        command = ["sh", "-ec", script, "sh", "/usr/bin/python3", "-B", *arguments]
        done = subprocess.run(
            [sys.executable, "-c", _in_a_namespace(command)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _make_system(root: Path) -> None:
    """Unpack Debian's Python; nothing of it is configured."""
    _run("debootstrap", "--arch=arm64", "--foreign", "--variant=minbase", f"--include={_PACKAGES}",
         "bookworm", str(root))  # fmt: skip
    for package in sorted(glob(f"{root}/var/cache/apt/archives/*.deb")):
        _run("dpkg-deb", "-x", package, str(root))


def _install(folder: Path) -> None:
    """Install what the compiler depends on, in the versions that are here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[^\w-]", text)[0] for text in project["dependencies"]]
    others = [name for name in names if not name.startswith("ingot")]
    platforms = [word for name in _PLATFORMS for word in ("--platform", name)]
    python = [
        "--python-version",
        "3.11",
        "--implementation",
        "cp",
        "--abi",
        "cp311",
        "--abi",
        "abi3",
        "--abi",
        "none",
    ]
    options = ["-q", "--no-compile", "--only-binary=:all:", "--target", str(folder), *python]
    wanted = [f"{name}=={importlib.metadata.version(name)}" for name in others]
    _run(sys.executable, "-m", "pip", "install", *options, *platforms, *wanted)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _in_a_namespace(command: Sequence[str]) -> str:
    """The text of a program that runs a command in a user namespace with all ids of this one."""
    return f"from tests.harness.arm64_host import enter; enter({list(command)!r})"


def enter(command: Sequence[str]) -> None:
    """Run it, and end with its code."""
    (was_left, tell_left), (may_go, tell_go) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        failed = ctypes.CDLL(None).unshare(_CLONE_NEWNS | _CLONE_NEWUSER)
        os.write(tell_left, b"x")
        os.read(may_go, 1)
        os.setgid(0)
        os.setuid(0)
        if not failed:
            os.execvp(command[0], list(command))
        os._exit(1)
    os.read(was_left, 1)
    for kind in ("uid_map", "gid_map"):
        Path(f"/proc/{child}/{kind}").write_text(_IDS)
    os.write(tell_go, b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
