"""Who must have signed a bundle, and whether they have.

In: an open bundle, keys or a policy. Out: nothing, or a ``SignatureError``. Not done here: the
arithmetic (``ed25519``), what is signed (``format.statement``).
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

_MEANS = {
    "wrong": "the signature by {} is wrong: it was made of other bytes, or was changed",
    "other": "the signature by {} is of another bundle",
    "ended": "the signature by {} has expired",
}


def require_signed(
    source: Source,
    keys: "Sequence[str | bytes | os.PathLike[str]] | str | os.PathLike[str]",
    now_seconds: "float | None" = None,
) -> "list[str]":
    """Return the names of the keys that have signed the bundle: in it, or in the file beside it.

    Raises:
        SignatureError: too few of them have. InputError: no keys. FormatError: a signature that is
            none.
    """
    policy = read_policy(keys)
    signatures = signed_in(source) + _detached(source.name)
    if now_seconds is None:
        import time

        now_seconds = time.time()
    digest = parts_digest(source.sections).hex()
    verdicts: dict[str, str] = {}
    for signed in signatures:
        name = policy.keys.get(signed.key)
        if name is not None and verdicts.get(name) != "":
            verdicts[name] = _verdict(signed, digest, now_seconds)
    good = [name for name, verdict in verdicts.items() if not verdict]
    if len(good) < policy.required:
        raise _refusal(source, policy, signatures, verdicts)
    return good


def _detached(path: str) -> "list[Signed]":
    """Return the signatures of the file beside a bundle, one envelope a line, where there is one."""
    path = detached_path(path)
    lines = [line for line in read_small(path).split(b"\n") if line.strip()] if path else []
    return [signed for line in lines for signed in decode_envelope(line, path)]


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
    source: Source, policy: Policy, signatures: "list[Signed]", verdicts: "dict[str, str]"
) -> BundleError:
    what = "the bundle is not signed by whom it must be"
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
    return SignatureError(what, source.name, why, do)
