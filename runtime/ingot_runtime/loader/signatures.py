"""Who must have signed a bundle, and whether they have.

In: an open bundle, or the head of a delta that leads to it; keys or a policy. Out: who has, the
number that they have given it, or a ``SignatureError``. Not done here: the arithmetic
(``ed25519``), what is signed (``format.statement``).
"""

import os

from ..errors import BundleError, SignatureError
from ..format.source import Source
from ..format.statement import DETACHED, NEVER, Signed, decode_envelope, parts_digest, signed_in
from .ed25519 import verify
from .public_keys import Policy, read_policy, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..format.delta import Delta
    from ..format.header import Section

    Keys = Sequence[str | bytes | os.PathLike[str]] | str | os.PathLike[str]

_MEANS = {
    "wrong": "the signature by {} is wrong: it was made of other bytes, or was changed",
    "other": "the signature by {} is of another bundle",
    "ended": "the signature by {} has expired",
}


def require_signed(source: Source, keys: "Keys", now_seconds: "float | None" = None) -> "list[str]":
    """Return the names of the keys that have signed the bundle: in it, or in the file beside it.

    Raises:
        SignatureError: too few of them have. InputError: no keys. FormatError: a signature that is
            none.
    """
    return _require(source.name, source.sections, signatures_of(source), keys, now_seconds)


def require_delta_signed(delta: "Delta", keys: "Keys") -> None:
    """Raise ``SignatureError`` unless the bundle that the delta leads to is signed: errors as for
    ``require_signed``."""
    if not delta.sections:
        do = "make it by this version of `ingot delta`, of a signed bundle"
        raise SignatureError("the delta does not tell who signed", delta.name, "version 1", do)
    _require(delta.name, delta.sections, _in_lines(delta.signatures, delta.name), keys, None)


def signed_number(source: Source, keys: "Keys") -> "int | None":
    """Return the largest number that an owner of one of the keys has given the bundle, also one
    whose signature has ended since; None without any."""
    digest, policy = parts_digest(source.sections).hex(), read_policy(keys)
    numbers = [
        signed.number
        for signed in signatures_of(source)
        if signed.key in policy.keys and _verdict(signed, digest, 0) == ""
    ]
    return max((number for number in numbers if number is not None), default=None)


def signatures_of(source: Source) -> "list[Signed]":
    """Return the signatures in a bundle, and those of the file beside it, where there is one."""
    path = detached_path(source.name)
    return signed_in(source) + (_in_lines(read_small(path), path) if path else [])


def _require(
    where: str,
    sections: "list[Section]",
    signatures: "list[Signed]",
    keys: "Keys",
    now_seconds: "float | None",
) -> "list[str]":
    policy = read_policy(keys)
    if now_seconds is None:
        import time

        now_seconds = time.time()
    digest = parts_digest(sections).hex()
    verdicts: dict[str, str] = {}
    for signed in signatures:
        name = policy.keys.get(signed.key)
        if name is not None and verdicts.get(name) != "":
            verdicts[name] = _verdict(signed, digest, now_seconds)
    good = [name for name, verdict in verdicts.items() if not verdict]
    if len(good) < policy.required:
        raise _refusal(where, policy, signatures, verdicts)
    return good


def _in_lines(data: bytes, where: str) -> "list[Signed]":
    """Return the signatures of envelopes, one a line."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    return [signed for line in lines for signed in decode_envelope(line, where)]


def detached_path(path: str) -> str:
    """Return the file beside a bundle, or beside what a link leads to; "" if there is none."""
    return next(filter(os.path.exists, (path + DETACHED, os.path.realpath(path) + DETACHED)), "")


def _verdict(signed: Signed, digest: str, now_seconds: float) -> str:
    if not verify(signed.key, signed.message, signed.proof):
        return "wrong"
    if digest not in signed.digests:
        return "other"
    return "ended" if signed.expires != NEVER and now_seconds >= signed.expires else ""


def _refusal(
    where: str, policy: Policy, signatures: "list[Signed]", verdicts: "dict[str, str]"
) -> BundleError:
    what = "the bundle is not signed by a required key"
    reasons = [_MEANS[verdict].format(name) for name, verdict in verdicts.items() if verdict]
    if not signatures:
        what = "the bundle is not signed"
    elif not verdicts:
        others = ", ".join(sorted({signed.key.hex()[:16] for signed in signatures}))
        reasons = [f"signed by {others}"]
    wanted = " or ".join(policy.keys.values())
    expected = f"{policy.required} of {wanted}" if policy.required > 1 else wanted
    why = "; ".join([f"expected {expected}", *reasons])
    do = "get the file from who signs it, or sign it by `ingot sign`"
    return SignatureError(what, where, why, do)
