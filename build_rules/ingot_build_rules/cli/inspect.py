"""Verb ``inspect``: what is in a bundle.

In: a bundle. Out: sections, devices, variants, memory, kernels with their source nodes; what fusion
did; assembly of one kernel.
Not done here: reading the file (``ingot_artifacts.inspect``), disassembly
(``ingot_build_rules.text.assembly``).
"""

from __future__ import annotations

import argparse
from typing import Any

from ingot_build_rules.cli import console, usage
from ingot_compiler.ir.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("bundle", metavar="BUNDLE")
    parser.add_argument(
        "--asm",
        metavar="KERNEL",
        help="print one kernel's assembly; a unique start of its symbol will do",
    )
    parser.add_argument(
        "--fusion",
        action="store_true",
        help="what became one kernel, bytes it saved, what stopped it from growing",
    )
    parser.add_argument(
        "--variant",
        metavar="TARGET",
        help="with --asm: of this variant (default: the first that has it)",
    )
    usage.add_digest(parser)
    usage.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the description or one kernel."""
    from ingot_artifacts.inspect.describe import describe_bundle

    described = describe_bundle(arguments.bundle, arguments.digest)
    if arguments.asm is not None:
        console.print_listing(
            _assembly(described, arguments.bundle, arguments.asm, arguments.variant)
        )
    elif arguments.json:
        console.print_json(
            {
                **described,
                "debug": {
                    name: value for name, value in described["debug"].items() if name != "programs"
                },
            }
        )
    elif arguments.fusion:
        console.print_lines(*fusion_lines(described["debug"]))
    else:
        console.print_lines(*description_lines(described))
    return 0


def description_lines(described: dict[str, Any]) -> list[str]:
    """Return what ``describe_bundle`` told, for people."""
    from ingot_runtime.format.describe import lines_of

    parts = lines_of(described)
    for target, sizes in described["memory"].items():
        workspace = ", ".join(map(console.format_bytes, sizes["workspace_bytes"]))
        code, weights = (
            console.format_bytes(sizes[name]) for name in ("code_bytes", "weights_bytes")
        )
        parts.append(f"memory of {target}: code {code}, weights {weights}, workspace {workspace}")
        parts += _bound_lines(described["debug"].get("memory", {}).get(target))
        parts += _device_lines(described["device_use"][target])
    for target, launches in described["debug"].get("launches", {}).items():
        parts.append(f"launches of {target}:")
        parts += console.format_table(
            [_launch_row(number, launch) for number, launch in enumerate(launches)], (0,)
        )
    return parts


def _device_lines(use: dict[str, Any]) -> list[str]:
    """What each device does, where there are several, and each copy between two."""
    if len(use["devices"]) == 1:
        return []
    rows = [
        (
            f"  {row['name']}:", f"{row['launches']} launches,", f"pool {_size(row['pool_bytes'])},",
            "code of the variant" if row["library"] is None else f"code of library {row['library']},",
            f"imports {', '.join(row['imports'])}" if row["imports"] else "",
        )
        for row in use["devices"]
    ]  # fmt: skip
    copies = [
        f"  copy {copy['source']} to {copy['destination']} before launch {copy['before_launch']}, {_size(copy['size_bytes'])}"
        for copy in use["copies"]
    ]
    return [*console.format_table(rows), *copies]


def _size(size_bytes: int | None) -> str:
    return "as the sizes of a call need" if size_bytes is None else console.format_bytes(size_bytes)


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
    for target, launches in debug.get("launches", {}).items():
        saved = console.format_bytes(sum(launch["saved_bytes"] for launch in launches))
        parts.append(f"fusion for {target}: {len(launches)} launches, {saved} never reach memory")
        for number, launch in enumerate(launches):
            parts += _launch_lines(number, launch)
    refusals = [_refusal_line(refusal) for refusal in debug.get("refusals", [])]
    return [*parts, *(["patterns that were left:", *refusals] if refusals else [])]


def _launch_lines(number: int, launch: dict[str, Any]) -> list[str]:
    users = f": {', '.join(launch['users'])}" if launch["users"] else ""
    return [
        f"{number:4} {launch['kernel']}  {launch['kind']}, saves {console.format_bytes(launch['saved_bytes'])}",
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
        launch["kind"],
        " ".join(launch["writes"]),
        _nodes(launch["nodes"]),
    )


def _assembly(described: dict[str, Any], bundle: str, kernel: str, variant: str | None) -> str:
    from ingot_build_rules.text.assembly import kernel_assembly

    found = [
        (target, symbol)
        for target, symbols in _kernels(described).items()
        if variant in (None, target)
        for symbol in symbols
        if symbol.startswith(kernel)
    ]
    symbols = sorted({symbol for _, symbol in found})
    if len(symbols) != 1:
        known = symbols or sorted(
            {symbol for names in _kernels(described).values() for symbol in names}
        )
        raise UserError(
            f"several kernels start with {kernel!r}" if symbols else f"no kernel {kernel!r}",
            where=bundle,
            why=f"{'these do' if symbols else 'the bundle has'}: {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}",
            do="ingot inspect lists the kernels with their nodes",
        )
    return kernel_assembly(described, *found[0])


def _kernels(described: dict[str, Any]) -> dict[str, list[str]]:
    """Symbols by target: of the variants, and of the libraries of other devices."""
    found = {target: list(symbols) for target, symbols in described["kernels"].items()}
    for library, symbols in zip(described["libraries"], described["library_kernels"], strict=False):
        found.setdefault(library["target"], []).extend(symbols)
    return found
