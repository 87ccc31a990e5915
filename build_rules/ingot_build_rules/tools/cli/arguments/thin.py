"""What ``ingot thin`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.thin``)."""

from ingot_build_rules.tools.cli.shell.options import BUNDLE, JSON, Example, Option

ARGUMENTS = (BUNDLE,)
OPTIONS = (
    Option("--target", "the variant that is left", "T", "target", required=True),
    Option("-o --output", "the bundle to write", "OUT.ingot", "bundle", required=True),
    JSON,
)
EXAMPLES = (
    Example(
        "ingot thin model.ingot --target x86-64-v3 -o small.ingot",
        "one variant of several; signatures of the whole stay good",
    ),
)
