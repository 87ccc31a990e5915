"""``max_bytes`` of a compilation: what expands, folds or plans more is refused; what stays below
gives the same bytes, from any cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
from ingot_build_rules.tools.cli.main import main

ROWS, COLUMNS = 500, 300
WORKSPACE_BYTES = 4 * ROWS * COLUMNS
WEIGHTS_BYTES = 4 * COLUMNS * COLUMNS


def _network() -> ModelProto:
    """A product, its sine, which is stored, and a sum over every row."""
    steps = [
        helper.make_node("MatMul", ["x", "w"], ["p"], "/product"),
        helper.make_node("Sin", ["p"], ["s"], "/sine"),
        helper.make_node("Softmax", ["s"], ["y"], "/rows", axis=0),
        helper.make_node("MatMul", ["y", "w"], ["z"], "/again"),
    ]
    weights = np.ones((COLUMNS, COLUMNS), np.float32)
    return make_model(
        steps, [tensor("x", [ROWS, COLUMNS])], [tensor("z", [ROWS, COLUMNS])], {"w": weights}
    )


def _with_functions() -> ModelProto:
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    body = [helper.make_node("Neg", ["a"], ["t"]), helper.make_node("Neg", ["t"], ["b"])]
    function = helper.make_function("own", "twice", ["a"], ["b"], body, opsets)
    step = helper.make_node("twice", ["x"], ["y"], "/call", domain="own")
    graph = helper.make_graph([step], "g", [tensor("x", [4])], [tensor("y", [4])])
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10)


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One cache that has everything, one that has nothing."""
    full = tmp_path_factory.mktemp("full")
    for model in (_network(), _with_functions()):
        ingot.compile(model, cache=full)
    return full, tmp_path_factory.mktemp("empty")


@pytest.mark.broad
@pytest.mark.parametrize("full", [True, False], ids=["cached", "new"])
@pytest.mark.parametrize(
    ("max_bytes", "what", "where"),
    [
        (WORKSPACE_BYTES - 1, "workspace", "node '/product' (MatMul)"),
        (WEIGHTS_BYTES - 1, "constant", "constant w"),
        (0, "constant", "constant w"),
    ],
)
def test_more_is_refused(
    caches: tuple[Path, Path], max_bytes: int, what: str, where: str, full: bool
) -> None:
    """The error names what is too large; a cache that has the result does not help."""
    with pytest.raises(ingot.LimitError) as caught:
        ingot.compile(_network(), cache=caches[not full], max_bytes=max_bytes)
    assert what in caught.value.what
    assert where in caught.value.where
    assert f"at most {max_bytes} bytes" in caught.value.why
    assert "max_bytes" in caught.value.do


@pytest.mark.parametrize("full", [True, False], ids=["cached", "new"])
def test_functions_are_expanded_within_the_limit(caches: tuple[Path, Path], full: bool) -> None:
    """Bytes of the nodes in the place of calls."""
    with pytest.raises(ingot.LimitError, match="functions"):
        ingot.compile(_with_functions(), cache=caches[not full], max_bytes=8)
    assert ingot.compile(_with_functions(), cache=caches[not full], max_bytes=1 << 20)


def test_a_limit_changes_no_byte(tmp_path: Path) -> None:
    """Two caches, with and without a limit that is kept."""
    source = make_model([node("Relu", "x", "y")], [tensor("x", ["n"])], [tensor("y", ["n"])])
    free = ingot.compile(source, cache=tmp_path / "free")
    limited = ingot.compile(source, cache=tmp_path / "limited", max_bytes=1 << 20)
    assert free.to_bytes() == limited.to_bytes()


@pytest.mark.parametrize("number", [-1, True])
def test_a_limit_is_a_number_of_bytes(number: int) -> None:
    """Refused as an argument."""
    with pytest.raises(ingot.UserError, match="max_bytes"):
        ingot.compile(_with_functions(), max_bytes=number)


@pytest.mark.broad
def test_the_command_takes_a_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the units of the other sizes; exit code 3."""
    (tmp_path / "m.onnx").write_bytes(_network().SerializeToString())
    arguments = [
        "compile",
        str(tmp_path / "m.onnx"),
        "-o",
        str(tmp_path / "m.ingot"),
        "-q",
        "--cache",
        str(tmp_path / "c"),
    ]
    assert main([*arguments, "--max-bytes", "100kB"]) == 3
    assert "constant w" in capsys.readouterr().err
    assert not (tmp_path / "m.ingot").exists()
    assert main([*arguments, "--max-bytes", "1GiB"]) == 0
    assert main([*arguments, "--max-bytes", "much"]) == 1
