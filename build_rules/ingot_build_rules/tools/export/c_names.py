"""The user's names as identifiers of C and C++.

In: names of a model, of its inputs and outputs. Out: identifiers, or an error that names both names
that would be one. Not done here: the structs that have them (``c_tensors``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ingot_compiler.ir.errors import UserError

_NO_LETTER = re.compile("[^A-Za-z0-9_]")
# Keywords of C23 and C++20, and what compilers for Linux define as macros.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto i386 if inline int linux long mutable namespace new noexcept
    not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
    unix unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_TAKEN = frozenset(_WORDS.split())


def c_identifier(name: str) -> str:
    """Return the identifier that stands for a name: what is no ASCII letter or digit becomes ``_``,
    as does what may not stand before a digit; a keyword gets one at its end.

    >>> c_identifier("onnx::Add_0"), c_identifier("0"), c_identifier("register")
    ('onnx__Add_0', '_0', 'register_')
    """
    plain = _NO_LETTER.sub("_", name) or "_"
    if plain[0].isdigit():
        return f"_{plain}"
    return f"{plain}_" if plain in _TAKEN else plain


def c_identifiers(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Return an identifier for each name; ``what``: "input" or another word for errors.

    Raises:
        UserError: two names become one identifier.
    """
    owners: dict[str, str] = {}
    for name in names:
        identifier = c_identifier(name)
        if identifier in owners:
            raise _clash(what, owners[identifier], name, identifier)
        owners[identifier] = name
    return tuple(owners)


def _clash(what: str, first: str, second: str, identifier: str) -> UserError:
    return UserError(
        "two names become one in C",
        where=f"{what} {first!r}, {what} {second!r}",
        why=f"both are {identifier} there: anything but a letter or a digit becomes _",
        do="rename one of them in the model",
    )
