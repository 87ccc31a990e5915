"""The folder of zoo models: ``INGOT_ZOO`` names it; ``shared/zoo/make_zoo.py`` fills it."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def zoo() -> Path:
    """The folder with ``NAME/model.onnx``, ``inputs.npz`` and ``outputs.npz`` (PyTorch's, f32)."""
    folder = os.environ.get("INGOT_ZOO", "")
    assert folder, "set INGOT_ZOO to the folder of zoo models, or leave out tests marked zoo"
    return Path(folder)
