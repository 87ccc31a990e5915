"""Runs a bundle on given inputs by the loader, and compares what it gives with what is expected.

In: a bundle, two files of arrays, tolerances. Out: nothing, or an error that tells the largest
difference. Not done here: choosing tests, remembering which passed (``workspace.run_tests``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress

import ingot_runtime
from ingot_build_rules.making.testing.largest_error import (
    Array,
    LargestError,
    Tolerance,
    error_text,
    largest_error,
)
from ingot_compiler.ir.errors import UserError, VerificationError
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.npz import in_bits, read_npz

with suppress(ImportError):
    # The loader imports it by name for bundles that use devices: its code is in the key by this
    # line.
    import ingot_runtime_devices.attached as _  # noqa: F401

_CORRECT = "find the fault with `ingot compile --check`, or correct {}"


@dataclass(frozen=True, slots=True)
class FileOfArrays:
    """An ``.npz`` file at ``path`` whose content has the sha256 ``digest``."""

    path: str
    digest: str

    def read(self) -> Mapping[str, Array]:
        """Return its arrays by name.

        Raises:
            InputError: it is not there, or no such file. UserError: its content is another one.
        """
        arrays = read_npz(self.path)
        with open(self.path, "rb") as file:
            now = hashlib.file_digest(file, "sha256").hexdigest()
        if now != self.digest:
            why = f"expected content {self.digest[:16]}, got {now[:16]}"
            what = "a file of a test changed while it was read"
            raise UserError(what, self.path, why, "build again")
        return arrays


@dataclass(frozen=True, slots=True)
class BundleRun:
    """How a bundle is run: the file at ``path`` must have the root digest ``root``."""

    path: str
    root: str
    threads: int
    executor: str

    def outputs(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return what it gives.

        Raises:
            BundleError: the loader refuses the bundle or the inputs, or the call fails.
        """
        with ingot_runtime.load(
            self.path, threads=self.threads, executor=self.executor, digest=self.root
        ) as session:
            if session.loaded.plan.values is None:
                return session.run(dict(inputs))
            from ingot_runtime.executor.values import as_arrays, of_arrays

            return as_arrays(session, session.run(of_arrays(session, dict(inputs))))[0]


def run_and_compare(
    run: BundleRun, inputs: FileOfArrays, outputs: FileOfArrays, tolerance: Tolerance
) -> None:
    """Run a bundle, and compare.

    Raises:
        VerificationError: an output differs. UserError: a file does not fit. BundleError.
    """
    expected, found = outputs.read(), run.outputs(inputs.read())
    unknown = sorted(expected.keys() - found.keys())
    if unknown:
        what, do = "a test names outputs that the model has not", f"correct {outputs.path}"
        why = f"expected outputs {', '.join(unknown)}; the model has {', '.join(found)}"
        raise UserError(what, f"bundle {run.path}", why, do)
    errors: dict[str, LargestError] = {}
    for name, wanted in sorted(expected.items()):
        want, got = in_bits(wanted), in_bits(found[name])
        if want.dtype.kind == got.dtype.kind == "U":
            _check_strings(name, want, got, run.path, outputs.path)
            continue
        _check_type(name, want, got, run.path, outputs.path)
        errors[name] = largest_error(want, got, tolerance)
    wrong = {name: item for name, item in errors.items() if item.beyond}
    if wrong:
        raise _difference(wrong, run.path, outputs.path, tolerance)


def _check_type(name: str, wanted: Array, got: Array, bundle: str, file: str) -> None:
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        why = f"expected {wanted.dtype} {list(wanted.shape)}, got {got.dtype} {list(got.shape)}"
        what = f"output {name!r} of a test has another type"
        raise VerificationError(what, f"bundle {bundle}", why, f"correct {file}")


def _check_strings(name: str, wanted: Array, got: Array, bundle: str, file: str) -> None:
    if wanted.shape != got.shape:
        _check_type(name, wanted, got, bundle, file)
    pairs = zip(wanted.ravel().tolist(), got.ravel().tolist(), strict=True)
    wrong = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if wrong is not None:
        what, why = f"output {name!r} of a test differs", f"expected {wrong[0]!r}, got {wrong[1]!r}"
        raise VerificationError(what, f"bundle {bundle}", why, _CORRECT.format(file))


def _difference(
    wrong: Mapping[str, LargestError], bundle: str, file: str, tolerance: Tolerance
) -> VerificationError:
    """Tell of the output that is off by most, in its own measure."""
    name = max(wrong, key=lambda each: wrong[each].excess)
    others = [repr(other) for other in wrong if other != name]
    what = f"output {name!r} of a test differs"
    if others:
        what += f", and so do {', '.join(others)}"
    at = f", at {list(wrong[name].index)}" if wrong[name].index else ""
    why = error_text(wrong[name], tolerance)
    return VerificationError(what, f"bundle {bundle}{at}", why, _CORRECT.format(file))
