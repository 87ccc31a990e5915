"""What ``ingot tune`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.tune``)."""

from ingot_build_rules.tools.cli.shell.options import (
    CACHE,
    CALL_SHAPE,
    JSON,
    Argument,
    Example,
    Option,
)

ARGUMENTS = (
    Argument(
        "model", "MODEL|PROJECT", "an .onnx file, or the folder or file of a project", "model"
    ),
)
OPTIONS = (
    Option("-o --output", "the file to write (default: MODEL.tune)", "FILE", "file"),
    Option("--target", "what to measure for (default: native)", "T", "target"),
    Option(
        "--precision",
        "as for compile (default: f32): only methods that are precise enough are measured",
        choices=("f32", "fast"),
    ),
    Option("--inputs", "inputs (default: numbers from a fixed seed)", "F.npz", "arrays"),
    CALL_SHAPE,
    Option("--threads", "threads that compute (default 1)", "N", "count", 1),
    Option("--rounds", "calls of each method, in turns (default 30)", "N", "count", 30),
    *CACHE,
    JSON,
)
EXAMPLES = (
    Example("ingot tune model.onnx", "measure each layer's methods into model.tune"),
    Example("ingot tune .", "measure each bundle of the project that names a tuning file"),
    Example("ingot tune model.onnx --target x86-64-v3 --rounds 100", "for a level, more calls"),
)
