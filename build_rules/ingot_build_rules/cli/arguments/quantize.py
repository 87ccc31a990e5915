"""What ``ingot quantize`` takes, and examples of it. In: nothing. Out: data. Not done here: the
verb (``cli.quantize``)."""

from ingot_build_rules.cli.options import JSON, Argument, Example, Option

ARGUMENTS = (Argument("model", "MODEL", "an .onnx file, external data beside it", "model"),)
OPTIONS = (
    Option(
        "--weights",
        "what the weights of products become",
        choices=("int8", "int4"),
        required=True,
    ),
    Option("--block", "numbers along the depth that share a scale (default 32)", "N", default="32"),
    Option(
        "--calibrate",
        "inputs by name: choose scales by what the layers multiply, and measure the outputs",
        "F.npz",
        "arrays",
    ),
    Option(
        "-o --output",
        "the model to write (default: the model's name with .int4.onnx or .int8.onnx, in this folder)",
        "OUT.onnx",
        "model",
    ),
    JSON,
)
EXAMPLES = (
    Example("ingot quantize model.onnx --weights int4", "model.int4.onnx, the error of each layer"),
    Example(
        "ingot quantize model.onnx --weights int4 --calibrate x.npz",
        "smaller errors where it matters, and those of the outputs",
    ),
)
