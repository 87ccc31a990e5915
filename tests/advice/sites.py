"""What the code advises: the text of every ``do`` that it can give to an error, read from its
source.

In: the packages. Out: ``Site``: a module and a text with ``{}`` for what only a run knows. Not done
here: whether the advice works (``cases``).
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.source import ROOT

ERRORS = re.compile(r"\w+Error|BlobMissing|BlobDamaged|StoreReadOnly")
FOLDERS = ("build_rules", "compiler", "artifacts", "runtime")
NAMES = re.compile(r"do|todo|advice|declare|give|how|help|_[A-Z_]*(?:DO|ADVICE|INSTALL|OTHER)")
_COMMAND = re.compile(
    r"(?<![\w-])--[a-z{][\w{}-]*|(?<![\w./-])ingot [a-z]+\b|-m ingot_runtime|(?<![\w-])-[a-zC] "
    r"|did you mean|leave (?:it|one of them) out"
)
_GIVES_ADVICE = re.compile(r"_?(?:do|advice|fitting|suggest(?:_\w+)?)")
_MAY_ADVISE = re.compile(r"Error\(|\bdo\b|message\(|return f?\"did you mean")
_DEPTH_MAX = 4


@dataclass(frozen=True, order=True)
class Site:
    """One text that an error may advise. ``module``: its file in the repository."""

    module: str
    text: str

    @property
    def is_command(self) -> bool:
        """Whether it says how the command has to be given."""
        return _COMMAND.search(self.text) is not None

    def matches(self, told: str) -> bool:
        """Whether an error that says this may have it from here."""
        return re.fullmatch(".*".join(map(re.escape, self.text.split("{}"))), told) is not None


@functools.cache
def all_sites() -> tuple[Site, ...]:
    """Every text of every module, once."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {site for path in paths for site in _sites_of(path)}
    return tuple(sorted(found))


def _sites_of(path: Path) -> Iterator[Site]:
    text = path.read_text(encoding="utf-8")
    if not _MAY_ADVISE.search(text):
        return
    tree = ast.parse(text)
    module = str(path.relative_to(ROOT))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    top: list[ast.AST] = [node for node in tree.body if isinstance(node, ast.Assign)]
    for nodes in (top, *(list(ast.walk(function)) for function in functions)):
        texts = _Texts([*nodes, *top])
        for expression in _advice_in(nodes):
            yield from (Site(module, one) for one in texts.of(expression) if one.strip("{} "))


def _advice_in(nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """The fourth part of each error that is made here, what is called so, and what is returned as
    one."""
    scope = next(iter(nodes), None)
    if isinstance(scope, ast.FunctionDef) and _GIVES_ADVICE.fullmatch(scope.name):
        yield from filter(None, [it.value for it in nodes if isinstance(it, ast.Return)])
    for node in nodes:
        if isinstance(node, ast.Call) and ERRORS.fullmatch(_name(node.func)):
            yield from node.args[3:4]
        if isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "do")
        if isinstance(node, ast.Assign):
            yield from _assigned(node)


def _assigned(node: ast.Assign) -> Iterator[ast.expr]:
    for target in node.targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = [*zip(target.elts, node.value.elts, strict=False)]
        for one, value in pairs:
            if isinstance(one, ast.Name) and NAMES.fullmatch(one.id):
                yield value


def _mentions(value: ast.expr, name: ast.expr) -> bool:
    names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
    return isinstance(name, ast.Name) and name.id in names


def _name(function: ast.expr) -> str:
    return getattr(function, "id", getattr(function, "attr", ""))


class _Texts:
    """The texts that an expression of one scope may have."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.values: dict[str, list[ast.expr]] = {}
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.values.setdefault(node.targets[0].id, []).append(node.value)

    def of(self, node: ast.expr, depth: int = 0) -> list[str]:
        """All of them, each once; ``{}`` where it is not a text of this module."""
        return list(dict.fromkeys(self._of(node, depth)))

    def _of(self, node: ast.expr, depth: int) -> list[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.IfExp):
            return [*self.of(node.body, depth), *self.of(node.orelse, depth)]
        if isinstance(node, ast.BoolOp):
            return [text for value in node.values for text in self.of(value, depth)]
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, depth)
        if isinstance(node, ast.FormattedValue):
            return self._named(node.value, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._joined([node.left, node.right], depth)
        if isinstance(node, ast.Call) and _name(node.func) == "message":
            return self._joined(node.args, depth)
        if isinstance(node, ast.Tuple):  # pieces of one text
            return self._joined([*self._flat(node.elts)], depth)
        if isinstance(node, ast.Call) and _name(node.func) == "OptionRef":
            return self._option(node, depth)
        if isinstance(node, ast.Call) and _name(node.func) == "OptionClause":
            option, *said = (self.of(argument, depth)[0] for argument in self._flat(node.args))
            return [said[0].replace("{}", option)]
        return self._named(node, depth)

    def _flat(self, arguments: list[ast.expr]) -> Iterator[ast.expr]:
        """Arguments; those of a tuple that is spread."""
        for argument in arguments:
            spread = argument.value if isinstance(argument, ast.Starred) else None
            known = self.values.get(spread.id, []) if isinstance(spread, ast.Name) else []
            yield from [part for one in known for part in getattr(one, "elts", [])] or [argument]

    def _option(self, node: ast.Call, depth: int) -> list[str]:
        name, *value = (self.of(argument, depth)[0] for argument in node.args)
        dashes = "-" if len(name) == 1 else "--"
        return [f"{dashes}{name} {value[0]}".rstrip() if value else f"{dashes}{name}"]

    def _named(self, node: ast.expr, depth: int) -> list[str]:
        known = self.values.get(node.id, []) if isinstance(node, ast.Name) else []
        # What is added to a text of the same name is a text of its own.
        known = [value for value in known if not _mentions(value, node)]
        if depth >= _DEPTH_MAX or not known:
            return ["{}"]
        return [text for value in known for text in self.of(value, depth + 1)]

    def _joined(self, parts: list[ast.expr], depth: int) -> list[str]:
        texts = [""]
        for part in parts:
            texts = [text + more for text in texts for more in self.of(part, depth)]
        return texts
