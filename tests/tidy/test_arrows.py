"""Imports run one way: no circle among modules, no arrow up between rooms, wherever an import
stands."""

from __future__ import annotations

import itertools

import pytest
from tests.tidy.arrows import Graph, Order, find_circle, import_graph, orders, upward
from tests.tidy.source import PACKAGES, Module, modules


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Every import of the tree."""
    return import_graph(modules())


def planted(**texts: str) -> dict[str, dict[str, str]]:
    """The graph of a package ``p`` of these modules; a double underscore in a name stands for a
    dot."""
    made = (
        Module(f"p.{name.replace('__', '.')}", f"p/{name.replace('__', '/')}.py", text)
        for name, text in texts.items()
    )
    return {
        name: dict(arrows)
        for name, arrows in import_graph([Module("p", "p/__init__.py", ""), *made]).items()
    }


def test_no_circle_among_modules(graph: Graph) -> None:
    """No module needs itself, through whatever others: each can be read, and tried, after those
    that it imports."""
    circle = find_circle(graph)
    steps = [f"{graph[one][other]}: {one} -> {other}" for one, other in itertools.pairwise(circle)]
    assert not steps, "\n".join(["imports that run in a circle:", *steps])


@pytest.mark.parametrize("order", orders(), ids=lambda order: order.container or "packages")
def test_no_arrow_runs_up(order: Order, graph: Graph) -> None:
    """Rooms import rooms below their own, as the contracts of `pyproject.toml` order them."""
    assert upward(graph, order) == []


@pytest.mark.parametrize("order", orders(), ids=lambda order: order.container or "packages")
def test_every_room_is_there(order: Order, graph: Graph) -> None:
    """A contract that names a room which has moved away would hold nothing."""
    prefix = f"{order.container}." if order.container else ""
    assert {room for layer in order.layers for room in layer if prefix + room not in graph} == set()


def test_every_package_has_an_order_of_all_its_rooms() -> None:
    """A new room must be placed; the facade is one file."""
    placed = {order.container for order in orders() if order.exhaustive}
    assert set(PACKAGES) - placed == {"ingot"}


CIRCLES = {
    "at the top": {"a": "import p.b", "b": "from p.c import x", "c": "from p import a"},
    "lazy": {
        "a": "import p.b",
        "b": "def f():\n  import p.c",
        "c": "class K:\n  def g(self):\n    import p.a",
    },
    "for types": {
        "a": "import p.b",
        "b": "if TYPE_CHECKING:\n  from p.c import x",
        "c": "import p.a as q",
    },
    "relative": {"a": "from . import b", "b": "from .c import x", "c": "from .a import y"},
    "behind a tail": {
        "0": "import p.a",
        "a": "import p.b\nimport p.d",
        "b": "import p.c",
        "c": "import p.a",
        "d": "",
    },
}


@pytest.mark.parametrize("case", CIRCLES)
def test_a_planted_circle_is_found_and_named(case: str) -> None:
    """Whatever kind of import closes it, and only the modules of the circle are named."""
    graph = planted(**CIRCLES[case])
    assert find_circle(graph) == ("p.a", "p.b", "p.c", "p.a")
    assert graph["p.c"]["p.a"].startswith("p/c.py:")


def test_what_is_no_circle_is_not_found() -> None:
    """Two ways to one module are none; neither is a package whose part imports another part of
    it."""
    graph = planted(
        a="import p.b, p.c", b="import p.d.x", c="import p.d.y", d__x="from p.d import y", d__y=""
    )
    assert find_circle(graph) == ()
    assert graph["p.d.x"] == {"p.d.y": "p/d/x.py:1"}


def test_a_planted_arrow_up_is_found() -> None:
    """Up, and aside between rooms of one layer; down and inside a room is allowed, and so is what
    has no room."""
    order = Order("p", (("a",), ("b", "c")))
    graph = planted(
        a="import p.b.x",
        b__x="import p.b.y",
        b__y="import p.a",
        c="if TYPE_CHECKING:\n  import p.b.x",
        d="import p.a",
    )
    assert upward(graph, order) == ["p/b/y.py:1: p.b.y -> p.a", "p/c.py:2: p.c -> p.b.x"]
