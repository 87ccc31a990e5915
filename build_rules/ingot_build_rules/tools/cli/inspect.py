"""Verb ``inspect``: what is in a bundle.

In: a bundle. Out: sections, devices, variants, memory, kernels with their source nodes; what fusion
did; assembly of one kernel. Not done here: reading the file (``ingot_artifacts.inspect``),
disassembly (``ingot_build_rules.tools.text.assembly``).
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from ingot_build_rules.making.options.compile_options import HOST
from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.inspecting.inspect_memory import (
    memory_lines,
    memory_values,
    size_text,
)
from ingot_build_rules.tools.cli.inspecting.inspect_variant import only_variant
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.call_shapes import call_shapes
from ingot_build_rules.tools.cli.shell.placement_lines import placement_lines
from ingot_build_rules.tools.text.stripped import STRIPPED, is_stripped
from ingot_compiler.ir.errors import UserError

_KERNELS_TOLD_MAX = 8


def run(arguments: argparse.Namespace) -> int:
    """Print the description or one kernel."""
    from ingot_artifacts.inspect.describe import describe_bundle
    from ingot_build_rules.tools.text.assembly import kernel_assembly

    check_bundle_kind(arguments.bundle)
    described = describe_bundle(arguments.bundle, arguments.digest)
    if arguments.variant is not None:
        described = only_variant(described, arguments.variant, arguments.bundle)
    described["call_memory"] = _call_memory(arguments, described)
    debug: dict[str, Any] = described["debug"]
    if arguments.asm is not None:
        target, kernel = _one_kernel(described, arguments.bundle, arguments.asm)
        text = kernel_assembly(described, target, kernel)
        if arguments.json:
            console.print_json({"target": target, "kernel": kernel, "assembly": text})
        else:
            console.print_listing(text)
    elif arguments.json:
        shown = {name: value for name, value in debug.items() if name != "programs"}
        console.print_json({**described, "debug": shown})
    else:
        lines = fusion_lines(debug) if arguments.fusion else description_lines(described)
        console.print_lines(*lines)
    return 0


def _call_memory(arguments: argparse.Namespace, described: dict[str, Any]) -> dict[str, Any]:
    """By target: the memory of a call, at the shapes that were asked for."""
    from ingot_build_rules.tools.view.call_memory import call_memory

    declared = {tensor["name"]: tuple(tensor["shape"]) for tensor in described["inputs"]}
    shapes = call_shapes(declared, arguments.shape) if arguments.shape else {}
    found = call_memory(arguments.bundle, shapes, arguments.digest)
    return {target: memory_values(found[target], shapes) for target in described["memory"]}


def description_lines(described: dict[str, Any]) -> list[str]:
    """Return what ``describe_bundle`` told, for people."""
    from ingot_runtime.format.describe import lines_of

    parts = lines_of(described)
    if is_stripped(described):
        parts.append(STRIPPED)
    for target, sizes in described["memory"].items():
        parts += memory_lines(target, sizes, described.get("call_memory", {}).get(target))
        parts += _bound_lines(described["debug"].get("memory", {}).get(target))
        parts += _device_lines(described["device_use"][target])
    debug = described["debug"]
    parts += placement_lines(debug.get("placement", []))
    for target, launches in debug.get("launches", {}).items():
        rows = [_launch_row(number, launch) for number, launch in enumerate(launches)]
        for title, count in _versions(debug, target, len(rows)):
            parts += [f"launches of {target}{title}", *console.format_table(rows[:count], (0,))]
            rows = rows[count:]
    return parts


def _versions(debug: dict[str, Any], target: str, launches: int) -> list[tuple[str, int]]:
    """What each version of the model is for, and how many launches it has."""
    versions = debug.get("versions", {}).get(target)
    if versions is None:
        return [(":", launches)]
    sizes = [", ".join(f"{name} = {size}" for name, size in each["sizes"]) for each in versions]
    titles = [f" for {each or 'any other sizes'}" for each in sizes]
    return [
        (f"{title}: {'none, they are refused' * each['refused']}".rstrip(), each["launches"])
        for title, each in zip(titles, versions, strict=True)
    ]


def _device_lines(use: dict[str, Any]) -> list[str]:
    """What each device does, where there are several, and each copy between two."""
    if len(use["devices"]) == 1:
        return []
    copies = [
        f"  copy {copy['source']} to {copy['destination']} before launch {copy['before_launch']}"
        f", {size_text(copy['size_bytes'])}"
        for copy in use["copies"]
    ]
    return [*console.format_table([_device_row(row) for row in use["devices"]]), *copies]


def _device_row(row: dict[str, Any]) -> tuple[str, ...]:
    library = row["library"]
    own = "code of the variant" if row["name"] == HOST else "memory of the host"  # a pool
    return (
        f"  {row['name']}:",
        f"{console.counted(row['launch_count'], 'launch')},",
        f"pool {size_text(row['pool_bytes'])},",
        own if library is None else f"code of library {library},",
        f"imports {', '.join(row['imports'])}" if row["imports"] else "",
    )


def _bound_lines(memory: dict[str, Any] | None) -> list[str]:
    """The plan beside the largest sum of live bytes."""
    if memory is None or not memory["lower_bound_bytes"]:
        return []
    planned, bound = memory["planned_bytes"], memory["lower_bound_bytes"]
    sizes = "" if memory["fixed"] else ", with open dimensions of 64"
    return [
        f"  planned {planned} bytes, lower bound {bound} bytes, ratio {planned / bound:.3f}{sizes}"
    ]


def fusion_lines(debug: dict[str, Any]) -> list[str]:
    """Return what became one kernel and why, for people."""
    parts: list[str] = []
    by_target: dict[str, list[dict[str, Any]]] = debug.get("launches", {})
    for target, launches in by_target.items():
        numbered = list(enumerate(launches))
        for title, count in _versions(debug, target, len(launches)):
            parts += _version_fusion_lines(f"fusion for {target}{title}", numbered[:count])
            numbered = numbered[count:]
    refusals = [_refusal_line(refusal) for refusal in debug.get("refusals", [])]
    return [*parts, *(["patterns that were left:", *refusals] if refusals else [])]


def _version_fusion_lines(title: str, launches: list[tuple[int, dict[str, Any]]]) -> list[str]:
    saved = console.format_bytes(sum(launch["saved_bytes"] for _, launch in launches))
    lines = [f"{title} {console.counted(len(launches), 'launch')}, {saved} never reach memory"]
    for number, launch in launches:
        lines += _launch_lines(number, launch)
    return lines


def _launch_lines(number: int, launch: dict[str, Any]) -> list[str]:
    users = f": {', '.join(launch['users'])}" if launch["users"] else ""
    saved = console.format_bytes(launch["saved_bytes"])
    return [
        f"{number:4} {launch['kernel']}  {launch.get('method', launch['kind'])}, saves {saved}",
        f"     nodes {_nodes(launch['nodes'])}",
        f"     stop reason  {launch['ends']}{users}",
    ]


def _refusal_line(refusal: dict[str, Any]) -> str:
    others = f": {_nodes(refusal['others'])}" if refusal["others"] else ""
    return f"  {refusal['pattern']} at {_nodes(refusal['nodes'])}: {refusal['reason']}{others}"


def _nodes(nodes: list[list[str]]) -> str:
    return ", ".join(f"{name} ({op})" for name, op in nodes)


def _launch_row(number: int, launch: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(number),
        launch["kernel"],
        _kind(launch),
        " ".join(launch["writes"]),
        _nodes(launch["nodes"]),
    )


def _kind(launch: dict[str, Any]) -> str:
    """The kind of a launch, and what it reads in 16 bits without storing such numbers: mostly weights
    that it widens, but an input of the model, or a value that another launch stored, counts too.
    A kind of products of bf16 says so itself."""
    kind = str(launch["kind"])
    read, written = (
        {text.partition("[")[0] for text in launch.get(part, ())} for part in ("reads", "writes")
    )
    halves = sorted((read - written) & {"bf16", "f16"} - {kind.rpartition("_")[2]})
    return f"{kind} of {' and '.join(halves)}" if halves else kind


def _one_kernel(described: dict[str, Any], bundle: str, kernel: str) -> tuple[str, str]:
    """The target and the symbol of the kernel that the user means."""
    kernels = _kernels(described)
    found = [
        (target, symbol)
        for target, symbols in kernels.items()
        for symbol in symbols
        if symbol.startswith(kernel)
    ]
    symbols = sorted({symbol for _, symbol in found})
    if len(symbols) != 1:
        every = sorted({symbol for names in kernels.values() for symbol in names})
        raise _not_one_kernel(bundle, kernel, symbols, every)
    return found[0]


def _not_one_kernel(bundle: str, kernel: str, symbols: list[str], every: list[str]) -> UserError:
    """Several ``symbols`` start with what the user gave, or none of ``every`` one."""
    what = f"several kernels start with {kernel!r}" if symbols else f"no kernel {kernel!r}"
    known = symbols or every
    more = ", ..." if len(known) > _KERNELS_TOLD_MAX else ""
    shown = f"{', '.join(known[:_KERNELS_TOLD_MAX])}{more}"
    why = f"{'these do' if symbols else 'the bundle has'}: {shown}"
    do = f"`ingot inspect {shlex.quote(bundle)}` lists the kernels with their nodes"
    return UserError(what, bundle, why, do)


def _kernels(described: dict[str, Any]) -> dict[str, list[str]]:
    """Symbols by target: of the variants, and of the libraries of other devices."""
    found = {target: list(symbols) for target, symbols in described["kernels"].items()}
    for library, symbols in zip(described["libraries"], described["library_kernels"], strict=False):
        found.setdefault(library["target"], []).extend(symbols)
    return found
