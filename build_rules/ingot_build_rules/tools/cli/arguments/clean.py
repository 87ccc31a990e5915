"""What ``ingot clean`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.clean``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, PROJECT, Argument, Example, Option

ARGUMENTS = (
    Argument(
        "words", "TARGET", "bundles or their output files (default: all)", "project-name", "*"
    ),
)
OPTIONS = (
    *PROJECT,
    Option("-n --dry-run", "say what would be removed, remove nothing"),
    JSON,
)
EXAMPLES = (
    Example("ingot clean -n", "say what would be removed"),
    Example("ingot clean detector", "remove what builds have made of one bundle"),
)
