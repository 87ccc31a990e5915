"""Ed25519 (RFC 8032): whether a signature is the owner's of a public key.

In: a key, a message, a signature. Out: yes or no. Not done here: signing; keys in files
(``public_keys``); what is signed (``format.statement``).

Strict: a number S beyond the order of the group, a point that is not written the shortest way, and
keys of small order (with which anybody can sign) are refused. Nothing here is secret, so the time
may depend on the values. `cryptography` takes 0.1 ms where this takes 2, but 29 ms to import: it is
asked where the process has it already. For the keys that `is_usable` lets pass both say the same.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    Point = tuple[int, int, int, int]  # X, Y, Z, T: x = X/Z, y = Y/Z, xy = T/Z

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)  # of -1
_SIGN_BIT = 1 << 255
_NEUTRAL = 0, 1, 1, 0


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` (64 bytes) of `message` was made by the owner of `key` (32 bytes)."""
    if len(signature) != 64 or not is_usable(key):
        return False
    if "cryptography" in sys.modules:
        return _verify_by_library(key, message, signature)
    return verify_here(key, message, signature)


def is_usable(key: bytes) -> bool:
    """Whether `key` is a point, written the shortest way, that is not of small order."""
    point = _decoded(key)
    if point is None:
        return False
    for _ in range(3):
        point = _doubled(point)
    return point[0] % _P != 0


def _verify_by_library(key: bytes, message: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def verify_here(key: bytes, message: bytes, signature: bytes) -> bool:
    """Verify without a library: R = S * B - h * A, compared as bytes."""
    from hashlib import sha512

    point, number = _decoded(key), int.from_bytes(signature[32:], "little")
    if point is None or number >= _ORDER:
        return False
    digest = sha512(signature[:32] + key + message).digest()
    factor = int.from_bytes(digest, "little") % _ORDER
    return _encoded(_joint_product(number, _base(), factor, _negated(point))) == signature[:32]


def _joint_product(left: int, one: "Point", right: int, other: "Point") -> "Point":
    """Return left * one + right * other, in one chain of doublings."""
    both = _sum(one, other)
    total: Point = _NEUTRAL
    for at in range(max(left.bit_length(), right.bit_length()) - 1, -1, -1):
        total = _doubled(total)
        bits = left >> at & 1, right >> at & 1
        if any(bits):
            total = _sum(total, both if all(bits) else one if bits[0] else other)
    return total


def _sum(one: "Point", other: "Point") -> "Point":
    # "add-2008-hwcd-3": holds for any two points of the curve.
    x, y, z, t = one
    u, v, w, s = other
    a, b = (y - x) * (v - u) % _P, (y + x) * (v + u) % _P
    c, d = 2 * t * s % _P * _D % _P, 2 * z * w % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _doubled(point: "Point") -> "Point":
    # "dbl-2008-hwcd"
    x, y, z, _ = point
    a, b, c = x * x % _P, y * y % _P, 2 * z * z % _P
    e, g = (x + y) * (x + y) % _P - a - b, b - a
    f, h = g - c, -a - b
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _negated(point: "Point") -> "Point":
    x, y, z, t = point
    return -x, y, z, -t


def _base() -> "Point":
    y = 4 * pow(5, -1, _P) % _P
    return _from_y(y, 0) or _NEUTRAL


def _encoded(point: "Point") -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, _P)
    return (y * inverse % _P | (x * inverse % _P & 1) << 255).to_bytes(32, "little")


def _decoded(data: bytes) -> "Point | None":
    """Return the point, or None for bytes that are none or not its shortest form."""
    if len(data) != 32:
        return None
    number = int.from_bytes(data, "little")
    return _from_y(number % _SIGN_BIT, number >> 255)


def _from_y(y: int, sign: int) -> "Point | None":
    if y >= _P:
        return None
    u, v = y * y - 1, _D * y * y + 1
    x = u * v**3 * pow(u * v**7, (_P - 5) // 8, _P) % _P
    if (v * x * x - u) % _P:
        x = x * _ROOT % _P
        if (v * x * x - u) % _P:
            return None
    if x == 0 and sign:
        return None
    x = -x % _P if x & 1 != sign else x
    return x, y, 1, x * y % _P
