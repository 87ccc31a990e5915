"""A folder of ONNX graphs, as Hugging Face's ``optimum`` exports a model: which graphs it has, and
whether each is complete.

In: a folder, perhaps the name of a graph. Out: paths by name. Not done here: what a graph holds
(``frontend``). A graph is called what its file is, without ``.onnx``: ``decoder_model``, or
``unet/model`` in a folder below.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import cast

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.suggest import suggest

_ENDING = ".onnx"
_CONFIG = "config.json"
_POINTER = b"version https://git-lfs.github.com/spec/"
_EXPORT = "export it again: optimum-cli export onnx --model NAME FOLDER"


def find_graphs(folder: str) -> dict[str, str]:
    """Return the path of each graph in a folder and in those directly below it, sorted by name.

    Raises:
        UserError: there is none, or the folder cannot be listed.
    """
    inner = [name for name in _listed(folder) if os.path.isdir(os.path.join(folder, name))]
    places = ["", *(f"{name}/" for name in inner if not name.startswith("."))]
    found = {
        place + name.removesuffix(_ENDING): os.path.join(folder, place, name)
        for place in places
        for name in _listed(os.path.join(folder, place))
        if name.endswith(_ENDING)
    }
    if not found:
        listed = ", ".join(_listed(folder)) or "nothing"
        why = f"expected model.onnx, or encoder_model.onnx and decoder_model.onnx, got {listed}"
        raise UserError("no ONNX graph in the folder", folder, why, _EXPORT)
    return dict(sorted(found.items()))


def all_graphs(folder: str) -> dict[str, str]:
    """Return all graphs, each of which is whole.

    Raises:
        UserError: also if the folder's own config.json tells of one that is not there.
    """
    graphs = find_graphs(folder)
    _check_pair(folder, graphs)
    for path in graphs.values():
        _check_downloaded(path)
    return graphs


def one_graph(folder: str, name: str | None) -> str:
    """Return the path of a graph by name, or of the only one.

    Raises:
        UserError: there is no such graph, or there are several and no name.
    """
    graphs = find_graphs(folder)
    listed = ", ".join(graphs)
    if name is None and len(graphs) > 1:
        why = f"it has {len(graphs)}: {listed}"
        raise UserError(
            "a folder of several graphs", folder, why, "name one of them, or compile all"
        )
    if name is not None and name not in graphs:
        why = f"expected one of {listed}"
        raise UserError(
            f"no graph {name!r} in the folder", folder, why, suggest(name, list(graphs))
        )
    path = graphs[name] if name is not None else next(iter(graphs.values()))
    _check_downloaded(path)
    return path


def _listed(folder: str) -> Sequence[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        why, do = error.strerror or str(error), "check the path"
        raise UserError("the model's folder cannot be read", folder, why, do) from None


def _check_pair(folder: str, graphs: Mapping[str, str]) -> None:
    """A model with encoder and decoder needs both."""
    if not _is_encoder_decoder(os.path.join(folder, _CONFIG)):
        return
    has = {part: any(name.startswith(part) for name in graphs) for part in ("encoder", "decoder")}
    for part in [part for part, is_there in has.items() if not is_there]:
        why = f"{_CONFIG} tells of an encoder and a decoder, got {', '.join(graphs)}"
        raise UserError(f"the folder lacks {part}_model.onnx", folder, why, _EXPORT)


def _is_encoder_decoder(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    try:
        with open(path, encoding="utf-8") as file:
            config: object = json.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{_CONFIG} is damaged", path, str(error), _EXPORT) from None
    return (
        isinstance(config, dict)
        and cast("dict[str, object]", config).get("is_encoder_decoder") is True
    )


def _check_downloaded(path: str) -> None:
    """Refuse what git-lfs leaves in the place of a graph, or of the weights beside it."""
    folder, name = os.path.split(path)
    for other in _listed(folder):
        beside = os.path.join(folder, other)
        if other.startswith(name) and os.path.isfile(beside):
            with open(beside, "rb") as file:
                if file.read(len(_POINTER)) == _POINTER:
                    why = "expected the file itself, got the text that git-lfs puts in its place"
                    raise UserError("a file is not downloaded", beside, why, "run git lfs pull")
