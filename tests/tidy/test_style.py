"""Sizes, docstrings and words, as CONTRIBUTING states them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.tidy.source import ROOT, Module, is_public, modules

FILE_LINES_MAX = 500
TEST_FILE_LINES_MAX = 800
COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 60
SHORT_FILE_LINES = 40
SHORT_FILES_SHARE_MAX = 0.12
# path::function -> why it may be longer; the list may only shrink
LONG_FUNCTIONS: dict[str, str] = {}
LONG_FILES: dict[str, str] = {}
# One word per idea (DESIGN 11): banned word -> the word to use
SYNONYMS = {
    r"artefacts?": "artifact",
    r"arenas?": "pool",
    r"flavou?rs?": "variant",
    r"codelets?": "kernel",
    r"colou?rs?": "variant",
}
# Names of classes and functions that gave way to the field's terms: the old name, as code, -> the
# one to use
OLD_NAMES = {
    "Special": "Specialisation",
    "with_special": "append_specialisation",
    "late_buffers": "data_dependent_buffers",
    "Frame": "EmitScope, MainFrame, CallFrame or BundleSkeleton",
    "BundleFrame": "BundleParts",
    "Placement": "BufferPlacement",
    "SumTile": "AccumulatorTile",
    "Finding": "ImportFinding, CheckFinding or StoreDamage",
    "Contents": "KnownValues",
    "Later": "DeferredValue",
    "Claim": "ShapeConstraint",
    "claims": "constraints",
    "Way": "ModelVersion",
    "write_whole": "write_atomically",
    "Surroundings": "ProgramContext",
    "Asked": "RequestedOptions",
    "Awaited": "PendingWork",
    "Turn": "Ticket",
    "Turns": "TicketQueue",
    "SilentFile": "QuietFile",
    "Moment": "Timestamp",
    "TwoWays": "DivergentNode",
    "BranchesApart": "DivergentTypes",
    "Apart": "DivergentTranslation",
    "meant_target": "suggest_target",
    "meant_option": "suggest_option",
    "meant_verb": "suggest_verb",
    "as_made": "original_bundle",
    "placed_by": "placing_option",
    "with_its_glob": "with_placing_option",
    "in_arguments": "python_error",
    "in_turn": "strided_loop or run_on_free",
    "Lane": "ExecutionContext",
    "permit": "queue",
    "Permit": "CallerQueue",
    "Room": "CallMemory",
    "BlockRoom": "BlockSpace",
    "make_room": "grow_block",
    "has_room": "fits",
    "room_bytes": "limit_bytes, budget_bytes or allocation_bytes",
}
# A public name that two classes of one distribution share -> why
SAME_NAMES = {
    "Message": "a text that refers to nodes, in the compiler; the event that tells one, in the engine",
    "Target": "the protocol of all back ends; the host's target, which is one",
}
# A docstring is read alone, in an editor's pop-up: one that begins so needs what stands before it
_LEANING = re.compile(r"((Return )?[Tt]he same|Likewise|Those|Of|As|So|And|Or|But)\b")
_MARKERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
_HEAD = ("In:", "Out:", "Not done here:")


def _functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _named(
    module: Module,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Yield public functions and classes of the module, and public methods of public classes."""
    for node in module.tree.body:
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(
                        inner, ast.FunctionDef | ast.AsyncFunctionDef
                    ) and not inner.name.startswith("_"):
                        yield f"{node.name}.{inner.name}", inner


def test_each_module_says_what_comes_in_and_out() -> None:
    """Every file with code opens with a docstring of In, Out and Not done here."""
    wrong = [
        module.path
        for module in modules()
        if is_public(module) and module.text.strip()
        if not all(word in _one_line(ast.get_docstring(module.tree)) for word in _HEAD)
    ]
    assert wrong == []


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def test_public_names_have_docstrings() -> None:
    """Every public function, class and method says what it does; an override inherits its text."""
    wrong = [
        f"{module.path}: {name}"
        for module in modules()
        if is_public(module)
        for name, node in _named(module)
        if not ast.get_docstring(node) and not _is_overload(node)
    ]
    assert wrong == []


def test_docstrings_are_read_alone() -> None:
    """No docstring, also of a constant, begins with a word that points to the text before it."""
    wrong = [
        f"{module.path}: {text.splitlines()[0]}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for text in [node.value.value]
        if isinstance(text, str) and _LEANING.match(text)
    ]
    assert wrong == []


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(
        ast.unparse(decorator).endswith(("overload", "override", ".setter"))
        for decorator in node.decorator_list
    )


def test_files_are_short() -> None:
    """A file holds one idea: at most 500 lines, tests 800."""
    wrong = [
        f"{module.path}: {module.text.count(chr(10))} lines"
        for module in modules()
        if module.text.count("\n") > FILE_LINES_MAX and module.path not in LONG_FILES
    ]
    wrong += [
        f"{path}: {path.read_text().count(chr(10))} lines"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.read_text().count("\n") > TEST_FILE_LINES_MAX
    ]
    assert wrong == []


def test_functions_are_short() -> None:
    """A function fits on a screen: at most 60 lines."""
    wrong = [
        f"{module.path}::{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for module in modules()
        for node in _functions(module)
        if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
        and f"{module.path}::{node.name}" not in LONG_FUNCTIONS
    ]
    assert wrong == []


def test_lines_fit() -> None:
    """Lines have at most 100 columns, but for one in 200: tables, and messages of one piece."""
    paths = [*(ROOT / "tests").rglob("*.py"), *(ROOT / module.path for module in modules())]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").split("\n")]
    assert sum(len(line) > COLUMNS_MAX for line in lines) <= len(lines) // 200


def test_a_new_file_has_an_idea_of_its_own() -> None:
    """At most one file in eight has fewer than 40 lines: what one reads together stands together.
    What says that a folder is a package is none."""
    files = [module for module in modules() if not module.path.endswith("__init__.py")]
    short = [module.path for module in files if module.text.count("\n") < SHORT_FILE_LINES]
    assert len(short) <= SHORT_FILES_SHARE_MAX * len(files)


def test_exemptions_are_needed() -> None:
    """An exemption that nothing needs any more is removed."""
    by_path = {module.path: module for module in modules()}
    assert [path for path in LONG_FILES if path not in by_path] == []
    assert [entry for entry in LONG_FUNCTIONS if entry.split("::")[0] not in by_path] == []


def test_no_markers_of_unfinished_work() -> None:
    """What is not done is an issue, not a comment."""
    wrong = [
        f"{module.path}: {found[0]}"
        for module in modules()
        for found in [_MARKERS.search(module.text)]
        if found
    ]
    assert wrong == []


def test_one_word_per_idea() -> None:
    """Synonyms of the glossary's words do not appear."""
    wrong = [
        f"{module.path}: {word} (say {better})"
        for module in modules()
        for word, better in SYNONYMS.items()
        if re.search(rf"\b{word}\b", module.text, re.IGNORECASE)
    ]
    assert wrong == []


def test_old_names_are_gone() -> None:
    """No class, function or variable has a name that gave way to one of the field's terms."""
    wrong = [
        f"{module.path}: {name} (say {OLD_NAMES[name]})"
        for module in modules()
        for name in sorted(_identifiers(module) & OLD_NAMES.keys())
    ]
    assert wrong == []


def _identifiers(module: Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def test_each_test_states_its_property() -> None:
    """Every test function has a docstring, and no test is skipped."""
    wrong: list[str] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.FunctionDef)
                and node.name.startswith("test_")
                and not ast.get_docstring(node)
            ):
                wrong.append(f"{path.relative_to(ROOT)}::{node.name}")
            if isinstance(node, ast.Attribute) and node.attr in ("skip", "skipif", "importorskip"):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} skips")
    assert wrong == []


def test_one_class_one_name() -> None:
    """No two classes of one distribution have the same public name, unless listed with a reason;
    each reason is needed."""
    homes: dict[tuple[bool, str], list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault((module.name.startswith("ingot_runtime"), node.name), []).append(
                    module.path
                )
    assert {
        name: paths
        for (_, name), paths in homes.items()
        if len(paths) > 1 and name not in SAME_NAMES
    } == {}
    assert {name for (_, name), paths in homes.items() if len(paths) > 1} == set(SAME_NAMES)
