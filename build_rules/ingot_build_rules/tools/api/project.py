"""``ingot.Project``: a project in Python, read from ``ingot.toml``, put together by calls, or both,
and built.

In: declarations. Out: a ``Report``. Not done here: declarations (``workspace.declared_project``),
the build (``workspace.run_build``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingot_build_rules.tools.api.python_errors import python_error, raise_python_errors
from ingot_build_rules.tools.workspace.declared_project import DeclaredProject, PathText
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.tools.workspace.build_report import Report


class Project(DeclaredProject):
    """A declared project that can be built."""

    @raise_python_errors()
    def build(
        self,
        words: Sequence[str] = (),
        *,
        jobs: int = 1,
        cache: PathText | None = None,
        keep_going: bool = False,
        expect_cached: bool = False,
        frozen: bool = False,
        rehash: bool = False,
        cache_shared: bool = False,
        allow_outside: bool = False,
    ) -> Report:
        """Build bundles and run tests as ``ingot build`` does, over the same cache and the same
        memory of the last build.

        Args:
            words: names of bundles and tests, or output files; one text for one, none for all.
            jobs: processes at most. 1: everything runs in this process.
            cache: the cache's folder; None for the project's, else the user's.
            keep_going: after a failure, build all that can be built.
            expect_cached: let nothing run; what would have to is in the report.
            frozen: refuse a bundle or a source that is not that of its lock file.
            rehash: read every source again, whatever its times say.
            cache_shared: trust all who can write to the cache, which may not be the user alone.
            allow_outside: let the project write outside of its folder.

        Raises:
            UserError: everything that is wrong with the project. The error of the first bundle or
            test that failed, unless ``keep_going``: then each result in the report has its own.
        """
        from ingot_build_rules.tools.workspace.build_request import BuildRequest
        from ingot_build_rules.tools.workspace.cache_folder import (
            cache_trust,
            project_cache_folder,
            project_cache_max_bytes,
        )
        from ingot_build_rules.tools.workspace.open_workspace import loaded_project
        from ingot_build_rules.tools.workspace.run_build import run_build

        loaded = loaded_project(self)
        given = os.fspath(cache) if cache is not None else None
        folder = project_cache_folder(loaded, given, allow_outside=allow_outside)
        request = BuildRequest(
            folder,
            cache_trust(shared=cache_shared),
            (words,) if isinstance(words, str) else tuple(words),
            jobs,
            keep_going=keep_going,
            expect_cached=expect_cached,
            frozen=frozen,
            rehash=rehash,
            allow_outside=allow_outside,
            cache_max_bytes=project_cache_max_bytes(loaded, folder, None),
        )
        report = run_build(loaded, request)
        errors = _with_python_errors(report)
        if errors and not keep_going:
            raise errors[0]
        return report


def _with_python_errors(report: Report) -> list[BaseException]:
    """The errors of what failed; those of all results speak of arguments from now on."""
    for item in report.results:
        if isinstance(item.error, IngotError):
            item.error = python_error(item.error)
    return [item.error for item in report.results if item.status == "failed" and item.error]
