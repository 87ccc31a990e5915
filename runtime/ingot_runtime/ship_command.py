"""The verbs of ``python -m ingot_runtime`` for bundles that were shipped: ``selftest``, ``install``, ``rollback``,
``apply``.

In: parsed arguments. Out: one line, an exit code. Not done here: parsing (``command``), the work (a
module for each verb).
"""

from .errors import InputError, SignatureError
from .format.header import SELFTEST
from .format.source import Source
from .json_output import json_line
from .printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from .executor.session import Session
    from .installed_base import Base

FAILED = 4


def keys_of(options: "argparse.Namespace") -> "list[str] | str | None":
    """Return the keys of which one must have signed, or the path of a policy.

    Raises:
        InputError: both are given.
    """
    if options.policy is None:
        return list(options.require_key) or None
    if options.require_key:
        why = "expected --policy, or --require-key"
        raise InputError("a policy and keys", "command line", why, "name the keys in the policy")
    return str(options.policy)


def selftest(options: "argparse.Namespace", session: "Session") -> int:
    """Make the calls that the bundle holds; print a line; return 4 if one gives something else."""
    from .selftest import prove

    proof = prove(session)
    variant = session.loaded.variant.target
    report = {"bundle": options.bundle, "digest": session.digest, "target": variant}
    if options.verb_name == "install" and not proof.failures:
        return 0  # one line: that of the installation
    _tell(
        options,
        {**report, "call_count": proof.count, "error": proof.error, "failures": proof.failures},
        f"{options.bundle}: {'failed' if proof.failures else 'passed'}, {proof.count} of"
        f" {variant}, error {proof.error:.3g}{''.join(f'; {line}' for line in proof.failures[:3])}",
    )
    return FAILED if proof.failures else 0


def install(options: "argparse.Namespace", session: "Session") -> int:
    """Make a bundle that was loaded the current one of a folder, if the calls that it holds give
    what they must."""
    from .install import install as install_file
    from .installed_base import content
    from .loader.public_keys import read_small
    from .loader.signatures import detached_path

    source = session.loaded.source
    has_calls = any(row.kind == SELFTEST for row in source.sections)
    if has_calls and not options.no_selftest:
        code = selftest(options, session)
        if code:
            return code
    _require_not_older(options, source)
    if options.keep < 1:
        raise InputError("bad --keep", "command line", f"got {options.keep}", "give 1 or more")
    beside = detached_path(source.name)
    signatures = read_small(beside) if beside else b""
    path = install_file(
        content(source),
        signatures,
        session.digest,
        options.to,
        options.keep,
        base=_base(options, source),
    )
    report = {"bundle": options.bundle, "digest": session.digest, "installed": path}
    _tell(options, report, f"{path}: installed, digest {session.digest[:16]}")
    return 0


def _require_not_older(options: "argparse.Namespace", source: Source) -> None:
    """Refuse a bundle whose signed number is below that of the current one: with ``--not-older`` or
    where one of them has a number."""
    from .install import current_source
    from .loader.signatures import signed_number

    keys, is_asked = keys_of(options), options.not_older
    if is_asked and options.allow_older:
        why = "expected one of --not-older and --allow-older"
        raise InputError(
            "whether an older bundle may be installed is not clear", "command line", why
        )
    if keys is None and is_asked:
        why, do = "numbers count as far as their signatures do", "add --require-key, or --policy"
        raise InputError("--not-older without keys", "command line", why, do)
    if keys is None or options.allow_older:
        return
    number, before = signed_number(source, keys), current_source(options.to)
    if number is None and is_asked:
        why, do = "no signature by these keys has one", "sign it by `ingot sign --number N`"
        raise SignatureError("the bundle has no number", source.name, why, do)
    installed = None if before is None else signed_number(before, keys)
    if installed is not None and (number is None or number < installed):
        why = (
            f"expected a number of {installed} or more, got {'none' if number is None else number}"
        )
        do = "install a later one; to go back: `rollback`, or --allow-older"
        raise SignatureError("the bundle is older than the current one", source.name, why, do)


def _base(options: "argparse.Namespace", source: Source) -> "Base | None":
    """Return the other bundle in which weights lie, and where on this device it may lie already."""
    from .installed_base import Base, near

    if source.shared is None or source.base is None:
        return None
    name, other = source.shared.name, options.weights_from
    found = near(other, source.base, name) if other is not None else []
    if other is not None and not found:
        why = f"expected {name}, or an installed bundle, with root digest {source.shared.digest}"
        do = "name the folder of an installation that has it, or leave the option out"
        raise InputError("the bundle with the weights is not there", other, why, do)
    return Base(source.base, name, [*near(options.to, source.base, name), *found])


def rollback(options: "argparse.Namespace") -> int:
    """Make the bundle before the current one of a folder current again."""
    from .install import rollback as go_back

    path = go_back(options.folder)
    _tell(options, {"installed": path}, f"{path}: current again")
    return 0


def apply(options: "argparse.Namespace") -> int:
    """Make a new bundle of an old one and a delta."""
    from .apply_delta import apply_delta

    keys = keys_of(options)
    digest = apply_delta(options.old, options.delta, options.output, keys=keys)
    line = f"{options.output}: made of {options.old}, digest {digest[:16]}"
    _tell(options, {"output": options.output, "digest": digest}, line)
    return 0


def _tell(options: "argparse.Namespace", values: "dict[str, Any]", line: str) -> None:
    print(json_line(values) if options.json else printable(line))
