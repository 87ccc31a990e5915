"""What ``ingot report`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.report``)."""

from ingot_build_rules.tools.cli.shell.options import (
    BIND,
    BUNDLE,
    CALL_SHAPE,
    DIGEST,
    JSON,
    Example,
    Option,
)

ARGUMENTS = (BUNDLE,)
OPTIONS = (
    Option("-o --output", "the page (default: BUNDLE with .html)", "F.html", "page"),
    Option("--against", "show what differs from this bundle", "OTHER", "bundle"),
    Option(
        "--inputs", "inputs of the call (default: numbers from a fixed seed)", "F.npz", "arrays"
    ),
    CALL_SHAPE,
    Option("--threads", "threads that compute (default 1)", "N", "count", 1),
    Option("--seconds", "measure at least so long (default 1)", "S", "seconds", 1.0),
    Option("--no-run", "run nothing: a page without times, for any machine"),
    Option(
        "--variant", "the variant to show (default: the best that runs here)", "TARGET", "target"
    ),
    BIND,
    DIGEST,
    JSON,
)
EXAMPLES = (
    Example("ingot report model.ingot", "model.html: graph, kernels, times, memory"),
    Example("ingot report new.ingot --against old.ingot", "with what differs from another bundle"),
    Example("ingot report model.ingot --no-run", "without times, the same bytes each time"),
)
