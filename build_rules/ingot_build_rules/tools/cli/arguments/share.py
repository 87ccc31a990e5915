"""What ``ingot share`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.share``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, Argument, Example, Option

ARGUMENTS = (
    Argument("base", "BASE", "the bundle that has the weights", "bundle"),
    Argument("bundle", "BUNDLE", "a bundle of the same model, trained further", "bundle"),
)
OPTIONS = (
    Option("-o --output", "the bundle to write, beside BASE", "OUT.ingot", "bundle", required=True),
    JSON,
)
EXAMPLES = (
    Example(
        "ingot share base.ingot french.ingot -o french-shared.ingot",
        "a second fine-tune takes its own layers of disk and memory, and no more",
    ),
)
