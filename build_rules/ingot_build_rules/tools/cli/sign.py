"""Verb ``sign``: say who made a bundle.

In: a bundle, a key. Out: the bundle with a signature, or a file beside it; a line about it; an exit
code. Not done here: signing (``ship.sign``).
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_build_rules.tools.ship.signer import Signer


def run(arguments: argparse.Namespace) -> int:
    """Verify every byte, and sign."""
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.ship.expiry import end_of_day
    from ingot_build_rules.tools.ship.sign import sign_beside, sign_inside
    from ingot_runtime.format.statement import DETACHED

    check_bundle_kind(arguments.bundle)
    if arguments.sigstore:
        return _run_sigstore(arguments)
    if arguments.certificates is not None:
        why = "the keys of bundles are known by themselves"
        raise UserError("--certificates does not fit", "command line", why, "add --sigstore")
    expires, signer = end_of_day(arguments.expires, "option --expires"), _signer(arguments)
    own = arguments.bundle + (DETACHED if arguments.detached else "")
    output = arguments.output or own
    check_output(output, [arguments.bundle] if arguments.detached else [])
    verify_whole_bundle(arguments.bundle)
    sign = sign_beside if arguments.detached else sign_inside
    number = _number(arguments.number)
    made = sign(arguments.bundle, output, signer, expires, number)
    values = {"bundle": arguments.bundle, "output": output, **asdict(made), "expires": expires}
    if number is not None:
        values["number"] = number
    count = console.counted(made.signature_count, "signature")
    until = f" until {arguments.expires}" if expires else ""
    line = f"{output}: signed by {made.key[:16]}{until}, {count}; digest {made.digest[:16]}"
    console.print_report(values, [line], as_json=arguments.json)
    return 0


def _number(text: str | None) -> int | None:
    from ingot_runtime.format.statement import NUMBER_MAX

    if text is None or (text.isascii() and text.isdigit() and int(text) <= NUMBER_MAX):
        return None if text is None else int(text)
    why = f"expected a number from 0 to {NUMBER_MAX}, got {text!r}"
    raise UserError("bad --number", "command line", why, "count the releases: 1, 2, 3")


def _run_sigstore(arguments: argparse.Namespace) -> int:
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.ship.sign_sigstore import SUFFIX, sign_sigstore

    others = ("command", "public_key", "expires", "number", "detached")
    given = [f"--{name.replace('_', '-')}" for name in others if getattr(arguments, name)]
    if arguments.key is None or given:
        why = f"expected --key with a key on P-256, P-384 or P-521; got {' '.join(given) or 'none'}"
        do = "leave out what that form has no place for"
        raise UserError("who signs for sigstore is not clear", "command line", why, do)
    output = arguments.output or arguments.bundle + SUFFIX
    check_output(output, [arguments.bundle])
    verify_whole_bundle(arguments.bundle)
    who = arguments.key, arguments.password_file, arguments.certificates
    made = sign_sigstore(arguments.bundle, output, *who)
    values = {"bundle": arguments.bundle, "output": output, **asdict(made), "expires": 0}
    line = f"{output}: signed by {made.key[:16]} for sigstore; digest {made.digest[:16]}"
    console.print_report(values, [line], as_json=arguments.json)
    return 0


def _signer(arguments: argparse.Namespace) -> Signer:
    from ingot_build_rules.tools.ship.signer import signer_of_command, signer_of_file

    by_command = arguments.command is not None
    if (arguments.key is None) == (not by_command) or by_command == (arguments.public_key is None):
        why = "expected either --key, or --command with --public-key"
        raise UserError("who signs is not clear", "command line", why, "ingot sign --help")
    if by_command:
        return signer_of_command(arguments.command, arguments.public_key)
    return signer_of_file(arguments.key, arguments.password_file)
