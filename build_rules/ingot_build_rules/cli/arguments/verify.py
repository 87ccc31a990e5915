"""What ``ingot verify`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.verify``)."""

from ingot_build_rules.cli.options import BUNDLE, DIGEST, JSON, Example

ARGUMENTS = (BUNDLE._replace(name="bundles", help=".ingot files", times="+"),)
OPTIONS = (DIGEST, JSON)
EXAMPLES = (
    Example("ingot verify dist/a.ingot dist/b.ingot", "compare every byte with its digest"),
    Example(
        "ingot verify model.ingot --digest 0123456789abcdef0123456789abcdef",
        "and refuse any bundle but this one",
    ),
)
