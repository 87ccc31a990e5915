"""What ``ingot man`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.man``)."""

from ingot_build_rules.tools.cli.shell.options import Argument, Example, Option

ARGUMENTS = (Argument("verb", "VERB", "the page of this verb (default: ingot)", "verb", "?"),)
OPTIONS = (Option("-o --output", "write all pages into this folder, as NAME.1", "DIR", "folder"),)
EXAMPLES = (
    Example("ingot man compile | man -l -", "read the page of one verb"),
    Example("ingot man -o ~/.local/share/man/man1", "install all, so that `man ingot` finds them"),
)
