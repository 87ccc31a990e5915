"""``dataclass`` of the standard library, whose methods are made when they are first called.

In: a class with annotations. Out: a class with slots and the methods that ``dataclasses.dataclass``
gives it; ``fields``, ``replace``, ``asdict`` and ``match`` treat it alike. Not done here: classes
without slots, ordering, ``InitVar``, pickling.

The standard library compiles six functions for every class, and a process calls few of them: that
took a fifth of the time of a small build.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *, slots: bool, frozen: bool = False, eq: bool = True, kw_only: bool = False
    ) -> Callable[[type[Any]], type[Any]]:
        """Return a decorator; arguments as in ``dataclasses.dataclass``, ``slots`` is True."""
        assert slots, "a class without slots has the standard library's decorator"
        return lambda cls: _decorated(cls, frozen=frozen, eq=eq, kw_only=kw_only)


def _decorated(cls: type[Any], *, frozen: bool, eq: bool, kw_only: bool) -> type[Any]:
    own = vars(cls)
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it becomes a signature, which takes long
    options: dict[str, bool] = {"init": False, "repr": False, "eq": False, "kw_only": kw_only}
    made: type[Any] = dataclasses.dataclass(slots=True, **options)(cls)
    sources: dict[str, Source] = {"__init__": _frozen_init if frozen else _init}
    methods: dict[str, Any] = {"__repr__": _repr}
    if eq:
        sources["__eq__"], sources["__hash__"] = _eq, _hash
    if frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    methods |= {name: _at_first(made, source) for name, source in sources.items()}
    if eq and not frozen:
        methods["__hash__"] = None
    for name in methods.keys() - own.keys():
        setattr(made, name, methods[name])
    return made


Source = Callable[[type[Any], dict[str, Any]], str]
"""Writes a method of a class, and into a dict what it needs by names of its own."""


def _at_first(cls: type[Any], source: Source) -> Callable[..., Any]:
    """Return what stands for a method until it is called."""

    def method(self: object, *arguments: object, **named: object) -> object:
        scope: dict[str, Any] = {}
        text = source(cls, scope)
        exec(text, scope)
        name, compiled = scope.popitem()
        compiled.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, compiled)
        return compiled(self, *arguments, **named)

    return method


def _init(cls: type[Any], scope: dict[str, Any], assign: str = "self.{0} = {1}") -> str:
    positional, named, body = ["self"], list[str](), list[str]()
    for each in fields(cls):
        parameter, value = _init_texts(each)
        if each.init:
            (named if each.kw_only else positional).append(parameter)
        if value:
            body.append(assign.format(each.name, value))
        scope[f"__of_{each.name}"] = each.default
        scope[f"__make_{each.name}"] = each.default_factory
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    scope["__MISSING"] = MISSING
    parameters = ", ".join([*positional, *(["*", *named] if named else [])])
    return f"def __init__({parameters}):\n  " + "\n  ".join(body or ["pass"])


def _frozen_init(cls: type[Any], scope: dict[str, Any]) -> str:
    """Descriptors of slots ask no ``__setattr__``."""
    scope |= {f"__set_{each.name}": getattr(cls, each.name).__set__ for each in fields(cls)}
    return _init(cls, scope, "__set_{0}(self, {1})")


def _init_texts(item: Field[Any]) -> tuple[str, str]:
    """Return a field's parameter, and its value in the function; "" if ``__post_init__`` sets
    it."""
    name = item.name
    if item.default is not MISSING:
        return f"{name}=__of_{name}", name if item.init else f"__of_{name}"
    if item.default_factory is MISSING:
        return name, name if item.init else ""
    made = f"__make_{name}()"
    return f"{name}=__MISSING", f"{made} if {name} is __MISSING else {name}" if item.init else made


def _eq(cls: type[Any], _scope: dict[str, Any]) -> str:
    same = f"{_parts(cls, 'self')} == {_parts(cls, 'other')}"
    return f"def __eq__(self, other):\n  return {same} if self.__class__ is other.__class__ else NotImplemented"


def _hash(cls: type[Any], _scope: dict[str, Any]) -> str:
    return f"def __hash__(self):\n  return hash({_parts(cls, 'self')})"


def _parts(cls: type[Any], of: str) -> str:
    """The tuple of what is compared."""
    return "(" + "".join(f"{of}.{each.name}, " for each in fields(cls) if each.compare) + ")"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_assignment(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
