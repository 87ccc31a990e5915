"""What ``ingot bench`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.bench``)."""

from ingot_build_rules.cli.options import BUNDLE, JSON, VARIANT, Example, Option

ARGUMENTS = (BUNDLE,)
OPTIONS = (
    Option("--inputs", "inputs (default: numbers from a fixed seed)", "F.npz", "arrays"),
    Option("--threads", "threads that compute (default 1)", "N", "count", 1),
    Option("--seconds", "at least so long (default 2)", "S", "seconds", 2.0),
    VARIANT,
    Option("--top", "kernels to list (default 15)", "N", "count", 15),
    JSON,
)
EXAMPLES = (
    Example("ingot bench model.ingot", "time per call, and per kernel"),
    Example("ingot bench model.ingot --threads 2 --seconds 10", "longer, with two threads"),
)
