"""Makes an environment for each engine that networks are timed beside.

In: a folder, names of engines (all without any), or ``trees`` for the libraries of trees. Out: ``FOLDER/NAME``, with ``bin/python``. Not done
here: what each is made of (``registry``).

    python tests/benchmarks/peers/install.py FOLDER [ENGINE ...]

An environment that is there is brought to the versions that are listed. PyTorch needs several GB
where the index of packages has no build of it for processors alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))

from tests.benchmarks.peers import trees
from tests.benchmarks.peers.registry import ENGINES, python_of

PACKAGES = {**{name: engine.PACKAGES for name, engine in ENGINES.items()}, "trees": trees.PACKAGES}


def install(folder: str, engine: str) -> None:
    """Make one environment."""
    python = python_of(folder, engine)
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", os.path.join(folder, engine)], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[engine]], check=True)
    print(f"{engine}: {' '.join(PACKAGES[engine])}", flush=True)


def main() -> int:
    """Make those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=", ".join(PACKAGES))
    options = parser.parse_args()
    unknown = sorted({*options.engines} - PACKAGES.keys())
    if unknown:
        parser.error(f"unknown engine {unknown[0]!r}; known are: {', '.join(PACKAGES)}")
    for engine in options.engines or PACKAGES:
        install(options.folder, engine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
