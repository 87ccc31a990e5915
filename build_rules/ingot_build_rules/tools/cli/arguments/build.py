"""What ``ingot build`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.build``)."""

from ingot_build_rules.tools.cli.shell.options import (
    CACHES,
    JOBS,
    JSON,
    PROJECT,
    QUIET,
    TARGETS,
    Example,
    Option,
    Takes,
)

_ARGUMENTS = (TARGETS,)
_OPTIONS = (
    *PROJECT,
    JOBS,
    Option("-n --dry-run", "say what would run, run nothing"),
    Option("-k --keep-going", "after a failure, build all that can be built"),
    Option("--explain", "say for everything that runs why it does"),
    Option("--trace", "write a trace for a trace viewer (Perfetto)", "F.json", "json"),
    Option("--events", "write every event as a line of JSON; - is standard output", "FILE", "file"),
    Option("--depfile", "write the sources of one bundle for make or ninja", "FILE", "file"),
    Option("--expect-cached", "fail, and say why, if anything has to run"),
    Option("--frozen", "fail if a bundle or a source is not that of its lock file"),
    Option("--rehash", "read every source again, whatever its times say"),
    Option("--check-hits", "run this share of cached actions again, compare", "RATE", "share", 0.0),
    Option("--lint", "fail when an action reads a file that it has not declared"),
    QUIET,
    *CACHES,
    Option("--allow-outside", "let the project write outside of its folder: bundles, its cache"),
    JSON,
)
_EXAMPLES = (
    Example("ingot build", "everything that ingot.toml of this folder, or of one above, asks for"),
    Example("ingot build detector -j 4", "one bundle and its tests, with four processes"),
    Example("ingot build -n --explain", "say what would run and why, and run nothing"),
    Example("ingot build --frozen", "in CI: fail if a result is not what the lock files say"),
)

TAKES = {"build": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
