"""What a Python source file may refer to, read off its syntax.

In: a module's name and source. Out: ``references``: dotted names, more than there are modules. Not
done here: which of them exist (``code_digest``).

===========  =======================================================================================================
``a.b.c``    ``from a.b import c`` and ``import a.b.c``: what may be a module
``a.b^``     a package that is only passed on the way to ``a.b.c``: nobody calls its functions
``a.b.*``    every module under ``a.b``: ``from a.b import *``, and ``import_module`` of a name that is put together
``a.b/``     the other files of the package ``a.b``: ``importlib.resources.files("a.b")``
``f~a.b.c``  any of these, in the function ``f``, or in one that it names, of a file whose import runs no function of it;
             ``f~`` alone says that there is ``f``
===========  =======================================================================================================

Imports under ``if TYPE_CHECKING`` do not count: they are never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_RUNS = (ast.Call, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BY_NAME = ("import_module", "__import__", "find_spec")


def references(module: str, source: bytes, *, is_package: bool) -> tuple[str, ...]:
    """Return the references of a source file, sorted; none if it is no Python, since nothing of it
    is ever run."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    package = module.split(".") if is_package else module.split(".")[:-1]
    calls_by_name = any(name.encode() in source for name in (*_BY_NAME, "resources"))

    def of(body: Sequence[ast.stmt]) -> set[str]:
        called = {name for part in body for name in _calls(part, module)} if calls_by_name else ()
        return {*_imports(body, package), *called}

    functions = [statement for statement in tree.body if isinstance(statement, ast.FunctionDef)]
    if not functions or not _is_quiet(tree, functions):
        return tuple(sorted({*_passed(module), *of(tree.body)}))
    rest = [statement for statement in tree.body if statement not in functions]
    at_once = {*_passed(module), *of(rest)}
    by_function = {function.name: of(function.body) - at_once for function in functions}
    needs = _functions_named(functions)
    later = {f"{name}~" for name in needs}
    for name, others in needs.items():
        later |= {f"{name}~{found}" for other in others for found in by_function[other]}
    return tuple(sorted(at_once | later))


def _functions_named(functions: Sequence[ast.FunctionDef]) -> dict[str, set[str]]:
    """Return for each function itself and those that it names, and so on."""
    own = {function.name for function in functions}
    named = {
        function.name: {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in own
        }
        for function in functions
    }
    reached = {name: {name} for name in named}
    for found in reached.values():
        waiting = {*found}
        while waiting:
            waiting = {other for name in waiting for other in named[name]} - found
            found.update(waiting)
    return reached


def _imports(body: Sequence[ast.stmt], package: list[str]) -> Iterator[str]:
    """Walk statements only: expressions cannot import, and they are most of a tree."""
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.name
                yield from _packages(alias.name)  # the name that is bound is the top package's
        elif isinstance(statement, ast.ImportFrom):
            base = package[: len(package) - statement.level + 1] if statement.level else []
            stem = ".".join([*base, *([statement.module] if statement.module else [])])
            yield stem
            yield from _passed(stem)
            yield from (f"{stem}.{alias.name}" for alias in statement.names)
        elif isinstance(statement, ast.If) and _is_type_checking(statement.test):
            yield from _imports(statement.orelse, package)
        else:
            for block in _blocks(statement):
                yield from _imports(block, package)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, ()):
            yield part.body


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING"


def _is_quiet(tree: ast.Module, functions: Sequence[ast.FunctionDef]) -> bool:
    """Tell whether importing the module calls nothing and hands none of its functions to
    anybody."""
    if any(function.decorator_list for function in functions):
        return False
    names = {function.name for function in functions}
    parts: list[ast.AST] = [statement for statement in tree.body if statement not in functions]
    for function in functions:
        parts += [function.args, *([function.returns] if function.returns else [])]
    return not any(
        isinstance(node, _RUNS) or (isinstance(node, ast.Name) and node.id in names)
        for part in parts
        for node in ast.walk(part)
    )


def _calls(tree: ast.stmt, module: str) -> Iterator[str]:
    """Find modules and files that a call names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _BY_NAME:
                found = _named(node.args[0], module)
                yield found
                yield from _packages(found)
            elif name == "files":
                yield f"{_named(node.args[0], module)}/"


def _named(name: ast.expr, module: str) -> str:
    """Return the constant name, or what it surely starts with and ``.*``; in doubt the module's
    whole top package."""
    prefix = ""
    for part in name.values if isinstance(name, ast.JoinedStr) else [name]:
        value = part.value if isinstance(part, ast.Constant | ast.FormattedValue) else None
        if isinstance(value, str):
            prefix += value
        elif isinstance(value, ast.Name) and value.id == "__name__":
            prefix += module
        else:
            prefix = prefix.rpartition(".")[0] + ".*"
            break
    return f"{module.partition('.')[0]}.*" if prefix.startswith(".") else prefix


def _packages(name: str) -> Iterator[str]:
    """Yield the packages that are imported before the module."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _passed(name: str) -> Iterator[str]:
    return (f"{package}^" for package in _packages(name))
