"""Real PyTorch modules, exported by PyTorch and compiled.

Needs ``torch`` and ``onnxscript`` (`pytest -m torch`).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import ingot
import ingot_runtime

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def torch() -> Any:
    """PyTorch."""
    return importlib.import_module("torch")


@pytest.fixture(scope="module")
def network(torch: Any) -> Any:
    """x[.., 4] -> a layer -> relu, or times a scale."""

    def forward(self: Any, x: Any, scale: Any = None) -> Any:
        y = torch.relu(self.layer(x))
        return y if scale is None else y * scale

    torch.manual_seed(1)
    made = type("Network", (torch.nn.Module,), {"forward": forward})()
    made.layer = torch.nn.Linear(4, 3)
    return made.eval()


def answer(bundle: ingot.Bundle, **inputs: Any) -> Any:
    """What the bundle gives for tensors."""
    with ingot_runtime.load(bundle.to_bytes()) as session:
        arrays = {name: value.numpy() for name, value in inputs.items()}
        (output,) = session.run(arrays).values()
    return output


def test_a_module_gives_its_own_numbers(torch: Any, network: Any) -> None:
    """By position and by name, with a batch of any size, and the same bundle each time."""
    x, scale = torch.randn(5, 4), torch.randn(3)
    batch = torch.export.Dim("batch")
    bundle = ingot.compile(network, x, dynamic_shapes=({0: batch},))
    for rows in (1, 5, 8):
        more = torch.randn(rows, 4)
        np.testing.assert_allclose(
            answer(bundle, x=more), network(more).detach().numpy(), rtol=1e-5, atol=1e-6
        )
    assert ingot.compile(network, (x,), dynamic_shapes=({0: batch},)).digest == bundle.digest
    named = ingot.compile(network, {"x": x, "scale": scale})
    np.testing.assert_allclose(
        answer(named, x=x, scale=scale), network(x, scale).detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_exported_programs(torch: Any, network: Any) -> None:
    """Of ``torch.export`` and of ``torch.onnx``."""
    x = torch.randn(2, 4)
    expected = network(x).detach().numpy()
    for program in (
        torch.export.export(network, (x,)),
        torch.onnx.export(network, (x,), dynamo=True, verbose=False),
    ):
        np.testing.assert_allclose(
            answer(ingot.compile(program), x=x), expected, rtol=1e-5, atol=1e-6
        )


def test_an_export_that_fails(torch: Any) -> None:
    """A branch that the data decide: PyTorch says so, and names the line."""

    def forward(self: Any, x: Any) -> Any:
        del self
        return x if x.sum() > 0 else -x

    made = type("Branches", (torch.nn.Module,), {"forward": forward})().eval()
    with pytest.raises(ingot.ModelError) as caught:
        ingot.compile(made, torch.ones(2))
    assert caught.value.where == "module Branches"
    assert "data-dependent" in caught.value.why
    assert "return x if x.sum() > 0 else -x" in caught.value.why
    with pytest.raises(ingot.ModelError, match="must be the arg names"):
        ingot.compile(made, torch.ones(2), dynamic_shapes={"y": {0: "n"}})
