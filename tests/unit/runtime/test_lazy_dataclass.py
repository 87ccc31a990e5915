"""Our ``dataclass`` against the standard library's: the same classes by both, asked the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import partial
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_runtime import lazy_dataclass

Decorator = Callable[..., Any]
BOTH: tuple[Decorator, Decorator] = (dataclasses.dataclass, lazy_dataclass.dataclass)
KINDS = ("required", "default", "factory", "computed", "quiet", "not compared", "named")
Item = TypeVar("Item")


def make_field(kind: str) -> Any:
    """What stands behind the annotation of a field; None for nothing."""
    made: dict[str, Callable[[], Any]] = {
        "required": lambda: None,
        "default": lambda: field(default=7),
        "factory": lambda: field(default_factory=list[int]),
        "computed": lambda: field(init=False, default=5),
        "quiet": lambda: field(default=1, repr=False),
        "not compared": lambda: field(default=2, compare=False),
        "named": lambda: field(kw_only=True),
    }
    return made[kind]()


def make_class(decorator: Decorator, kinds: list[str], options: dict[str, bool]) -> type[Any]:
    """A class with a field of each kind, in an order that the language allows."""
    ordered = sorted(kinds, key=lambda kind: kind != "required")
    names = {f"f{index}": kind for index, kind in enumerate(ordered)}
    space: dict[str, Any] = {
        name: item for name, kind in names.items() if (item := make_field(kind)) is not None
    }
    space |= {"__annotations__": dict.fromkeys(names, "object"), "__module__": __name__}
    made: type[Any] = decorator(slots=True, **options)(type("Thing", (), space))
    return made


def outcome(act: Callable[[], Any]) -> tuple[str, str]:
    """What came of it, as text without the place of an object in memory."""
    try:
        return "gave", repr(act())
    except Exception as error:  # the same error is what is asked for
        return type(error).__name__, str(error)


def same_hash(one: object, two: object) -> bool:
    """Whether equal objects say so."""
    return hash(one) == hash(two)


@given(
    st.lists(st.sampled_from(KINDS), max_size=5),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("frozen", "eq", "kw_only"), st.booleans())),
    st.lists(st.integers(0, 3), max_size=5),
    st.dictionaries(st.sampled_from(["f0", "f1", "f4", "other"]), st.integers(0, 3), max_size=3),
)
def test_same_instances(
    kinds: list[str], options: dict[str, bool], given_: list[int], named: dict[str, int]
) -> None:
    """Instances of random classes are made, compared, printed, changed and refused alike."""
    found: list[list[Any]] = []
    for decorator in BOTH:
        made: Any = make_class(decorator, kinds, options)
        facts: list[Any] = [
            made.__match_args__,
            made.__slots__,
            [each.name for each in fields(made)],
        ]
        facts.append(outcome(partial(made, *given_, **named)))
        if facts[-1][0] == "gave":
            one, two = made(*given_, **named), made(*given_, **named)
            facts += [one == two, one != two, one == 3, asdict(one), made.__hash__ is None]
            facts.append(outcome(partial(same_hash, one, two)))
            facts += [outcome(partial(setattr, one, each.name, 9)) for each in fields(made)]
            facts += [outcome(partial(delattr, one, each.name)) for each in fields(made)]
            facts.append(outcome(partial(replace, one, f0=8)))
        found.append(facts)
    assert found[0] == found[1]


def bodies(decorator: Decorator) -> dict[str, type[Any]]:
    """Classes with methods of their own."""

    @decorator(frozen=True, slots=True)
    class Shown(Generic[Item]):
        """Shows itself."""

        item: Item
        double: Any = field(init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", (self.item, self.item))

        def __repr__(self) -> str:
            return f"<{self.item}>"

        def __hash__(self) -> int:
            return 3

    @decorator(frozen=True, slots=True)
    class Base:
        """Begins."""

        first: int
        second: int = 2

    @decorator(frozen=True, slots=True)
    class Further(Base):
        """Goes on."""

        second: int = 4
        third: int = 3

    class Plain(Further):
        """Adds no field."""

    return {each.__name__: each for each in (Shown, Base, Further, Plain)}


QUESTIONS: list[Callable[[dict[str, Any]], object]] = [
    lambda a: (repr(a["Shown"](1)), hash(a["Shown"](1)), a["Shown"](1).double),
    lambda a: (a["Further"](1).second, a["Further"](1, 2, 5), a["Base"](1) == a["Further"](1, 2)),
    lambda a: (a["Plain"](1).third, a["Plain"](1) == a["Plain"](1), a["Base"].__match_args__),
    lambda a: a["Further"](),
    lambda a: a["Base"].__doc__,
]


@pytest.mark.parametrize("ask", QUESTIONS)
def test_methods_and_heirs(ask: Callable[[dict[str, Any]], object]) -> None:
    """Methods of a class's own stay, and heirs have the fields of both."""
    expected, found = (outcome(partial(ask, bodies(decorator))) for decorator in BOTH)
    assert found == expected


def test_a_parametrised_one_is_made() -> None:
    """A generic class with its parameter makes instances."""
    shown: Any = bodies(lazy_dataclass.dataclass)["Shown"]
    assert shown[int](1) == shown(1)


def test_a_frozen_one_stays() -> None:
    """Nothing is assigned to it or deleted from it."""
    base = bodies(lazy_dataclass.dataclass)["Base"](1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'first'"):
        base.first = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'first'"):
        del base.first


def test_a_circle_is_printed() -> None:
    """An object inside itself is three dots."""

    @lazy_dataclass.dataclass(slots=True)
    class Ring:
        """Holds itself."""

        item: Any = None

    ring = Ring()
    ring.item = ring
    assert repr(ring).endswith("Ring(item=...)")


def test_nothing_is_compiled_before_it_is_needed() -> None:
    """The first call replaces a method, and no call leaves it."""
    base = bodies(lazy_dataclass.dataclass)["Base"]
    methods = [vars(base)[name] for name in ("__init__", "__eq__", "__hash__")]
    assert base(1) == base(1)
    assert [
        vars(base)[name] is not method
        for name, method in zip(("__init__", "__eq__", "__hash__"), methods, strict=True)
    ] == [True, True, False]
