"""What users catch: errors as ``ingot`` and ``ingot_runtime`` raise them, each through a public
call."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from tests.hostile.model_builder import model, relu_chain, value

import ingot
import ingot_runtime

SOURCE = relu_chain().SerializeToString()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache and a bundle."""
    made = tmp_path_factory.mktemp("errors")
    ingot.compile(SOURCE, cache=made / "cache").save(made / "m.ingot")
    return made


def compiled(folder: Path, source: bytes = SOURCE, **options: object) -> ingot.Bundle:
    """Compile a model over the folder's cache."""
    return ingot.compile(source, **{"cache": folder / "cache", **options})  # type: ignore[arg-type]


def of_unknown_op() -> bytes:
    """A model with an op that there is none of."""
    node = helper.make_node("Fancy", ["x"], ["y"], "n", domain="com.acme")
    made = model([node], [value("x", [1])], [value("y", None)])
    made.opset_import.append(helper.make_opsetid("com.acme", 1))
    return bytes(made.SerializeToString())


def open_to_others(folder: Path) -> ingot.Bundle:
    """Compile over a cache that anybody may write to."""
    cache = folder / "open"
    cache.mkdir(exist_ok=True)
    cache.chmod(0o777)
    return compiled(folder, cache=cache)


def damaged(folder: Path, *, size: int | None = None, at: int = 0) -> object:
    """Load the bundle cut to ``size`` bytes, or with the byte ``at`` changed."""
    content = bytearray((folder / "m.ingot").read_bytes()[:size])
    content[at] ^= 0 if size else 1
    return ingot_runtime.load(content)


def ran(folder: Path, columns: int = 3, **options: int) -> object:
    """Call the bundle."""
    with ingot_runtime.load(folder / "m.ingot", **options) as session:  # type: ignore[arg-type]
        return session.run({"x": np.zeros((4, columns), np.float32)})


RAISED: dict[type[Exception], Callable[[Path], object]] = {
    ingot.UserError: lambda folder: compiled(folder, targets=["x86-64-v9"]),
    ingot.ModelError: lambda folder: compiled(folder, b"\xff\xff"),
    ingot.UnsupportedError: lambda folder: compiled(folder, of_unknown_op()),
    ingot.LimitError: lambda folder: compiled(folder, max_bytes=1),
    ingot.IncompatibleTargetError: lambda folder: compiled(folder, targets=["aarch64"], check=True),
    ingot.OutputError: lambda folder: compiled(folder).save(folder / ("n" * 300)),
    ingot.CacheAuthorityError: open_to_others,
    ingot_runtime.FileError: lambda folder: ingot_runtime.load(folder / "none.ingot"),
    ingot_runtime.NotABundleError: lambda folder: damaged(folder, at=0),
    ingot_runtime.FormatError: lambda folder: damaged(folder, size=1000),
    ingot_runtime.DigestError: lambda folder: damaged(
        folder, at=os.path.getsize(folder / "m.ingot") - 1
    ),
    ingot_runtime.IncompatibleError: lambda folder: ingot_runtime.load(
        folder / "m.ingot", features=frozenset()
    ),
    ingot_runtime.InputError: lambda folder: ran(folder, columns=5),
    ingot_runtime.LimitError: lambda folder: ran(folder, max_bytes=1),
}


@pytest.mark.sweep(6)
@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_one_clause_catches_them(folder: Path, kind: type[Exception]) -> None:
    """``except ingot.IngotError`` catches what either package raises; it says what, where and why,
    and what to do."""
    with pytest.raises(ingot.IngotError) as caught:
        RAISED[kind](folder)
    assert type(caught.value) is kind
    assert caught.value.what
    assert caught.value.where or caught.value.why
    assert str(caught.value).count("\n") <= 4
    assert all(isinstance(part, str) for part in caught.value.parts)
