"""What ``ingot query`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.query``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, PROJECT, TARGETS, Example, Option

ARGUMENTS = (TARGETS,)
OPTIONS = (
    *PROJECT,
    Option("--format", "json (default) or dot", default="json", choices=("json", "dot")),
    Option("--actions", "with the actions of the last builds"),
    JSON,
)
EXAMPLES = (
    Example("ingot query", "the whole project as it was read, as JSON"),
    Example("ingot query detector --actions --format dot", "a graph of what made a bundle"),
)
