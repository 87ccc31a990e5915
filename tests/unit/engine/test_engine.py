"""The engine: keys follow named ingredients, actions run once, the scheduler and the naive build
agree."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.properties.engine_graphs import settle

from ingot_artifacts.store.cache import Cache
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.content import digest
from ingot_build_rules.engine.actions.errors import ActionError, BuildStoppedError, HitDiffersError
from ingot_build_rules.engine.actions.key import Key, KeyMaker
from ingot_build_rules.engine.actions.naive import NaiveBuild
from ingot_build_rules.engine.actions.rule import FileDigests, Rule, Rulebook, RuleContext
from ingot_build_rules.engine.actions.values import MemoryBlobs, Values
from ingot_build_rules.engine.cache.action_cache import ActionCache
from ingot_build_rules.engine.cache.file_digests import DiskFiles
from ingot_build_rules.engine.executors.executor import InlineExecutor
from ingot_build_rules.engine.scheduler import Policy, Scheduler
from ingot_runtime.ingot_error import IngotError


@dataclass(frozen=True, slots=True)
class Number:
    """A number, and a hint that does not decide the result."""

    value: int
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two artifacts."""

    left: Artifact[int]
    right: Artifact[int]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that a rule looks into, and the file there that it is told to follow."""

    name: str
    folder: str


@dataclass(frozen=True, slots=True)
class Named:
    """Functions, each as "module:attribute"."""

    functions: tuple[str, ...]


class WrongError(IngotError):
    """What a rule raises on purpose."""


def _double(context: RuleContext, inputs: Number) -> Artifact[int]:
    if inputs.value == 13:
        raise WrongError("thirteen", "here", "unlucky", "take another")
    if inputs.value == 14:
        raise ZeroDivisionError("a bug")
    return context.keep(inputs.value * 2)


def _add(context: RuleContext, inputs: Pair) -> Artifact[int]:
    context.warn("added")
    return context.keep(inputs.left.value() + inputs.right.value())


def _follow(context: RuleContext, inputs: Place) -> str:
    """The content of the file whose name is the content of another."""
    context.note(inputs.name)
    second = Path(inputs.folder, inputs.name).read_text().strip()
    context.note(second)
    return Path(inputs.folder, second).read_text()


def _resolve(files: FileDigests, inputs: Place, name: str) -> str:
    return files.digest(f"{inputs.folder}/{name}")


def _call_all(context: RuleContext, inputs: Named) -> None:
    for function in inputs.functions:
        context.load(function)()


CALL_ALL = Rule("call_all", 1, ("functions",), _call_all, loads=("functions",))
DOUBLE = Rule("double", 1, ("value",), _double)
ADD = Rule("add", 1, ("left", "right"), _add)
FOLLOW = Rule("follow", 1, ("name",), _follow, _resolve)
BOOK = Rulebook(
    "",
    (DOUBLE, ADD, FOLLOW),
    {"Number": __name__, "Pair": __name__, "Place": __name__},
    (WrongError,),
)


@contextmanager
def scheduler(folder: Path, policy: Policy | None = None, code: str = "") -> Generator[Scheduler]:
    """A build over a cache in ``folder``, in this process."""
    cache = Cache(str(folder))
    values = Values(cache.blobs, Codec(BOOK.types))
    keys = KeyMaker(lambda _: code, lambda _: "")
    yield Scheduler(
        BOOK, values, InlineExecutor(BOOK, values), ActionCache(cache.index, cache.blobs), cache.leases, DiskFiles(None), keys,
        policy or Policy(),
    )  # fmt: skip
    cache.close()


async def total(build: Build, count: int) -> int:
    """The sum of doubled numbers, as a chain of artifacts."""
    doubles = await build.need_all(
        DOUBLE, [Number(value, f"hint {value}") for value in range(count)]
    )
    sum_ = doubles[0]
    for item in doubles[1:]:
        sum_ = await build.need(ADD, Pair(sum_, item))
    return await build.value(sum_)


def ran(build: Scheduler) -> dict[str, int]:
    """How often each rule ran."""
    return {name: count.ran for name, count in build.counts.items() if count.ran}


def test_scheduler_and_naive_build_agree(tmp_path: Path) -> None:
    """Same result; the second build runs nothing, the third of a longer chain only what is new."""
    naive = NaiveBuild(BOOK)
    assert naive.run(total(naive, 5)) == 20
    for count, expected in ((5, {"double": 5, "add": 4}), (5, {}), (7, {"double": 2, "add": 2})):
        with scheduler(tmp_path) as build:
            assert build.run(total(build, count)) == sum(range(count)) * 2
            assert ran(build) == expected


def test_code_is_an_ingredient(tmp_path: Path) -> None:
    """Other code is another key; what it makes of the same numbers cuts off what depends on it."""
    with scheduler(tmp_path, code="a") as build:
        build.run(total(build, 3))
    with scheduler(tmp_path, code="b") as build:
        build.run(total(build, 3))
        assert ran(build) == {"double": 3, "add": 2}


def test_the_key_follows_name_version_and_ingredients() -> None:
    """Every part of a key changes it; an attribute that is no ingredient does not; the list says
    what is in it."""
    keys = KeyMaker(lambda _: "code", lambda _: "")
    base = keys.key(DOUBLE, Number(1))
    assert [(item.name, item.text) for item in base.ingredients] == [
        ("rule", "double 1"), ("version", "1"), ("code", ""), ("value", "1"),
    ]  # fmt: skip
    assert keys.key(DOUBLE, Number(1, hint="x")) == base
    fresh = [
        KeyMaker(lambda _: "code", lambda _: "").key(rule, Number(value)).digest
        for rule, value in (
            (DOUBLE, 2),
            (Rule("double", 2, ("value",), _double), 1),
            (Rule("triple", 1, ("value",), _double), 1),
            (Rule("double", 1, ("value", "hint"), _double), 1),
        )
    ]
    assert (
        len(
            {
                base.digest,
                KeyMaker(lambda _: "other", lambda _: "").key(DOUBLE, Number(1)).digest,
                *fresh,
            }
        )
        == 6
    )


def test_loaded_code_is_an_ingredient_of_those_who_load_it() -> None:
    """The key has the code of the functions that the inputs name, and no other; a rule that loads
    nothing has none."""
    code = {"p.a:f": "1", "p.b:f": "1", "p.b:g": "3"}

    def key(*functions: str) -> Key:
        return KeyMaker(lambda _: "", lambda _: "", lambda where: code[where]).key(
            CALL_ALL, Named(functions)
        )

    before = key("p.a:f"), key("p.b:f")
    assert [item.name for item in before[0].ingredients] == [
        "rule",
        "version",
        "code",
        "code p.a:f",
        "functions",
    ]
    code["p.b:f"] = "2"
    after = key("p.a:f"), key("p.b:f", "p.a:f", "p.b:g")
    assert before[0] == after[0]
    assert key("p.b:f").digest != before[1].digest
    assert [(item.name, item.digest) for item in after[1].ingredients[3:6]] == [
        ("code p.b:f", "2"),
        ("code p.a:f", "1"),
        ("code p.b:g", "3"),
    ]
    with pytest.raises(LookupError, match=r"no digest of the code of p\.a:f"):
        KeyMaker(lambda _: "", lambda _: "").key(CALL_ALL, Named(("p.a:f",)))


def test_what_a_rule_finds_is_part_of_its_key(tmp_path: Path) -> None:
    """A file that was found while running is looked at again; going back to what was there before
    runs nothing."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name, text in (("start", "a"), ("a", "first"), ("b", "second")):
        (folder / name).write_text(text)

    def follow() -> tuple[str, bool]:
        settle()
        with scheduler(tmp_path / "cache") as build:
            return build.run(build.need(FOLLOW, Place("start", str(folder)))), bool(ran(build))

    assert [follow(), follow()] == [("first", True), ("first", False)]
    (folder / "start").write_text("b")
    assert [follow(), follow()] == [("second", True), ("second", False)]
    (folder / "b").write_text("third")
    assert follow() == ("third", True)
    (folder / "start").write_text("a")
    assert follow() == ("first", False)
    (folder / "a").write_text("changed")
    assert follow() == ("changed", True)


def test_errors_of_rules_come_through(tmp_path: Path) -> None:
    """What a rule raises on purpose stays what it is; a bug is named with its rule; the next build
    tries again."""
    for _ in range(2):
        with scheduler(tmp_path) as build, pytest.raises(WrongError):
            build.run(build.need(DOUBLE, Number(13)))
    with scheduler(tmp_path) as build, pytest.raises(ActionError, match="a bug in Ingot"):
        build.run(build.need(DOUBLE, Number(14)))


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_failure_stops_what_has_not_begun(tmp_path: Path, *, keep_going: bool) -> None:
    """With ``keep_going`` everything that can be made is made."""
    with scheduler(tmp_path, Policy(keep_going=keep_going)) as build:
        tasks = build.run_all([build.need(DOUBLE, Number(value)) for value in (1, 13, 2, 3)])
        kinds = [type(task.error) for task in tasks]
        assert kinds[1] is WrongError
        assert kinds[0] is type(None)
        assert kinds[2:] == [type(None)] * 2 if keep_going else [BuildStoppedError] * 2


def test_expecting_the_cache_runs_nothing(tmp_path: Path) -> None:
    """What would run is listed and not run."""
    with scheduler(tmp_path, Policy(expect_cached=True)) as build:
        with pytest.raises(BuildStoppedError):
            build.run(total(build, 2))
        assert [action.rule.name for action in build.would_run] == ["double", "double"]
        assert ran(build) == {}


def test_a_hit_that_differs_is_found(tmp_path: Path) -> None:
    """Running hits again finds a rule that depends on more than its key."""
    answers = [1, 2]
    moody: Rule[Number, int] = Rule(
        "double", 1, ("value",), lambda _, inputs: inputs.value + answers.pop()
    )
    with scheduler(tmp_path) as build:
        build.rulebook.by_name["double"] = moody
        try:
            assert build.run(build.need(moody, Number(1))) == 3
            with (
                scheduler(tmp_path, Policy(checked_share=1.0)) as again,
                pytest.raises(HitDiffersError),
            ):
                again.run(again.need(moody, Number(1)))
        finally:
            build.rulebook.by_name["double"] = DOUBLE


@pytest.mark.parametrize("damage", ["delete", "flip"])
def test_lost_artifacts_are_made_again(tmp_path: Path, damage: str) -> None:
    """Any blob may vanish or change between two builds: the answer is right, and a third build runs
    nothing."""
    with scheduler(tmp_path) as build:
        build.run(total(build, 4))
    for blob in sorted((tmp_path / "v1" / "cas").rglob("*")):
        if blob.is_file() and damage == "delete":
            blob.unlink()
        elif blob.is_file():
            content = bytearray(blob.read_bytes())
            content[0] ^= 1
            blob.chmod(0o600)
            blob.write_bytes(content)
    with scheduler(tmp_path) as build:
        assert build.run(total(build, 4)) == 12
        assert ran(build)
    with scheduler(tmp_path) as build:
        assert build.run(total(build, 4)) == 12
        assert ran(build) == {}


def test_messages_come_again_with_a_hit(tmp_path: Path) -> None:
    """What a rule tells the user does not depend on where its result came from."""
    for _ in range(2):
        with scheduler(tmp_path) as build:
            task = build.run_all([total(build, 2)])[0]
            assert [action.messages for _, action in task.trace if action.rule is ADD] == [
                ("added",)
            ]


def test_a_cycle_is_an_error(tmp_path: Path) -> None:
    """Coroutines that wait for nothing that can end are found out."""
    with scheduler(tmp_path) as build:

        async def never() -> None:
            await build.gather([forever()])

        async def forever() -> None:
            await build.value(Artifact[object]("0" * 64, build.values))

        with pytest.raises(ActionError, match="lost"):
            build.run(never())


def test_values_of_other_classes_are_refused() -> None:
    """A codec makes and takes the listed classes and nothing else."""
    codec = Codec({"Number": __name__})
    value = (Number(1), (2, ()), 1 << 80, -1 << 64, (1 << 64) - 1, b"x", None, 0.5, True, Number(1))
    content, refs = codec.encode(value)
    assert refs == ()
    loader = Values(MemoryBlobs(), codec)
    assert codec.decode(content, loader) == value
    for other in (frozenset((1, 2)), iter((1, 2)), object()):
        with pytest.raises(TypeError, match="no encoding"):
            codec.encode((other,))
    with pytest.raises(TypeError, match="not among"):
        codec.encode(Pair(None, None))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not an encoded value"):
        Codec({}).decode(content, loader)


def test_digests_tell_values_apart() -> None:
    """Values that differ in kind, order, nesting or borders have different digests."""
    values: list[object] = [
        None, True, False, 0, 1, 1.0, -0.0, 0.0, "", "1", b"", b"1", (), (1,), (1, 2), (2, 1), ((1,), 2), ((1, 2),),
        ("ab", "c"), ("a", "bc"), {"a": 1}, {"a": 2}, {"b": 1}, frozenset((1, 2)), Number(1), Number(1, "h"),
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)


def test_digests_do_not_depend_on_the_hash_seed() -> None:
    """Sets and mappings are written in sorted order."""
    code = (
        "from ingot_build_rules.engine.actions.content import digest;"
        "print(digest((frozenset({'a', 'b', 'c', 'd'}), {'y': 1, 'x': 2})))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1


def test_a_value_without_encoding_is_refused() -> None:
    """Nothing is keyed by an address."""
    with pytest.raises(TypeError, match="no canonical encoding of object"):
        digest(object())
