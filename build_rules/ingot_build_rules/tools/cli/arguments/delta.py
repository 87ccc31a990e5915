"""What ``ingot delta`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.delta``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, Argument, Example, Option

ARGUMENTS = (
    Argument("old", "OLD", "the bundle that devices have", "bundle"),
    Argument("new", "NEW", "the bundle that they are to have", "bundle"),
)
OPTIONS = (Option("-o --output", "the file to write", "FILE", "file", required=True), JSON)
EXAMPLES = (
    Example(
        "ingot delta old.ingot new.ingot -o new.delta",
        "on the device: python -m ingot_runtime apply old.ingot new.delta -o new.ingot",
    ),
)
