"""Runs a folder of models with ONNX Runtime; ``python peer.py FOLDER``.

In: ``N.onnx``, ``N.npz``. Out: ``N.out.npz``. Not done here: comparing. Needs onnxruntime alone, so
that an interpreter without Ingot can run it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def main(folder: Path) -> None:
    """Run every model."""
    for path in sorted(folder.glob("*.onnx")):
        process = os.fork()
        if process == 0:
            try:
                run(path)
            except Exception as error:  # one model's error is that model's answer
                path.with_suffix(".error").write_text(str(error), encoding="utf-8")
            os._exit(0)
        status = os.waitpid(process, 0)[1]
        if status:
            path.with_suffix(".error").write_text(f"status {status}", encoding="utf-8")


def run(path: Path) -> None:
    """Run one model."""
    runtime: Any = import_module("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results = session.run(names, dict(np.load(path.with_suffix(".npz"))))
    np.savez(path.with_suffix(".out.npz"), **dict(zip(names, results, strict=True)))


main(Path(sys.argv[1]))
