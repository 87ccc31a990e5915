"""``ingot compile FOLDER``: one graph of a folder, or a bundle of each.

In: arguments, what compiles one model. Out: bundles. Not done here: which graphs there are
(``stages.model_folder``), compiling (``compile``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from ingot_build_rules.making.stages.model_folder import all_graphs, find_graphs, one_graph
from ingot_build_rules.tools.cli.building.compile_output import STANDARD_OUTPUT, default_output
from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError

RunOne = Callable[[argparse.Namespace], object]


def compile_folder(arguments: argparse.Namespace, run_one: RunOne) -> None:
    """Compile the graph that is named or the only one into a file, or else each of several into a
    folder.

    Raises:
        UserError: no graph, one that is missing, or options that are about one. All that the
            compilation of a graph raises, with its name.
    """
    folder, output = arguments.model, arguments.output
    graphs = find_graphs(folder)
    if arguments.graph is not None or len(graphs) == 1:
        if output is None and arguments.to is None and arguments.graph is None:
            output = default_output(folder, ".ingot")
        run_one(_of_graph(arguments, one_graph(folder, arguments.graph), output))
        return
    _check_options(arguments, list(graphs))
    for name, path in all_graphs(folder).items():
        bundle = os.path.join(output, f"{name}.ingot")
        _make_folder(os.path.dirname(bundle))
        try:
            run_one(_of_graph(arguments, path, bundle))
        except IngotError as error:
            raise error.at(f"graph {name}, {error.where}") from error


def _of_graph(arguments: argparse.Namespace, path: str, output: str | None) -> argparse.Namespace:
    """The arguments of the command for one file."""
    return argparse.Namespace(**{**vars(arguments), "model": path, "output": output, "graph": None})


def _check_options(arguments: argparse.Namespace, names: list[str]) -> None:
    """Refuse what is about one graph, where there are several."""
    output = arguments.output
    about_one = {
        "--to": arguments.to is not None,
        "--depfile": arguments.depfile is not None,
        "--check INPUTS.npz": bool(arguments.check),
        "no -o": output is None,
        f"-o {output}": output is not None and _is_file_name(output),
    }
    for option, is_given in about_one.items():
        if is_given:
            why = f"{option} is about one graph, and the folder has {', '.join(names)}"
            do = f"name one (--graph {names[0]}), or compile all into a folder (-o DIR)"
            raise UserError("a folder of several graphs", arguments.model, why, do)


def _is_file_name(output: str) -> bool:
    return output == STANDARD_OUTPUT or output.endswith(".ingot") or os.path.isfile(output)


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        why, do = error.strerror or str(error), "choose another folder"
        raise UserError("the output folder cannot be made", path, why, do) from None
