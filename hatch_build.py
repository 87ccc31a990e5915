"""Puts the manual pages and the scripts of completion into the wheel.

In: this tree, which need not be installed. Out: files below ``share`` of the environment that the
wheel is installed into, where ``man`` and shells look for them. Not done here: their texts
(``cli.shell.manual_page``, ``cli.completion``).
"""

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SCRIPTS = {
    "bash": "share/bash-completion/completions/ingot",
    "zsh": "share/zsh/site-functions/_ingot",
    "fish": "share/fish/vendor_completions.d/ingot.fish",
}


class SharedFiles(BuildHookInterface):
    """Writes them into a temporary folder for the time of the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them; an editable installation has none, since pages would not follow the code."""
        if version == "editable":
            return
        sys.path[:0] = [os.path.join(self.root, name) for name in ("build_rules", "compiler")]
        try:
            from ingot_build_rules.tools.cli.completion import script
            from ingot_build_rules.tools.cli.shell.manual_page import all_pages

            pages = all_pages(self.metadata.version)
            texts = {f"share/man/man1/{name}": text for name, text in pages.items()}
            texts |= {path: script(shell) for shell, path in _SCRIPTS.items()}
        finally:
            del sys.path[:2]
        self._folder = tempfile.TemporaryDirectory(prefix="ingot-share-")
        for number, (place, text) in enumerate(texts.items()):
            path = os.path.join(self._folder.name, str(number))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            build_data["shared_data"][path] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
