"""A user's module that names every public type; strict type checkers accept it as it stands."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ingot
import ingot_runtime


def build(model: Path, folder: Path) -> str:
    """Compile a model, and return the digest of the file that was written."""
    try:
        bundle: ingot.Bundle = ingot.compile(
            model, targets=["x86-64-v3"], shapes={"x": (3, 16)}, cache=folder / "cache"
        )
    except (ingot.ModelError, ingot.UnsupportedError) as error:
        raise SystemExit(f"{error.what}: {error.do}") from error
    digest: str = bundle.save(folder / "m.ingot")
    assert len(bundle.to_bytes()) == (folder / "m.ingot").stat().st_size
    assert "matmul" in bundle.text("fused")
    return digest


def build_project(model: Path, folder: Path) -> list[str]:
    """Build a project, and return how each of its results came about."""
    project = ingot.Project(folder=folder)
    project.model("mlp", source=model)
    project.bundle("mlp", model="mlp", targets=["x86-64-v3"], output="project.ingot")
    report = project.build(cache=folder / "cache")
    return [f"{result.name} {result.status}" for result in report.results]


def describe(specs: tuple[ingot_runtime.TensorSpec, ...]) -> dict[str, tuple[str, int]]:
    """Return numpy's name of the dtype, and the rank, of each tensor."""
    return {spec.name: (spec.dtype, len(spec.shape)) for spec in specs}


def run(bundle: Path, digest: str, x: np.ndarray) -> np.ndarray:
    """Run a bundle by name and at fixed addresses; both give the same."""
    session: ingot_runtime.Session
    with ingot_runtime.load(bundle, threads=2, digest=digest) as session:
        assert describe(session.inputs) == {"x": ("float32", 2)}
        y = session.run({"x": x}, timeout=600.0)["probabilities"]
        bound: ingot_runtime.Bound = session.bind({"x": x}, {"probabilities": np.empty_like(y)})
        bound.run()
        assert np.array_equal(bound.outputs["probabilities"], y)
        try:
            session.run({})
        except ingot_runtime.InputError as error:
            problem: ingot_runtime.IngotError = error
            assert isinstance(problem, ingot.IngotError)
        return y


if __name__ == "__main__":
    import sys

    source, to = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    inputs = np.load(source.with_suffix(".npz"))["x"]
    print(run(to / "m.ingot", build(source, to), inputs).shape)
    print(build_project(source, to))
    print(ingot.__version__, ingot_runtime.__version__)
