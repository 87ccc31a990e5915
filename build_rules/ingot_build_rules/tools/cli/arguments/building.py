"""What the verbs of a project and its cache take, and examples of them.

In: nothing. Out: ``TAKES``. Not done here: the verbs (``cli``).
"""

from ingot_build_rules.tools.cli.arguments.build import TAKES as TAKES_OF_BUILD
from ingot_build_rules.tools.cli.shell.options import (
    CACHE,
    JSON,
    PROJECT,
    TARGETS,
    Argument,
    Example,
    Option,
    Takes,
)

_BUILD = TAKES_OF_BUILD["build"]

TAKES = {
    "init": Takes(
        (
            Argument(
                "folder",
                "FOLDER",
                "where the models are, here or below (default: .)",
                "folder",
                "?",
            ),
        ),
        (
            Option("--force", "replace the ingot.toml that is there"),
            Option("-n --dry-run", "print the project, write nothing"),
            JSON,
        ),
        (
            Example("ingot init", "ingot.toml for all models in this folder and below"),
            Example("ingot init models -n", "print it instead"),
        ),
    ),
    "why": Takes(
        (TARGETS,),
        (*PROJECT, JSON),
        (
            Example("ingot why detector", "what has changed since the last build of this bundle"),
            Example("ingot why test.detector", "what has changed since this test passed"),
            Example("ingot why dist/detector.ingot --json", "the same, for a program"),
        ),
    ),
    "log": Takes(
        (TARGETS,),
        (*PROJECT, JSON),
        (
            Example(
                "ingot log detector",
                "each action of the last build: its status, how long it took, its key",
            ),
            Example("ingot log test.detector", "how the test of this name ended"),
        ),
    ),
    "query": Takes(
        (TARGETS,),
        (
            *PROJECT,
            Option("--format", "json (default) or dot", default="json", choices=("json", "dot")),
            Option("--actions", "with the actions of the last builds"),
            JSON,
        ),
        (
            Example("ingot query", "the whole project as it was read, as JSON"),
            Example("ingot query detector --actions --format dot", "a graph of what made a bundle"),
        ),
    ),
    "watch": Takes(
        _BUILD.arguments,
        (*_BUILD.options, Option("--once", "end after the first change has been built")),
        (
            Example("ingot watch", "build now, and whenever a source changes, until Ctrl-C"),
            Example(
                "ingot watch detector --once", "build one bundle, and once more after a change"
            ),
        ),
    ),
    "clean": Takes(
        (
            Argument(
                "words",
                "TARGET",
                "bundles or their output files (default: all)",
                "project-name",
                "*",
            ),
        ),
        (
            *PROJECT,
            Option("-n --dry-run", "say what would be removed, remove nothing"),
            JSON,
        ),
        (
            Example("ingot clean -n", "say what would be removed"),
            Example("ingot clean detector", "remove what builds have made of one bundle"),
        ),
    ),
    "cache": Takes(
        (
            Argument(
                "action",
                "ACTION",
                "stat: how much is there; gc: forget what was used longest ago; verify: check every byte; "
                "why: say what a key or a digest is, and what keeps it",
                choices=("stat", "gc", "verify", "why"),
            ),
            Argument("what", "KEY_OR_DIGEST", "for why: its first digits, 6 or more", times="?"),
        ),
        (
            Option("--max", "for gc: the size to come down to, such as 5GB", "SIZE", "cache-size"),
            Option("--wait", "for gc: wait for a build that runs", "SECONDS", "seconds"),
            Option("--dry-run", "for gc and verify: report only"),
            *CACHE,
            JSON,
        ),
        (
            Example("ingot cache stat", "how much is there, by rule"),
            Example("ingot cache gc --max 5GB", "remove what was used longest ago"),
            Example("ingot cache why 64a098ef47f9", "what a record was made from"),
        ),
    ),
}
