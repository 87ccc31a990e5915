"""What ``ingot log`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.log``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, PROJECT, TARGETS, Example

ARGUMENTS = (TARGETS,)
OPTIONS = (*PROJECT, JSON)
EXAMPLES = (
    Example(
        "ingot log detector", "each action of the last build: its status, how long it took, its key"
    ),
    Example("ingot log test.detector", "how the test of this name ended"),
)
