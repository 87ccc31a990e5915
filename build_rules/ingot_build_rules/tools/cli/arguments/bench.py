"""What ``ingot bench`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.bench``)."""

from ingot_build_rules.tools.cli.shell.options import (
    BIND,
    CACHE,
    CALL_SHAPE,
    JSON,
    VARIANT,
    Argument,
    Example,
    Option,
    Takes,
)

_ARGUMENTS = (
    Argument(
        "bundle",
        "BUNDLE",
        "a bundle, or an .onnx file, which is compiled into a temporary one",
        "bundle-or-model",
    ),
)
_OPTIONS = (
    Option("--inputs", "inputs (default: numbers from a fixed seed)", "F.npz", "arrays"),
    CALL_SHAPE,
    Option("--threads", "threads that compute (default 1)", "N", "count", 1),
    Option("--seconds", "at least so long (default 2)", "S", "seconds", 2.0),
    Option(
        "--decode",
        "measure one token of a decoder behind so many (may be given several times)",
        "LENGTH",
        "count",
        repeats=True,
    ),
    Option("--roofline", "say how near each launch is to the peak of this machine"),
    Option(
        "--against",
        "time the same model on other engines, in turns: onnxruntime, openvino",
        "NAME[,NAME]",
    ),
    Option("--model", "with --against and a bundle: the model for them", "MODEL", "model"),
    Option(
        "--peer-python",
        "the interpreter that has them (default: the one that runs this)",
        "PYTHON",
        "file",
    ),
    Option("--anyway", "give the numbers, also where the machine is too noisy for any"),
    VARIANT,
    BIND,
    Option("--top", "kernels to list (default 15)", "N", "count", 15),
    Option(
        "--target", "with a model: the target to compile it for (default: native)", "T", "target"
    ),
    *CACHE,
    JSON,
)
_EXAMPLES = (
    Example("ingot bench model.ingot", "time per call, and per kernel"),
    Example("ingot bench model.ingot --threads 2 --seconds 10", "longer, with two threads"),
    Example("ingot bench decoder.ingot --decode 128 --decode 4096", "a token behind so many"),
    Example("ingot bench model.ingot --roofline", "each launch beside the machine's peak"),
    Example("ingot bench model.onnx --against onnxruntime,openvino", "beside other engines"),
    Example("ingot bench model.onnx --target x86-64-v3", "a model, compiled for the moment"),
)

TAKES = {"bench": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
