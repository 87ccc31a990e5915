"""A bundle gets its name when it has been checked and proved: until then it lies beside it.

In: a compilation, a path, what is asked for. Out: the file, and what was found. Not done here:
comparing with the interpreter (``self_check``), the calls that prove it (``selftest``).
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from ingot_artifacts.store.atomic import sync_folders
from ingot_build_rules.making.stages.output_file import check_output
from ingot_build_rules.tools.check.check_runs import Inputs
from ingot_build_rules.tools.check.self_check import check_bundle
from ingot_build_rules.tools.check.selftest import Proved, add_selftest
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.tools.check.check_report import CheckReport


@dataclass(frozen=True, slots=True)
class ProofChoices:
    """``check``: compare with the interpreter, on ``inputs`` or on generated ones; ``selftest``:
    how many calls the bundle keeps, and is proved by."""

    check: bool = False
    inputs: Inputs | None = None
    selftest: int = 0


def save_proved(
    compiled: CompiledModel, path: str, choices: ProofChoices
) -> tuple[str, CheckReport | None, Proved | None]:
    """Write the bundle under another name beside ``path``, and rename it if nothing is wrong.

    Returns the root digest, what a check found, what proved it. With differences in the report,
    ``path`` is what it was before.

    Raises:
        UserError: wrong inputs. IncompatibleTargetError: no variant that can be checked.
            VerificationError: the bundle fails its selftest. Every error of ``save``.
    """
    check_output(path)
    folder, name = os.path.split(os.path.abspath(path))
    report, proved = None, None
    with tempfile.TemporaryDirectory(prefix=".ingot-check-", dir=folder) as kept_apart:
        candidate = os.path.join(kept_apart, name)
        digest = compiled.save(candidate)
        if choices.check:
            report = check_bundle(compiled, candidate, choices.inputs)
            if report.differences:
                return digest, report, None
        if choices.selftest:
            proved = add_selftest(compiled, candidate, choices.selftest)
            digest = proved.digest
        os.replace(candidate, path)
        sync_folders([folder])
    return digest, report, proved
