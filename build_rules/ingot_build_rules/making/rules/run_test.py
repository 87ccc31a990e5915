"""Rule ``run_test``: a bundle, run on given inputs by the loader, gives the expected outputs.

In: digests of a bundle and of two files of arrays, tolerances, what of this machine decides. Out:
nothing: a test that fails is an error, of which no result is kept. Not done here: running and
comparing (``testing``), finding out what of the machine decides (``workspace.run_tests``).

The key holds the code of the loader, and the variant that the loader takes on this machine with the
CPU features that it uses: a pass on one machine says nothing of other code on another.
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RunTestInputs:
    """``bundle``: its root digest; ``inputs``, ``outputs``: sha256 of ``.npz`` files; the paths say
    where they are. ``variant``: the target of the code that runs here, "" where none can;
    ``features``: the CPU features that it uses."""

    bundle: str
    inputs: str
    outputs: str
    relative_tolerance: float
    absolute_tolerance: float
    threads: int
    executor: str
    variant: str
    features: tuple[str, ...]
    bundle_path: str
    inputs_path: str
    outputs_path: str


def _compute(context: RuleContext, inputs: RunTestInputs) -> None:
    from ingot_build_rules.making.testing.largest_error import Tolerance
    from ingot_build_rules.making.testing.run_and_compare import (
        BundleRun,
        FileOfArrays,
        run_and_compare,
    )

    del context
    run_and_compare(
        BundleRun(inputs.bundle_path, inputs.bundle, inputs.threads, inputs.executor),
        FileOfArrays(inputs.inputs_path, inputs.inputs),
        FileOfArrays(inputs.outputs_path, inputs.outputs),
        Tolerance(inputs.relative_tolerance, inputs.absolute_tolerance),
    )


RUN_TEST = Rule(
    "run_test",
    1,
    (
        "bundle", "inputs", "outputs", "relative_tolerance", "absolute_tolerance", "threads",
        "executor", "variant", "features",
    ),
    _compute,
    reads_files=True,
)  # fmt: skip
