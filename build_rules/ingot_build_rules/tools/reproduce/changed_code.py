"""Which of our source files are not those that a lock file names.

In: a lock file, the code of today. Out: ``ChangedCode``. Not done here: digests of code
(``engine.cache.code_digest``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.engine.cache.code_digest import CodeDigests
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.stages.lock_file import CodeRecord, record_code
from ingot_build_rules.tools.reproduce.blame import Blame, tool_blames
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ChangedCode:
    """``recorded``: code of then, ``present``: code of now, with the digests behind it; nothing
    without a lock file."""

    recorded: CodeRecord | None = None
    present: CodeRecord | None = None
    digests: CodeDigests | None = None

    def text(self, rules: Sequence[str]) -> str:
        """Name the files that the rules may run and that have changed; where only digests of rules
        are recorded, say that."""
        if self.recorded is None or self.present is None:
            return ""
        files = self._files(rules)
        if files or self.recorded.files:
            return (
                f"changed since: {', '.join(files)}" if files else "none of its files has changed"
            )
        then, now = dict(self.recorded.rules), dict(self.present.rules)
        changed = any(then.get(rule, now[rule]) != now[rule] for rule in rules)
        return "its code has changed" if changed else ""

    def libraries(self) -> list[Blame]:
        """Libraries that are not what they were."""
        if self.recorded is None or self.present is None or not self.recorded.libraries:
            return []
        return tool_blames(dict(self.recorded.libraries), dict(self.present.libraries))

    def _files(self, rules: Sequence[str]) -> list[str]:
        assert self.recorded is not None
        assert self.present is not None
        if self.digests is None or not self.recorded.files:
            return []
        places = {where for rule in rules for where in RULEBOOK.code_of(RULEBOOK.by_name[rule])}
        reached = {
            path: digest for where in places for path, digest in self.digests.files_of(where)
        }
        then, now = dict(self.recorded.files), dict(self.present.files)
        changed = [path for path, digest in reached.items() if then.get(path) != digest]
        return sorted([*changed, *(path for path in then if path not in now)])


def changed_code(recorded: CodeRecord, digests: CodeDigests) -> ChangedCode:
    """Compare with the code that runs now."""
    return ChangedCode(recorded, record_code(digests), digests)
