"""What ``ingot export`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.export``)."""

from ingot_build_rules.cli.options import BUNDLE, CACHE, JSON, Example, Option

ARGUMENTS = (BUNDLE,)
OPTIONS = (
    Option(
        "--executable",
        "a program of one file for Linux, which needs no Python and no library",
        required=True,
    ),
    Option("-o --output", "the file to write", "FILE", "file", required=True),
    *CACHE,
    JSON,
)
EXAMPLES = (
    Example(
        "ingot export model.ingot --executable -o model",
        "a program: `./model --inputs x.npz --outputs y.npz`",
    ),
)
