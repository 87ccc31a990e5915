"""Follows a Dockerfile without Docker: what it copies and runs, in folders that stand for images.

In: a Dockerfile, its context, values of arguments. Out: ``Image`` of the last stage. Not done here:
base images (each stage has an environment of Python in which nothing is installed), layers, users.

An absolute path is one below the folder of its stage: in COPY, WORKDIR, ENV and the arguments of
commands.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_MOUNT = re.compile(r"--mount=\S+ ")
_ABSOLUTE = re.compile(r"(?<![\w.])/(?=\w)")


@dataclass
class Image:
    """One stage: its folder, where commands run in it, and what they see of an environment."""

    root: Path
    context: Path
    stages: Mapping[str, Image]
    values: dict[str, str]
    workdir: str = "/"
    environment: dict[str, str] = field(default_factory=dict[str, str])
    words: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def __post_init__(self) -> None:
        """Make an environment of Python, without pip where the base image has none."""
        subprocess.run([sys.executable, "-m", "venv", self.root / ".python"], check=True)

    def below(self, text: str) -> str:
        """Return a text with its absolute paths below the folder."""
        return _ABSOLUTE.sub(f"{self.root}/", text)

    def copy(self, text: str) -> None:
        """COPY, from the context or from a stage."""
        words = text.split()
        folder = self.context
        if words[0].startswith("--from="):
            folder = self.stages[words.pop(0).removeprefix("--from=")].root
        source, target = words
        found = folder / source.lstrip("/")
        goal = self.root / os.path.normpath(os.path.join(self.workdir, target)).lstrip("/")
        if found.is_dir():
            ignored = shutil.ignore_patterns("wheels") if source == "." else None
            shutil.copytree(found, goal, dirs_exist_ok=True, ignore=ignored)
        else:
            shutil.copy2(found, goal)

    def run(self, command: str) -> str:
        """RUN; return what it printed."""
        folder = self.root / self.workdir.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        kept = {"PATH": f"{self.root / '.python' / 'bin'}:{os.environ['PATH']}"}
        kept |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        done = subprocess.run(
            ["/bin/sh", "-c", self.below(_MOUNT.sub("", command))],
            cwd=folder,
            env={**kept, "HOME": str(self.root), **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def start(self, *words: str) -> str:
        """Do what ``docker run`` does; ``words`` replace CMD."""
        return self.run(" ".join([*self.words["ENTRYPOINT"], *(words or self.words["CMD"])]))


def follow(dockerfile: Path, context: Path, folder: Path, **values: str) -> Image:
    """Build all stages in subfolders; return the last one."""
    stages: dict[str, Image] = {}
    text = dockerfile.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    image: Image | None = None
    for line in lines:
        instruction, _, rest = line.partition(" ")
        for name, value in values.items():
            rest = rest.replace(f"${{{name}}}", value)
        if instruction == "FROM":
            name = rest.partition(" AS ")[2] or "last"
            (folder / name).mkdir(parents=True)
            image = stages[name] = Image(folder / name, context, stages, values)
            continue
        assert image is not None, "FROM comes first"
        _INSTRUCTIONS[instruction](image, rest)
    assert image is not None, "a Dockerfile has a stage"
    return image


def _workdir(image: Image, rest: str) -> None:
    image.workdir = rest
    (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)


def _environment(image: Image, rest: str) -> None:
    pairs = (word.partition("=") for word in rest.split())
    image.environment |= {name: image.below(value) for name, _, value in pairs}


def _run(image: Image, rest: str) -> None:
    image.run(rest)


def _argument(image: Image, rest: str) -> None:
    assert rest in image.values, f"no value for the argument {rest}"


def _words(name: str) -> Callable[[Image, str], None]:
    def keep(image: Image, rest: str) -> None:
        image.words[name] = json.loads(rest)

    return keep


_INSTRUCTIONS: dict[str, Callable[[Image, str], None]] = {
    "WORKDIR": _workdir,
    "COPY": Image.copy,
    "RUN": _run,
    "ENV": _environment,
    "ARG": _argument,
    "ENTRYPOINT": _words("ENTRYPOINT"),
    "CMD": _words("CMD"),
}
