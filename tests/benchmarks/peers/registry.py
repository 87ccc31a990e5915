"""The engines that a network can be timed beside, each in an environment of its own.

In: the files of ``engines``. Out: ``ENGINES`` by name. Not done here: environments (``install``),
files (``convert``), times (``pairs``); ONNX Runtime and OpenVINO in f32, which ``ingot bench`` has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from tests.benchmarks.peers.engines import ctranslate2, executorch, litert, mnn, ncnn, openvino_bf16


class Engine(Protocol):
    """What a file of ``engines`` has. The process of an engine runs that file alone, so it imports
    what its environment has, and that inside its functions."""

    @property
    def __file__(self) -> str | None:
        """It opens a model by ``open_model(path, inputs, options)``, which returns a call; the
        options are ``threads`` and the names of the ``outputs``."""
        ...

    @property
    def PACKAGES(self) -> tuple[str, ...]:
        """What its environment is made of."""
        ...

    @property
    def MODULE(self) -> str:
        """The module without which it is not installed."""
        ...

    @property
    def SUFFIX(self) -> str:
        """How the name of its files ends."""
        ...

    @property
    def convert(self) -> Callable[[str, str], None]:
        """Make its file of a network's folder, in a folder where others may lie beside it."""
        ...

    @property
    def open_model(self) -> Callable[[str, dict[str, Any], dict[str, Any]], Callable[[], object]]:
        """Load its file; a call returns the outputs as arrays, in their order."""
        ...


ENGINES: dict[str, Engine] = {
    "ctranslate2": ctranslate2,
    "executorch": executorch,
    "litert": litert,
    "mnn": mnn,
    "ncnn": ncnn,
    "openvino_bf16": openvino_bf16,
}


def python_of(folder: str, engine: str) -> str:
    """Path of the interpreter that has an engine, in a folder of environments."""
    return os.path.join(folder, engine, "bin", "python")
