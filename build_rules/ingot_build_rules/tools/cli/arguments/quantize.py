"""What ``ingot quantize`` takes, and examples of it. In: nothing. Out: data. Not done here: the
verb (``cli.quantize``)."""

from ingot_build_rules.tools.cli.shell.options import JSON, Argument, Example, Option, Takes

_ARGUMENTS = (Argument("model", "MODEL", "an .onnx file, external data beside it", "model"),)
_OPTIONS = (
    Option(
        "--weights",
        "what the weights of products become, in blocks; activations stay floats",
        choices=("int8", "int4"),
    ),
    Option("--block", "numbers along the depth that share a scale (default 32)", "N"),
    Option(
        "--calibrate",
        "inputs by name, or a folder of such files, one for each call. Alone: "
        "activations become integers, too, by their ranges in these calls. With --weights: scales "
        "are chosen by what the layers multiply. The errors of the outputs are measured",
        "F.npz",
        "arrays",
    ),
    Option(
        "--dynamic",
        "activations become integers when the model runs, each row by its own range; no calls are "
        "needed, and --calibrate measures the errors",
    ),
    Option(
        "--max-error",
        "write no model if an output is further from the float one, rms, in the calls of "
        "--calibrate (such as 0.02)",
        "E",
    ),
    Option(
        "--activations",
        "what activations become by --calibrate alone (default uint8)",
        choices=("uint8", "int8"),
    ),
    Option(
        "--ranges",
        "which numbers an activation's range holds: all, all but one in 100,000 "
        "on each side, or those of the least squared error (default mse)",
        choices=("minmax", "percentile", "mse"),
    ),
    Option(
        "--keep",
        "a node that stays in floats without --weights, perhaps with wildcards",
        "NODE",
        repeats=True,
    ),
    Option(
        "-o --output",
        "the model to write (default: the model's name with .int4.onnx or .int8.onnx, in this "
        "folder)",
        "OUT.onnx",
        "model",
    ),
    JSON,
)
_EXAMPLES = (
    Example("ingot quantize model.onnx --calibrate x.npz", "activations and weights of 8 bits"),
    Example("ingot quantize model.onnx --dynamic", "activations by rows, without any inputs"),
    Example("ingot quantize model.onnx --weights int4", "model.int4.onnx, the error of each layer"),
    Example(
        "ingot quantize model.onnx --weights int4 --calibrate x.npz",
        "smaller errors where it matters, and those of the outputs",
    ),
)

TAKES = {"quantize": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
