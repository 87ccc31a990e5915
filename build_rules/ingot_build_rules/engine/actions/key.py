"""Keys of actions: sha256 over a named list of ingredients; the same list is what explanations
print.

In: a rule, its inputs, digests of its code and tools. Out: ``Key``. Not done here: storage,
comparing two keys (``explain``).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import cast

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.content import digest
from ingot_build_rules.engine.actions.leaves import leaves
from ingot_build_rules.engine.actions.rule import Inputs, Output, Rule
from ingot_runtime.lazy_dataclass import dataclass

_TEXT_MAX = 2000
LOADED = "code "
"""What the names of ingredients start with that are the code of a module which an action loads."""


@dataclass(frozen=True, slots=True)
class Ingredient:
    """One thing that decides a result. ``text``: a short value as people write it, or "";
    ``parts``: digests of the artifacts in it."""

    name: str
    digest: str
    text: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """``digest``: 32 bytes over the names and digests of ``ingredients``."""

    digest: bytes
    ingredients: tuple[Ingredient, ...]


def make_key(ingredients: tuple[Ingredient, ...]) -> Key:
    """Return the key of a list of ingredients."""
    text = "".join(
        f"{len(item.name)} {item.name} {len(item.digest)} {item.digest}\n" for item in ingredients
    )
    return Key(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), ingredients)


def _nothing_loaded(where: str) -> str:
    raise LookupError(f"no digest of the code of {where}")


class KeyMaker:
    """Makes keys; what belongs to a rule and not to its inputs is described once.

    ``code_of``: the rule -> digest of its code; ``tool_of``: name of a tool -> digest of its bytes;
    ``loaded_code_of``: what an action loads, "module:attribute" -> digest of its code.
    """

    def __init__(
        self,
        code_of: Callable[[Rule[object, object]], str],
        tool_of: Callable[[str], str],
        loaded_code_of: Callable[[str], str] = _nothing_loaded,
    ) -> None:
        self._code_of = code_of
        self._tool_of = tool_of
        self._loaded_code_of = functools.cache(loaded_code_of)
        self._rules: dict[str, tuple[Ingredient, ...]] = {}
        self._described: dict[int, tuple[object, str, str, tuple[str, ...]]] = {}

    def key(self, rule: Rule[Inputs, Output], inputs: Inputs) -> Key:
        """Return the key of ``rule`` for ``inputs``."""
        named = [self._describe(name, getattr(inputs, name)) for name in rule.ingredients]
        loaded = [
            Ingredient(f"{LOADED}{where}", self._loaded_code_of(where))
            for where in rule.loaded_by(inputs)
        ]
        return make_key((*self._of_rule(rule), *loaded, *named))

    def tool(self, name: str) -> str:
        """Return the digest of a tool."""
        return self._tool_of(name)

    def _of_rule(self, rule: Rule[Inputs, Output]) -> tuple[Ingredient, ...]:
        if rule.name not in self._rules:
            self._rules[rule.name] = (
                Ingredient("rule", rule.name, f"{rule.name} {rule.version}"),
                Ingredient("version", str(rule.version), str(rule.version)),
                Ingredient("code", self._code_of(cast("Rule[object, object]", rule))),
                *(Ingredient(f"tool {tool}", self._tool_of(tool)) for tool in rule.tools),
            )
        return self._rules[rule.name]

    def _describe(self, name: str, value: object) -> Ingredient:
        if isinstance(value, Artifact):
            return Ingredient(name, value.digest, "", (value.digest,))
        if isinstance(value, str | int | float | bool | None):
            return Ingredient(name, digest(value), str(value)[:_TEXT_MAX])
        known = self._described.get(id(value))
        if known is None or known[0] is not value:
            parts = tuple(
                dict.fromkeys(leaf.digest for leaf in leaves(value) if isinstance(leaf, Artifact))
            )
            text = "" if parts else str(value)
            known = (value, digest(value), text if len(text) <= _TEXT_MAX else "", parts)
            self._described[id(value)] = known
        return Ingredient(name, *known[1:])
