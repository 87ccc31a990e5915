"""What ``ingot export`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.export``)."""

from ingot_build_rules.cli.options import CACHE, JSON, Argument, Example, Option

ARGUMENTS = (
    Argument(
        "bundle",
        "BUNDLE",
        "an .ingot file; with --c-source or --wasm a model, as `ingot compile` takes it",
        "bundle",
    ),
)
OPTIONS = (
    Option("--executable", "a program of one file for Linux, which needs no Python and no library"),
    Option("--library", "a library to link, and its header, which need no libc and no memory"),
    Option(
        "--module-archive", "a tar in the Model Library Format: objects, their C, headers, metadata"
    ),
    Option(
        "--c-source",
        "the model as C99: structs with its names, its kernels, its weights; any compiler takes it",
    ),
    Option("--wasm", "the model as WebAssembly with SIMD, and an ES module that loads it"),
    Option(
        "-o --output",
        "the file to write; of --library, --c-source and --wasm the folder",
        "PATH",
        "file",
        required=True,
    ),
    Option(
        "--dynamic",
        "an executable that is linked with the machine's glibc, for bundles with devices beside the host",
    ),
    Option("--shared", "a library that is loaded when the program starts (default: a static one)"),
    Option("--name", "what the model is called in C (default: as the bundle's file)", "NAME"),
    Option("--variant", "the one to export (default: the only one)", "TARGET"),
    Option(
        "--pool",
        "who gives the memory of a pool: caller, or internal for a section of the library; perhaps at most so large",
        "POOL=PLACE[,SIZE]",
        "pair",
        repeats=True,
    ),
    Option("--tensors-in", "the pool that inputs and outputs lie in", "POOL"),
    Option("--also", "another model in the archive", "BUNDLE", "bundle", repeats=True),
    Option(
        "--shape",
        "the shape of an input whose sizes are open (all but --executable)",
        "NAME=1x3x224x224",
        "shape",
        repeats=True,
    ),
    Option(
        "--target",
        "of --c-source: c (default), c-small (microcontrollers, the least code) and c-wide (Clang "
        "on hosts) have numbers alone, c-128 and c-256 vectors of so many bits, which GCC and Clang know",
        "FORM",
        choices=("c", "c-small", "c-wide", "c-128", "c-256"),
    ),
    Option("--weights-apart", "of --c-source: weights in a file, which the program gives"),
    *CACHE,
    JSON,
)
EXAMPLES = (
    Example(
        "ingot export model.ingot --executable -o model",
        "a program: `./model --inputs x.npz --outputs y.npz`",
    ),
    Example(
        "ingot export model.ingot --executable --dynamic -o model",
        "a program that opens the drivers of the machine: OpenCL's, NVIDIA's",
    ),
    Example(
        "ingot export model.ingot --library -o build", "`build/libmodel.a` and `build/model.h`"
    ),
    Example(
        "ingot export model.ingot --module-archive -o model.tar",
        "for tools that read the Model Library Format",
    ),
    Example(
        "ingot export model.onnx --c-source --shape x=1x3x96x96 -o build",
        "`build/model.c` and `build/model.h`; prints how much RAM and flash they take",
    ),
    Example("ingot export model.onnx --wasm -o build", "`build/model.mjs`, for pages and for node"),
)
