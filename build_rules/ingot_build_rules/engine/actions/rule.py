"""A rule: one step of a build, with the named list of what its result depends on.

In: nothing. Out: ``Rule``, ``RuleContext`` (what a running rule sees), ``Rulebook`` (all that a
process needs to run any of them). Not done here: execution (``perform``, ``scheduler``, ``naive``),
anything about what is being built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Generic, Protocol, TypeVar

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_runtime.lazy_dataclass import dataclass

Inputs = TypeVar("Inputs")
Output = TypeVar("Output")
Value = TypeVar("Value")


class RuleContext(Protocol):
    """What a running rule may do besides looking at its inputs."""

    def keep(self, value: Value) -> Artifact[Value]:
        """Make a part of the result an artifact of its own, so that others can depend on it
        alone."""
        ...

    def keep_bytes(self, content: bytes | memoryview) -> Artifact[memoryview]:
        """Make a part of the result that is plain bytes an artifact of its own."""
        ...

    def load(self, where: str) -> Any:
        """Return what "module:attribute" names; ``where`` is a text that the inputs have in one of
        ``Rule.loads``."""
        ...

    def note(self, name: str) -> None:
        """Say that the result depends on something that was found while running; ``Rule.resolve``
        gives its digest."""
        ...

    def warn(self, text: str) -> None:
        """Tell the user something; it is told again when the result comes from the cache."""
        ...


def module_of(where: str) -> str:
    """Return the module of a "module:attribute"."""
    return where.partition(":")[0]


Timestamp = tuple[int, int]
"""Nanoseconds by the clock that files get their times from, which may stand still for some
milliseconds, and by one that does not."""


class FileDigests(Protocol):
    """Digests of files outside of the cache."""

    def digest(self, path: str) -> str:
        """Return the sha256 of the file's content, 64 hex digits; "" when it is not there."""
        ...

    def is_steady(self, path: str, since: Timestamp) -> bool:
        """Whether the file has certainly not changed since a moment."""
        ...


@dataclass(frozen=True, slots=True)
class Rule(Generic[Inputs, Output]):
    """One step of a build.

    ``compute`` is a function of its context and inputs alone; inputs and outputs are frozen
    dataclasses or plain values, large parts of them artifacts. ``ingredients`` names the attributes
    of the inputs that decide the result: they make the key, and an explanation names them.
    Attributes that are not listed (where to read what a digest already names) must not change the
    result. ``version`` grows when results change without a change of code. ``resolve`` gives the
    present digest of what ``compute`` noted; rules that note nothing have none. ``tools``: programs
    whose bytes decide too. ``reads_files``: ``compute`` reads files that its inputs name by path,
    so only a machine that has them can run it. ``loads``: ingredients that name code, each a text
    "module:attribute" or a tuple of such. ``compute`` gets it by ``RuleContext.load`` and imports
    none of it, so that the key has the code that these inputs name, and no other that might have
    been named.
    """

    name: str
    version: int
    ingredients: tuple[str, ...]
    compute: Callable[[RuleContext, Inputs], Output]
    resolve: Callable[[FileDigests, Inputs, str], str] | None = None
    tools: tuple[str, ...] = ()
    reads_files: bool = False
    loads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert set(self.loads) <= set(self.ingredients), "what is loaded decides the result"

    def loaded_by(self, inputs: Inputs) -> tuple[str, ...]:
        """Return every "module:attribute" that ``inputs`` name, each once."""
        values: list[str | tuple[str, ...]] = [getattr(inputs, name) for name in self.loads]
        return tuple(
            dict.fromkeys(
                text for item in values for text in ((item,) if isinstance(item, str) else item)
            )
        )


AnyRule = Rule[Any, Any]


@dataclass(frozen=True, slots=True)
class Rulebook:
    """Everything that running rules in another process takes.

    ``where``: "module:attribute" of this very object; ``types``: class of an artifact -> its
    module; ``errors``: classes of errors with the arguments (what, where, why, do). ``loadable``:
    rule -> all that inputs of it may name as code; ``outside``: code that is no part of this
    program and that its user has named, which any rule that loads code may load.
    """

    where: str
    rules: tuple[AnyRule, ...]
    types: Mapping[str, str]
    errors: Sequence[type[Exception]]
    loadable: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    outside: tuple[str, ...] = ()
    by_name: dict[str, AnyRule] = field(init=False)

    def __post_init__(self) -> None:
        table = {rule.name: rule for rule in self.rules}
        assert len(table) == len(self.rules), "two rules have one name"
        named = [name for rule in self.rules for name in rule.ingredients]
        assert not {"rule", "version", "code"}.intersection(named), (
            "every key has an ingredient of this name"
        )
        assert {rule.name for rule in self.rules if rule.loads} == self.loadable.keys()
        object.__setattr__(self, "by_name", table)

    def loadable_by(self, rule: AnyRule) -> tuple[str, ...]:
        """Return every "module:attribute" that inputs of a rule may name."""
        return (*self.loadable[rule.name], *self.outside) if rule.loads else ()

    def code_of(self, rule: AnyRule) -> tuple[str, ...]:
        """Return whose code any action of a rule may run: its own module, then each
        "module:attribute" that it may load, once."""
        return tuple(dict.fromkeys((rule.compute.__module__, *self.loadable.get(rule.name, ()))))
