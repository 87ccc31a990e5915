"""Sizes that pages state: of wheels, of what is installed.

In: the working tree, the environment. Out: kB and MB. Not done here: pages (``test_claims``).
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from tests.tidy.source import ROOT

_STEP_KB, _METADATA_KB = 10, 8


def wheel_kb_max(package: str) -> int:
    """The size of a wheel, rounded up: its modules, compressed as in one, licences and metadata
    (``tests/packages`` holds wheels to it)."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix == ".py" or path.name == "py.typed":
                archive.write(path, str(path.relative_to(ROOT / package)))
    size_kb = len(written.getvalue()) / 1000 + _METADATA_KB
    return math.ceil(size_kb / _STEP_KB) * _STEP_KB


def installed_mb(names: Iterable[str]) -> float:
    """The size of installed distributions, without compiled modules."""
    files = [file for name in names for file in metadata.files(name) or ()]
    paths = [Path(str(file.locate())) for file in files if not str(file).endswith(".pyc")]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def with_dependencies(name: str) -> set[str]:
    """A distribution and all that it requires, our own left out."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        required = metadata.requires(waiting.pop()) or []
        names = {
            re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in required if "extra ==" not in text
        }
        waiting += names - found
        found |= names
    return {each for each in found if not each.startswith("ingot")}
