"""What ``ingot why`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.why``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, PROJECT, TARGETS, Example

ARGUMENTS = (TARGETS,)
OPTIONS = (*PROJECT, JSON)
EXAMPLES = (
    Example("ingot why detector", "what has changed since the last build of this bundle"),
    Example("ingot why test.detector", "what has changed since this test passed"),
    Example("ingot why dist/detector.ingot --json", "the same, for a program"),
)
