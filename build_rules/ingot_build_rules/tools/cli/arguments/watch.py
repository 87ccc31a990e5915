"""What ``ingot watch`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.watch``)."""

from ingot_build_rules.tools.cli.arguments import build
from ingot_build_rules.tools.cli.shell.options import Example, Option

ARGUMENTS = build.ARGUMENTS
OPTIONS = (*build.OPTIONS, Option("--once", "end after the first change has been built"))
EXAMPLES = (
    Example("ingot watch", "build now, and whenever a source changes, until Ctrl-C"),
    Example("ingot watch detector --once", "build one bundle, and once more after a change"),
)
