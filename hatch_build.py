"""Puts the manual pages into the wheel, made from the tables of the verbs.

In: this tree, which need not be installed. Out: files for ``share/man/man1`` of the environment that
the wheel is installed into. Not done here: the text of a page (``cli.manual_page``).
"""

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface):
    """Writes the pages into a temporary folder for the time of the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them; an editable installation has none, since they would not follow the code."""
        if version == "editable":
            return
        sys.path.insert(0, os.path.join(self.root, "build_rules"))
        try:
            from ingot_build_rules.cli.manual_page import all_pages
        finally:
            del sys.path[0]
        self._folder = tempfile.TemporaryDirectory(prefix="ingot-man-")
        for name, text in all_pages(self.metadata.version).items():
            path = os.path.join(self._folder.name, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            build_data["shared_data"][path] = f"share/man/man1/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
