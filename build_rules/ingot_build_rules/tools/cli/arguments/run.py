"""What ``ingot run`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.run``)."""

from ingot_build_rules.tools.cli.shell.options import (
    BIND,
    BUNDLE,
    CALL_SHAPE,
    DIGEST,
    JSON,
    VARIANT,
    Example,
    Option,
    Takes,
)

_ARGUMENTS = (BUNDLE,)
_OPTIONS = (
    Option(
        "--inputs", "arrays by input name (default: numbers from a fixed seed)", "F.npz", "arrays"
    ),
    CALL_SHAPE,
    Option("--outputs", "write the outputs here (default: print a summary)", "F.npz", "arrays"),
    Option("--threads", "threads (default 1)", "N", "count", 1),
    BIND,
    Option(
        "--executor", "native main, or step its instructions", default="aot", choices=("aot", "vm")
    ),
    Option(
        "--verify",
        "how much of the file to check",
        default="full",
        choices=("full", "fast", "code"),
    ),
    VARIANT,
    Option("--timeout", "end the call, without results, after that time", "SECONDS", "seconds"),
    Option("--max-bytes", "most memory for workspace and outputs, e.g. 2GiB", "SIZE", "size"),
    Option(
        "--trace", "write a trace of load, calls and launches for a trace viewer", "F.json", "json"
    ),
    DIGEST,
    JSON,
)
_EXAMPLES = (
    Example("ingot run model.ingot", "one call with numbers from a fixed seed"),
    Example("ingot run model.ingot --shape x=4x16", "the same, with sizes for dynamic inputs"),
    Example(
        "ingot run model.ingot --inputs x.npz --outputs y.npz --threads 2",
        "arrays by name in and out; write the input with numpy.savez('x.npz', x=array)",
    ),
)

TAKES = {"run": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
