"""What ``ingot diff`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.diff``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, Argument, Example

ARGUMENTS = (
    Argument("first", "A", "a bundle", "bundle"),
    Argument("second", "B", "the bundle to compare it with", "bundle"),
)
OPTIONS = (JSON,)
EXAMPLES = (Example("ingot diff old.ingot new.ingot", "a line for each difference, or: equal"),)
