"""What ``ingot log`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.log``)."""

from ingot_build_rules.cli.options import BUNDLE_TARGETS, JSON, PROJECT, Example

ARGUMENTS = (BUNDLE_TARGETS,)
OPTIONS = (*PROJECT, JSON)
EXAMPLES = (Example("ingot log detector", "each action of the last build: how, how long, its key"),)
