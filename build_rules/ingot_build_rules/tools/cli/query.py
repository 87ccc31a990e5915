"""Verb ``query``: the graph of a project as JSON or DOT: sources, bundles, tests, and the actions
of their last builds.

In: names, a format. Out: text for other programs. Not done here: drawing.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.workspace.user_key import known_key

if TYPE_CHECKING:
    from ingot_build_rules.making.project.compile_requests import CompileRequest
    from ingot_build_rules.making.project.model import TestSpec
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject
    from ingot_build_rules.tools.workspace.state import BundleState


def run(arguments: argparse.Namespace) -> int:
    """Print the graph."""
    graph = _graph(arguments)
    if arguments.format == "dot":
        console.print_lines(*_dot(graph))
    else:
        console.print_json(graph)
    return 0


def _graph(arguments: argparse.Namespace) -> dict[str, Any]:
    from ingot_build_rules.making.project.compile_requests import compile_requests
    from ingot_build_rules.making.project.plain import plain
    from ingot_build_rules.tools.workspace.open_workspace import load_project
    from ingot_build_rules.tools.workspace.state import read_workspace, trace_path

    loaded = load_project(arguments.folder, arguments.config)
    selection = loaded.select(arguments.words)
    tests = [spec for spec in loaded.project.tests if spec.name in selection.tests]
    names = {*selection.bundles, *(spec.bundle for spec in tests)}
    state = read_workspace(loaded.folder, known_key())
    bundles: dict[str, dict[str, object]] = {}
    for request in compile_requests(loaded.project, names, loaded.path):
        name = request.bundle.name
        known = state.bundles.get(name)
        path = trace_path(loaded.folder, name)
        actions = _actions(path) if arguments.actions else None
        bundles[name] = _bundle(request, known, actions)
    listed = {spec.name: _test(loaded, spec, actions=arguments.actions) for spec in tests}
    project = plain(loaded.project)
    return {"project": project, "bundles": bundles, "tests": listed}


def _bundle(
    request: CompileRequest, known: BundleState | None, actions: list[dict[str, object]] | None
) -> dict[str, object]:
    return {
        "source": request.source,
        "output": request.bundle.output,
        "options": request.options.plain(),
        "digest": known.root if known else None,
        "actions": actions,
    }


def _test(loaded: LoadedProject, spec: TestSpec, *, actions: bool) -> dict[str, object]:
    from ingot_build_rules.tools.workspace.state import trace_path_of_test

    path = trace_path_of_test(loaded.folder, spec.name)
    return {
        "bundle": spec.bundle,
        "inputs": spec.inputs,
        "outputs": spec.outputs,
        "actions": _actions(path) if actions else None,
    }


def _actions(path: str) -> list[dict[str, object]]:
    """The actions of the last build that left its trace at ``path``."""
    from ingot_build_rules.engine.events.trace_file import read_trace

    trace = read_trace(path)
    return [
        {
            "rule": item.rule,
            "label": item.label,
            "key": item.key,
            "ingredients": {part.name: part.digest for part in item.ingredients},
            "needs": [part for entry in item.ingredients for part in entry.parts],
            "makes": list(item.refs),
        }
        for item in (trace.actions if trace else ())
    ]


def _dot(graph: dict[str, Any]) -> list[str]:
    lines = ["digraph ingot {", "  rankdir=LR;", "  node [shape=box];"]
    for name, bundle in graph["bundles"].items():
        lines.append(
            f"  {_quoted(bundle['source'])} -> {_quoted(bundle['output'])} [label={_quoted(name)}];"
        )
        lines += _action_edges(name, bundle["actions"] or ())
    for name, test in graph["tests"].items():
        lines.append(
            f"  {_quoted(graph['bundles'][test['bundle']]['output'])} -> {_quoted('test ' + name)};"
        )
        lines += [
            f"  {_quoted(path)} -> {_quoted('test ' + name)};"
            for path in (test["inputs"], test["outputs"])
        ]
    return [*lines, "}"]


def _action_edges(name: str, actions: Any) -> list[str]:
    makers: dict[str, str] = {}
    lines: list[str] = []
    for item in actions:
        node = f"{name}: {item['rule']} {item['label']}".rstrip()
        needs = dict.fromkeys(makers[part] for part in item["needs"] if part in makers)
        lines += [f"  {_quoted(need)} -> {_quoted(node)};" for need in needs]
        for made in item["makes"]:
            makers.setdefault(made, node)
    return lines


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
