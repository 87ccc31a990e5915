"""What ``ingot why-device`` takes, and examples of it. In: nothing. Out: data. Not done here: the
verb (``cli.why_device``)."""

from ingot_build_rules.tools.cli.shell.options import BUNDLE, DIGEST, JSON, Argument, Example

ARGUMENTS = (
    BUNDLE,
    Argument(
        "value", "VALUE", "the name of a node, input, output or constant, or a glob over them"
    ),
)
OPTIONS = (DIGEST, JSON)
EXAMPLES = (
    Example("ingot why-device model.ingot /layer1/Conv", "why this node runs where it runs"),
    Example("ingot why-device model.ingot '/layer1/*'", "the same of each node of a block"),
    Example("ingot why-device model.ingot logits --json", "of an output, for a program"),
)
