"""What ``ingot init`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.init``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, Argument, Example, Option

ARGUMENTS = (
    Argument("folder", "FOLDER", "where the models are, here or below (default: .)", "folder", "?"),
)
OPTIONS = (
    Option("--force", "replace the ingot.toml that is there"),
    Option("-n --dry-run", "print the project, write nothing"),
    JSON,
)
EXAMPLES = (
    Example("ingot init", "ingot.toml for all models in this folder and below"),
    Example("ingot init models -n", "print it instead"),
)
