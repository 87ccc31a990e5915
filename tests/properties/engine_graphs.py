"""Random worlds to build: nodes, edges, code of rules and files, random edits of them, and the
rules that build them.

In: a random generator. Out: worlds, the coroutine that builds one, and a list of what ran with all
that it depended on. Not done here: comparing builds.

Which nodes are evaluated depends on the values of others; what a rule reads depends on what it has
read; some rules fail.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.rule import AnyRule, FileDigests, Rule, Rulebook, RuleContext
from ingot_build_rules.engine.cache.file_digests import timestamp
from ingot_runtime.ingot_error import IngotError

FILE_COUNT = 5
_NODE_COUNT_MAX = 12
_GOAL_COUNT = 3
_VALUES = 60
_KINDS = ("sum", "choose", "halve", "picky", "pair", "many", "follow", "plain")


@dataclass(frozen=True, slots=True)
class Numbers:
    """What most rules get; ``hint`` decides nothing."""

    number: int
    parts: tuple[Artifact[int], ...]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """The file to begin with; ``folder`` is where it is, and decides nothing."""

    name: str
    folder: str


class PickyError(IngotError):
    """What a rule raises on purpose."""


@dataclass(frozen=True, slots=True)
class Node:
    """``select`` says which part of a result the node hands on."""

    kind: str
    number: int
    edges: tuple[int, ...]
    select: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """All that a result can depend on, and a hint that none does. Edges lead to earlier nodes; a
    file of None is not there."""

    nodes: tuple[Node, ...]
    code: Mapping[str, int]
    files: tuple[int | None, ...]
    hint: str = ""


@dataclass(slots=True)
class Log:
    """What ran, with the values of everything that it depended on; and those of it that failed."""

    ran: Counter[str] = field(default_factory=Counter[str])
    failed: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class _Present:
    """The code as it is now, and where to write down what it does: rules in one process have one
    code."""

    code: Mapping[str, int] = field(default_factory=dict[str, int])
    log: Log = field(default_factory=Log)


PRESENT = _Present()


def _runs(rule: str, *depends: object) -> str:
    text = repr((rule, PRESENT.code[rule], *depends))
    PRESENT.log.ran[text] += 1
    return text


def _effect(rule: str) -> int:
    """Every second change of code changes nothing in what it does."""
    return PRESENT.code[rule] // 2


def _sum(context: RuleContext, inputs: Numbers) -> Artifact[int]:
    parts = [part.value() for part in inputs.parts]
    _runs("sum", inputs.number, parts)
    return context.keep((inputs.number + sum(parts) + _effect("sum")) % _VALUES)


def _halve(context: RuleContext, inputs: Numbers) -> Artifact[int]:
    parts = [part.value() for part in inputs.parts]
    _runs("halve", inputs.number, parts)
    return context.keep((inputs.number + sum(parts) + _effect("halve")) // 16)


def _picky(context: RuleContext, inputs: Numbers) -> Artifact[int]:
    parts = [part.value() for part in inputs.parts]
    identity = _runs("picky", inputs.number, parts)
    if (sum(parts) + _effect("picky")) % 5 == 0:
        PRESENT.log.failed.add(identity)
        raise PickyError(f"{inputs.number} of {parts}")
    return context.keep(sum(parts))


def _pair(context: RuleContext, inputs: Numbers) -> tuple[Artifact[int], Artifact[int]]:
    parts = [part.value() for part in inputs.parts]
    _runs("pair", inputs.number, parts)
    total = inputs.number + sum(parts) + _effect("pair")
    return context.keep(total % _VALUES), context.keep(total % 3)


def _plain(context: RuleContext, inputs: Numbers) -> int:
    parts = [part.value() for part in inputs.parts]
    _runs("plain", inputs.number, parts)
    context.warn(f"plain {inputs.number}")
    return (sum(parts) + _effect("plain")) % 4


def _follow(context: RuleContext, inputs: Start) -> Artifact[int]:
    """Read a file, then the one that it names, until one names none."""
    name, seen, total = inputs.name, list[tuple[str, str]](), _effect("follow")
    while name not in dict(seen):
        context.note(name)
        file = Path(inputs.folder, name)
        text = file.read_text() if file.exists() else ""
        seen.append((name, text))
        total += int(text or "7")
        name = f"f{int(text or '0') % FILE_COUNT}"
    _runs("follow", inputs.name, sorted(seen))
    return context.keep(total % _VALUES)


def _resolve(files: FileDigests, inputs: Start, name: str) -> str:
    return files.digest(f"{inputs.folder}/{name}")


_COMPUTE: dict[str, Callable[[RuleContext, Numbers], object]] = {
    "sum": _sum, "halve": _halve, "picky": _picky, "pair": _pair, "plain": _plain,
}  # fmt: skip
_RULES: dict[str, AnyRule] = {
    name: Rule(name, 1, ("number", "parts"), compute) for name, compute in _COMPUTE.items()
}
FOLLOW = Rule("follow", 1, ("name",), _follow, _resolve)
BOOK = Rulebook(
    "", (*_RULES.values(), FOLLOW), {"Numbers": __name__, "Start": __name__}, (PickyError,)
)


async def evaluate(build: Build, world: World, folder: Path, place: int) -> Artifact[int]:
    """Return the value of a node."""
    node = world.nodes[place]
    if node.kind == "follow":
        return await build.need(
            FOLLOW, Start(f"f{node.number % FILE_COUNT}", str(folder)), f"node {place}"
        )
    parts = await _parts(build, world, folder, node)

    def inputs(number: int) -> Numbers:
        return Numbers(number, parts, world.hint)

    if node.kind == "many":
        some = await build.need_all(
            _RULES["sum"], [inputs(node.number + step) for step in range(3)]
        )
        return await build.need(_RULES["sum"], Numbers(0, tuple(some)))
    if node.kind == "pair":
        halves: tuple[Artifact[int], ...] = await build.need(_RULES["pair"], inputs(node.number))
        return halves[node.select]
    if node.kind == "plain":
        return await build.need(
            _RULES["sum"], Numbers(await build.need(_RULES["plain"], inputs(node.number)), ())
        )
    rule: Rule[Numbers, Artifact[int]] = _RULES["sum" if node.kind == "choose" else node.kind]
    return await build.need(rule, inputs(node.number))


async def _parts(build: Build, world: World, folder: Path, node: Node) -> tuple[Artifact[int], ...]:
    """The values that a node needs: all that its edges lead to, or which of them the first one
    chooses."""
    if node.kind != "choose" or len(node.edges) < 2:
        return await build.gather([evaluate(build, world, folder, edge) for edge in node.edges])
    first = await evaluate(build, world, folder, node.edges[0])
    others = node.edges[1:]
    return first, await evaluate(
        build, world, folder, others[await build.value(first) % len(others)]
    )


async def answer(build: Build, world: World, folder: Path, place: int) -> int:
    """Return the number that a node stands for."""
    return await build.value(await evaluate(build, world, folder, place))


def goals(world: World) -> tuple[int, ...]:
    """The nodes that somebody asks for: the last ones."""
    return tuple(range(len(world.nodes)))[-_GOAL_COUNT:]


def random_world(generator: random.Random) -> World:
    """Return a world of 4 to 12 nodes."""
    count = generator.randrange(4, _NODE_COUNT_MAX + 1)
    return World(
        tuple(_random_node(generator, place) for place in range(count)),
        {rule.name: 0 for rule in BOOK.rules},
        tuple(generator.choice((None, *range(20))) for _ in range(FILE_COUNT)),
    )


def _random_node(generator: random.Random, place: int) -> Node:
    count = min(place, generator.randrange(1, 4))
    edges = tuple(generator.sample(range(place), count))
    return Node(generator.choice(_KINDS), generator.randrange(20), edges, generator.randrange(2))


def edited(world: World, generator: random.Random) -> World:
    """Return the world with one thing changed, or nothing."""
    place = generator.randrange(len(world.nodes))
    node = world.nodes[place]
    match generator.randrange(8):
        case 0:
            return world
        case 1:
            return replace(world, hint=str(generator.random()))
        case 2 | 3:
            files = list(world.files)
            files[generator.randrange(FILE_COUNT)] = generator.choice((None, *range(20)))
            return replace(world, files=tuple(files))
        case 4:
            rule = generator.choice(sorted(world.code))
            return replace(world, code={**world.code, rule: generator.randrange(5)})
        case 5:
            changed = replace(node, number=generator.randrange(20))
        case 6:
            changed = replace(node, edges=_random_node(generator, place).edges)
        case _:
            changed = _random_node(generator, place)
    return replace(world, nodes=(*world.nodes[:place], changed, *world.nodes[place + 1 :]))


def lay_out(world: World, folder: Path) -> None:
    """Make the files and the code what they are in a world."""
    PRESENT.code = world.code
    folder.mkdir(exist_ok=True)
    for number, content in enumerate(world.files):
        file = folder / f"f{number}"
        if content is None:
            file.unlink(missing_ok=True)
        elif not file.exists() or file.read_text() != str(content):
            file.write_text(str(content))
    settle()


def settle() -> None:
    """Wait for the next tick of the clock of files: within one it could not be known that they do
    not change any more."""
    now_ns = time.time_ns()
    while timestamp()[0] <= now_ns:
        time.sleep(0.001)
