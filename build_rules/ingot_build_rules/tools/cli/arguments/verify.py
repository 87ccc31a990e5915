"""What ``ingot verify`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.verify``)."""

from ingot_build_rules.tools.cli.shell.options import BUNDLE, DIGEST, JSON, Example, Option

ARGUMENTS = (BUNDLE._replace(name="bundles", help=".ingot files", times="+"),)
OPTIONS = (
    DIGEST,
    Option(
        "--require-key",
        "refuse a bundle that none of these has signed: the public key, a PEM file or 64 hex digits",
        "F",
        "file",
        repeats=True,
    ),
    Option("--policy", "refuse a bundle whose signatures the policy does not accept", "F", "file"),
    JSON,
)
EXAMPLES = (
    Example("ingot verify dist/a.ingot dist/b.ingot", "compare every byte with its digest"),
    Example(
        "ingot verify model.ingot --digest 0123456789abcdef0123456789abcdef",
        "and refuse any bundle but this one",
    ),
    Example(
        "ingot verify model.ingot --require-key release.pub",
        "and refuse what the owner of this key has not signed",
    ),
)
