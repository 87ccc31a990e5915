"""A bundle as it is shipped: with calls that prove it on a device, and signed.

In: an open build, a bundle that a project has made, what is asked for. Out: another file with the
same sections and more. Not done here: the calls (``check.selftest``), signatures (``ship.sign``).
"""

from __future__ import annotations

import os
import shutil

from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.stages.start_compilation import start_compilation
from ingot_build_rules.tools.ship.expiry import end_of_day
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReleaseChoices:
    """``model`` and ``options``: what the bundle was made of; ``selftest``: how many calls;
    ``keys``: PEM files of those who sign; ``expires``: the last day on which the signatures count,
    "" for none; ``number``: larger for a later release, None where they are not counted."""

    model: str
    options: CompileOptions
    selftest: int = 0
    keys: tuple[str, ...] = ()
    expires: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """``digest``: the root digest of the file; ``size_bytes``: of the file."""

    digest: str
    size_bytes: int
    call_count: int
    signature_count: int


def write_release(build: Scheduler, bundle: str, output: str, choices: ReleaseChoices) -> Release:
    """Copy the bundle, put the calls into it and make them, then the signatures, which cover them.

    Raises:
        UserError: no call can be made, no key, a day that is none. VerificationError: a call of a
            variant that runs here gives something else: nothing is signed. OutputError: no space.
    """
    from ingot_build_rules.tools.check.selftest import add_selftest

    expires = end_of_day(choices.expires or None, "key 'expires'")
    shutil.copyfile(bundle, output)
    if choices.selftest:
        compiled = start_compilation(build, choices.model, choices.options)
        add_selftest(compiled, output, choices.selftest)
    for key in choices.keys:
        _sign(output, key, expires, choices.number)
    with opened(output) as source:
        digest = source.root_digest.hex()
    return Release(digest, os.path.getsize(output), choices.selftest, len(choices.keys))


def _sign(path: str, key: str, expires: int, number: int | None) -> None:
    from ingot_build_rules.tools.ship.sign import sign_inside  # ``cryptography`` is for who signs
    from ingot_build_rules.tools.ship.signer import signer_of_file

    sign_inside(path, path, signer_of_file(key, None), expires, number)
