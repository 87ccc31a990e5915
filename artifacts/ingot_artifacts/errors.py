"""Errors of artifacts: what failed, where, why, what to do.

In: nothing. Out: ``ArtifactError`` and its kinds, each with the command's exit code. Not done here: printing; errors in a
bundle that is read (``ingot_runtime.errors``).
"""

from ingot_runtime.printable import error_text


class ArtifactError(Exception):
    """An artifact cannot be made; ``str()`` is the four-part message without a prefix, fit to print."""

    exit_code = 2

    def __init__(self, what: str, where: str = "", why: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.do = do

    def __str__(self) -> str:
        return error_text(self.what, self.where, self.why, self.do)

    def __reduce__(self) -> tuple[type["ArtifactError"], tuple[str, str, str, str]]:
        return type(self), (self.what, self.where, self.why, self.do)


class OutputError(ArtifactError):
    """The output cannot be written: no folder, no permission, no space."""

    exit_code = 1


class StoreReadOnly(OutputError):
    """The cache was opened for reading alone."""

    def __init__(self, path: str) -> None:
        super().__init__(
            "the cache is read-only",
            path,
            "it was opened for reading alone",
            "name a cache that may be written as well",
        )

    def __reduce__(self) -> tuple[type["StoreReadOnly"], tuple[str]]:  # type: ignore[override]  # one part makes it
        return type(self), (self.where,)
