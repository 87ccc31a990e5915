"""The examples that people copy into other places: what they run is run, with wheels alone, in
empty environments.

Needs ``make dist`` and the package registry (`make test-packages`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from tests.packages.containerfile import follow
from tests.packages.test_packages import command, environment, made
from tests.tidy.source import ROOT

pytestmark = pytest.mark.packages

EXAMPLES = ROOT / "examples"
TEXTS = ("Ahead of time", "Total: 1,234.56 EUR", "WHITE-ON-GREEN")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of the compiler and the loader."""
    folder = tmp_path_factory.mktemp("context") / "wheels"
    folder.mkdir()
    for name in ("ingot_compiler", "ingot_runtime"):
        shutil.copy(made(f"{name}-[0-9]*.whl"), folder)
    return folder


@pytest.fixture(scope="module")
def project(wheels: Path) -> Path:
    """The demonstration project with one bundle, beside the wheels."""
    folder = wheels.parent
    script = EXAMPLES / "project" / "make_models.py"
    command(sys.executable, script, folder, cwd=folder)
    text = (folder / "ingot.toml").read_text()
    kept = [part for part in re.split(r"\n(?=\[)", text) if not re.search(r"cnn|transformer", part)]
    (folder / "ingot.toml").write_text("\n".join(kept))
    return folder


def steps(workflow: Path) -> list[str]:
    """The commands of a workflow whose ``run`` fits on a line."""
    found = re.findall(r"^ +run: (?!\|)(.+)$", workflow.read_text(), re.MULTILINE)
    assert len(found) == workflow.read_text().count(" run:")
    return found


def run_workflow(clone: Path, python: Path, home: Path) -> list[str]:
    """Run the steps as a runner does whose home is new; return what each printed."""
    told: list[str] = []
    for step in steps(EXAMPLES / "ci" / "bundles.yml"):
        path = f"{python.parent}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        done = subprocess.run(
            ["/bin/sh", "-ec", step],
            cwd=clone,
            env={**kept, "PATH": path, "HOME": str(home)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        told.append(done.stdout)
    return told


def test_the_workflow(project: Path, tmp_path: Path) -> None:
    """A runner builds and tests all; the next one, in another clone with another key, restores the
    cache and runs nothing, and its bundle has the same bytes."""
    python = environment(tmp_path / "python")
    one, two = tmp_path / "one", tmp_path / "two"
    for clone in (one, two):
        shutil.copytree(project, clone)
    _, built, trimmed = run_workflow(one, python, tmp_path / "home one")
    assert "passed test.mlp" in built
    assert trimmed
    assert (one / "trace.json").exists()
    shutil.copytree(one / ".cache", two / ".cache")
    _, again, _ = run_workflow(two, python, tmp_path / "home two")
    assert re.search(r"; 0 actions ran, \d+ from the cache", again), again
    assert (one / "dist/mlp.ingot").read_bytes() == (two / "dist/mlp.ingot").read_bytes()


def test_the_dockerfiles(project: Path, tmp_path: Path) -> None:
    """The image that builds leaves the bundles alone; the one for a device shows its bundle and
    runs it, with the loader and numpy and nothing else."""
    built = follow(EXAMPLES / "docker" / "build.Dockerfile", project, tmp_path / "build")
    assert (built.root / "mlp.ingot").exists()
    context = tmp_path / "context"
    shutil.copytree(project, context)
    shutil.copytree(built.root, context / "dist", ignore=shutil.ignore_patterns(".python"))
    dockerfile = EXAMPLES / "docker" / "device.Dockerfile"
    device = follow(dockerfile, context, tmp_path / "device", BUNDLE="dist/mlp.ingot")
    assert "mlp" in device.start()
    shutil.copytree(context / "data", device.root / "data")
    assert "float32[" in device.start("run", "/bundle.ingot", "--inputs", "/data/mlp.npz")
    packages = {path.name for path in (device.root / "app").glob("*") if path.is_dir()}
    assert {name for name in packages if not name.endswith((".dist-info", ".libs"))} == {
        "bin", "ingot_runtime", "numpy",
    }  # fmt: skip


def picture(path: Path) -> Path:
    """Draw the texts with the font that Pillow brings: one dark, one small and blue, one white."""
    drawn = Image.new("RGB", (900, 400), "white")
    draw = ImageDraw.Draw(drawn)
    large, small = ImageFont.load_default(56), ImageFont.load_default(30)
    draw.text((40, 30), TEXTS[0], font=large, fill="black")
    draw.text((40, 140), TEXTS[1], font=small, fill="navy")
    draw.rectangle((30, 230, 860, 330), fill="darkgreen")
    draw.text((50, 250), TEXTS[2], font=large, fill="white")
    drawn.save(path)
    return path


def test_optical_character_recognition(wheels: Path, tmp_path: Path) -> None:
    """Models of a PyPI package, built for two targets, read a picture in an environment of loader,
    numpy and Pillow; upside down they read it as well, from the other end."""
    folder = tmp_path / "ocr"
    shutil.copytree(EXAMPLES / "ocr", folder, ignore=shutil.ignore_patterns("models", "dist"))
    command(sys.executable, "fetch_models.py", cwd=folder)
    command(sys.executable, "-m", "ingot", "build", "-q", cwd=folder)
    python = environment(tmp_path / "python")
    pip = ("-m", "pip", "install", "-q", "--find-links", wheels, "ingot-runtime", "pillow")
    command(python, *pip, cwd=folder)
    upright = picture(folder / "upright.png")
    with Image.open(upright) as drawn:
        drawn.transpose(Image.Transpose.ROTATE_180).save(folder / "turned.png")
    for name, texts in (("upright.png", TEXTS), ("turned.png", TEXTS[::-1])):
        lines = command(python, "read_text.py", name, cwd=folder).splitlines()
        assert [line.split("  ", 1)[1] for line in lines] == list(texts)
        assert all(float(line.split()[0]) > 0.9 for line in lines)
