"""What ``ingot identify`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.identify``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, Argument, Example

ARGUMENTS: tuple[Argument, ...] = ()
OPTIONS = (JSON,)
EXAMPLES = (Example("ingot identify", "level, features, and what native stands for"),)
