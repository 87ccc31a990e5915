"""``ingot.compile_folder``: every graph of a folder, from Python.

In: a folder that ``optimum`` exported, options. Out: a ``Bundle`` for each graph, by name. Not done
here: one graph (``compile``), which graphs there are (``stages.model_folder``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingot_build_rules.making.stages.model_folder import all_graphs
from ingot_build_rules.tools.api.compile import compile as compile_model
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.tools.api.compiled_bundle import Bundle


def compile_folder(
    folder: str | os.PathLike[str],
    *,
    targets: str | Sequence[str] = "native",
    workers: int = 1,
    check: bool = False,
    cache: str | os.PathLike[str] | None = None,
    cache_shared: bool = False,
    max_bytes: int | None = None,
) -> dict[str, Bundle]:
    """Compile each graph of a folder; the options are those of ``compile`` that suit all graphs.

    Returns:
        name of the graph (``decoder_model``, ``unet/model``) -> its bundle, sorted by name.

    Raises:
        UserError: no graph, or one that the folder's config.json tells of is not there. All that
            ``compile`` raises, with the name of the graph.
    """
    bundles: dict[str, Bundle] = {}
    for name, path in all_graphs(os.fspath(folder)).items():
        try:
            bundles[name] = compile_model(
                path,
                targets=targets,
                workers=workers,
                check=check,
                cache=cache,
                cache_shared=cache_shared,
                max_bytes=max_bytes,
            )
        except IngotError as error:
            raise error.at(f"graph {name}, {error.where}") from error
    return bundles
