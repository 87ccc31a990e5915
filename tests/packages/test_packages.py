"""The distributions as users get them: complete, named, typed, installed into empty environments.

Needs the package registry and some minutes (`make test-packages`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.tidy.source import ROOT

pytestmark = pytest.mark.packages

USER_CODE = Path(__file__).with_name("user_code.py")
DISTRIBUTIONS = ("ingot_compiler", "ingot_runtime", "ingot_runtime_devices")


def command(*words: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, away from this environment's settings."""
    line = [str(word) for word in words]
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def made(pattern: str) -> Path:
    """Return the one file of ``make dist`` that fits."""
    (found,) = (ROOT / "dist").glob(pattern)
    return found


def environment(folder: Path) -> Path:
    """Make an empty environment, and return its interpreter."""
    command(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its inputs, and a bundle of it that this checkout made."""
    folder = tmp_path_factory.mktemp("example")
    command(sys.executable, ROOT / "examples" / "two_layer.py", cwd=folder)
    here = folder / "dist"
    command(
        sys.executable,
        "-m",
        "ingot",
        "compile",
        "two_layer.onnx",
        "-o",
        "two_layer.ingot",
        cwd=here,
    )
    return here


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_files_of_a_distribution(name: str) -> None:
    """A wheel has the licence, the marker of types, an author and a licence expression."""
    wheel = zipfile.ZipFile(made(f"{name}-[0-9]*.whl"))
    names = wheel.namelist()
    metadata = wheel.read(next(n for n in names if n.endswith("METADATA"))).decode()
    for line in (f"Name: {name.replace('_', '-')}", "License-Expression: Apache-2.0"):
        assert line in metadata.splitlines()
    assert "Author: The Ingot authors" in metadata
    assert {n.rsplit("/", 1)[-1] for n in names if "/licenses/" in n} == {"LICENSE", "NOTICE"}
    assert any(n.endswith("/py.typed") for n in names)
    shared = {n.partition("/data/share/")[2] for n in names if "/data/share/" in n}
    expected = {
        "man/man1/ingot-compile.1",
        "bash-completion/completions/ingot",
        "zsh/site-functions/_ingot",
        "fish/vendor_completions.d/ingot.fish",
    }
    assert shared & expected == (expected if name == "ingot_compiler" else set())
    assert not [n for n in names if "tests/" in n or "__pycache__" in n]
    with tarfile.open(made(f"{name}-[0-9]*.tar.gz")) as archive:
        files = {member.rsplit("/", 1)[-1] for member in archive.getnames()}
    assert {"LICENSE", "NOTICE", "README.md"} <= files


def test_a_device_needs_the_loader_alone(tmp_path: Path, example: Path) -> None:
    """An empty environment with the loader's wheel runs a bundle; it has no compiler."""
    python = environment(tmp_path / "device")
    command(python, "-m", "pip", "install", "-q", made("ingot_runtime-[0-9]*.whl"), cwd=tmp_path)
    bundle, inputs = example / "two_layer.ingot", example / "two_layer.npz"
    run = (python, "-m", "ingot_runtime", "run", bundle, "--inputs", inputs)
    assert "probabilities: float32[3, 4]" in command(*run, cwd=tmp_path)
    listed = command(python, "-m", "pip", "list", cwd=tmp_path)
    assert {line.split()[0] for line in listed.splitlines()[2:]} <= {
        "ingot-runtime", "numpy", "pip", "setuptools",
    }  # fmt: skip


def test_a_build_machine(tmp_path: Path, example: Path) -> None:
    """A clone installs by the command that docs/install.md states; then its wheels do. A user's module
    that names every public type runs, and passes both strict type checkers."""
    clone = tmp_path / "clone"
    listed = command("git", "ls-files", cwd=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    python = environment(tmp_path / "build")
    (install,) = re.findall(
        r"^pip install (.*)$", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE
    )
    command(python, "-m", "pip", "install", "-q", *install.split(), cwd=clone)
    shutil.rmtree(clone)
    user = Path(shutil.copy(USER_CODE, tmp_path / "user_code.py"))
    check_user_code(python, user, example)
    wheels = (made("ingot_runtime-[0-9]*.whl"), made("ingot_compiler-[0-9]*.whl"))
    pip = ("pip", "install", "-q", "--force-reinstall", "--no-deps")
    command(python, "-m", *pip, *wheels, cwd=tmp_path)
    check_user_code(python, user, example)
    assert "usage: ingot" in command(python.with_name("ingot"), "--help", cwd=tmp_path)
    page = python.parents[1] / "share" / "man" / "man1" / "ingot-compile.1"
    assert page.read_text() == command(python.with_name("ingot"), "man", "compile", cwd=tmp_path)


def check_user_code(python: Path, user: Path, example: Path) -> None:
    """Run the user's module and check its types, against what ``python`` has installed."""
    made_here = user.parent / "made"
    made_here.mkdir(exist_ok=True)
    out = command(python, user, example / "two_layer.onnx", made_here, cwd=user.parent)
    assert "(3, 4)" in out
    assert "mlp" in out
    strict = ("--strict", "--python-executable", python, user.name)
    command(sys.executable, "-m", "mypy", *strict, cwd=user.parent)
    (user.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    types = ("--pythonpath", python, user.name)
    command(sys.executable, "-m", "pyright", *types, cwd=user.parent)
