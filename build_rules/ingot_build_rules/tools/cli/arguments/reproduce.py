"""What ``ingot reproduce`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.reproduce``)."""

from ingot_build_rules.tools.cli.shell.options import (
    BUNDLE,
    CACHE,
    JOBS,
    JSON,
    PLUGIN,
    Example,
    Option,
    Takes,
)

_ARGUMENTS = (BUNDLE,)
_OPTIONS = (
    Option(
        "--source",
        "the project's folder, with the model in it or below, or the model's file",
        "DIR",
        "file",
        required=True,
    ),
    Option(
        "--lock",
        "the lock file (default: NAME.lock.json beside the bundle, if it is there)",
        "FILE",
        "json",
    ),
    Option("--cached", "take results from the cache and leave them there; this proves less"),
    PLUGIN,
    JOBS,
    Option("-q --quiet", "no progress"),
    *CACHE,
    JSON,
)
_EXAMPLES = (
    Example(
        "ingot reproduce dist/model.ingot --source .",
        "make it again without the cache, compare all bytes",
    ),
)

TAKES = {"reproduce": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
