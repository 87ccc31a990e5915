"""Makes an engine's file of a network, in the engine's environment; it is kept for later runs.

In: a folder of environments, an engine, a network's folder. Out: ``FOLDER/ENGINE/made/NAME/model``
with the engine's suffix; a ``ConversionError`` with the last line that its tools say. Not done here: how
each is made (``engines``).

The engine's interpreter runs this module, too: ``-m tests.benchmarks.peers.convert ENGINE NETWORK
MADE``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from tests.benchmarks.peers.registry import ENGINES, python_of

_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


class ConversionError(Exception):
    """Why an engine has no file of a network."""


def converted(folder: str, engine: str, network: str) -> str:
    """Return the path of the file; make it where there is none that is newer than the model."""
    kept = os.path.join(folder, engine, "made", os.path.basename(network))
    path = os.path.join(kept, f"model{ENGINES[engine].SUFFIX}")
    model = os.path.join(network, "model.onnx")
    if os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(model):
        return path
    shutil.rmtree(kept, ignore_errors=True)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(kept)) as work:
        made = os.path.join(work, "whole")
        os.mkdir(made)
        _run(python_of(folder, engine), engine, network, made)
        os.rename(made, kept)
    return path


def _run(python: str, engine: str, network: str, made: str) -> None:
    if not os.path.exists(python):
        raise ConversionError(f"not installed: there is no {python}")
    file = os.path.join(made, f"model{ENGINES[engine].SUFFIX}")
    # Without -P the folder that is worked in would come before the libraries.
    command = [python, "-P", "-m", "tests.benchmarks.peers.convert", engine, network, file]
    environment = {**os.environ, "PYTHONPATH": _ROOT}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if ended.returncode or not os.path.exists(file):
        said = (ended.stderr.strip() or ended.stdout.strip() or "nothing said").splitlines()
        words = " ".join(said[-2:]).split()
        raise ConversionError(f"not converted: {' '.join(words)}")


if __name__ == "__main__":
    ENGINES[sys.argv[1]].convert(os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]))
