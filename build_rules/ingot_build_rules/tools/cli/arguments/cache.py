"""What ``ingot cache`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.cache``)."""

from ingot_build_rules.tools.cli.shell.options import CACHE, JSON, Argument, Example, Option

ARGUMENTS = (
    Argument(
        "action",
        "ACTION",
        "stat: how much is there; gc: forget what was used longest ago; verify: check every byte; "
        "why: say what a key or a digest is, and what keeps it",
        choices=("stat", "gc", "verify", "why"),
    ),
    Argument("what", "KEY_OR_DIGEST", "for why: its first digits, 6 or more", times="?"),
)
OPTIONS = (
    Option("--max", "for gc: the size to come down to, such as 5GB", "SIZE", "cache-size"),
    Option("--wait", "for gc: wait for a build that runs", "SECONDS", "seconds"),
    Option("--dry-run", "for gc and verify: report only"),
    *CACHE,
    JSON,
)
EXAMPLES = (
    Example("ingot cache stat", "how much is there, by rule"),
    Example("ingot cache gc --max 5GB", "remove what was used longest ago"),
    Example("ingot cache why 64a098ef47f9", "what a record was made from"),
)
