"""Where a project may write: in its own folder. Its file comes from whoever wrote the project, the
disk is the user's.

In: a project's folder, what it would write. Out: nothing, or an error that lists all that lies
outside. Not done here: the cache's default, what options of the command name (the user has said
those).

Links count as what they lead to: one inside the project that leads out of it is outside.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ingot_build_rules.making.project.model import BundleSpec, ExportSpec
from ingot_build_rules.tools.workspace.state import FOLDER_NAME
from ingot_compiler.ir.errors import UserError
from ingot_runtime.option_ref import OptionRef

_LISTED_MAX = 10


def is_inside(path: str, folder: str) -> bool:
    """Whether a file or folder, which may not be there yet, lies in ``folder`` or is it, once all
    links are followed."""
    inner, outer = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([inner, outer]) == outer


def check_outputs(
    folder: str, path: str, bundles: Sequence[BundleSpec], exports: Sequence[ExportSpec] = ()
) -> None:
    """Refuse bundles, exports, and a memory of the project, that lie outside of its ``folder``; ``path`` is
    the project file.

    Raises:
        UserError: all that lies outside.
    """
    # The folder alone: a link in the file's own place is replaced, not followed.
    written = [
        (f"output of [bundle.{item.name}]", os.path.dirname(os.path.join(folder, item.output)))
        for item in bundles
    ]
    written += [
        (f"output of [export.{item.name}]", os.path.join(folder, item.output)) for item in exports
    ]
    written.append(("its memory", os.path.join(folder, FOLDER_NAME)))
    outside = [(name, place) for name, place in written if not is_inside(place, folder)]
    if outside:
        raise outside_error(folder, path, outside)


def outside_error(folder: str, path: str, outside: Sequence[tuple[str, str]]) -> UserError:
    """Return the error that names what would be written where; the places are folders."""
    listed = [f"{name}: {os.path.realpath(place)}" for name, place in outside[:_LISTED_MAX]]
    more = [f"and {len(outside) - _LISTED_MAX} more"] if len(outside) > _LISTED_MAX else []
    return UserError(
        "the project would write outside of its folder",
        path,
        f"expected places in {os.path.realpath(folder)}, got {', '.join([*listed, *more])}",
        (
            "choose places inside, or allow these, if you trust the project with them (",
            OptionRef("allow-outside"),
            ")",
        ),
    )
