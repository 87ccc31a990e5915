"""The command ``python -m ingot_runtime``, and its verbs ``run``, ``identify``, ``inspect``.

In: arguments. Out: text, files, an exit code: 0 ok, 1 user error, 4 verification failed, 5
incompatible. Not done here: checking and running (``loader``, ``executor``), other verbs (``ship_command``). Errors are four lines
on stderr, never a traceback; with ``--json`` also an object on stdout.
"""

import argparse
import sys
import time

from . import __version__
from .errors import BundleError, InputError, ResourceError
from .json_output import array_values, error_values, json_line
from .option_values import shape_options, size_bytes
from .printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np

    from .executor.session import Session, TensorSpec

_PROGRAM = "python -m ingot_runtime"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> "object":  # type: ignore[override]
        raise InputError(message, "command line", self.format_usage().strip(), f"{_PROGRAM} --help")


def main(arguments: "list[str]") -> int:
    """Run one command; return its exit code."""
    try:
        options = _parser().parse_args(arguments)
        return int(options.verb(options))
    except BundleError as error:
        return _fail(error, arguments)
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    except MemoryError:
        why = "the system refused it"
        refusal = ResourceError("out of memory", "this machine", why, "free memory")
        return _fail(refusal, arguments)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter's own flush at exit must not complain either.
        sys.stdout = sys.stderr
        return 0


def _fail(error: BundleError, arguments: "list[str]") -> int:
    print(render(error), file=sys.stderr)
    if "--json" in arguments:
        print(json_line({"error": error_values(error)}))
    return error.exit_code


def render(error: BundleError) -> str:
    """Return the four lines of an error."""
    return f"error: {error}"


def _print_lines(*lines: str) -> None:
    """Print each text as one line, whatever names are in it."""
    print("\n".join(map(printable, lines)))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_PROGRAM, description="Run Ingot bundles.")
    parser.add_argument("--version", action="version", version=f"ingot-runtime {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB", parser_class=_Parser)
    for name, (verb, text, arguments) in _VERBS.items():
        chosen = verbs.add_parser(name, help=text)
        chosen.set_defaults(verb=verb, verb_name=name)
        for argument, settings in arguments.items():
            chosen.add_argument(*argument.split(), **settings)
    return parser


def _run(options: argparse.Namespace) -> int:
    started = time.perf_counter()
    session = _load(options)
    loaded = time.perf_counter()
    if options.inputs is None:
        inputs = _zeros(session.inputs, _shapes(options.shape, session.inputs))
    else:
        inputs = _read_inputs(options.inputs, options.shape)
    has_values = session.loaded.plan.values is not None
    if has_values:
        from .executor.values import of_arrays

        inputs = of_arrays(session, inputs)
    called = time.perf_counter()
    outputs = session.run(inputs, options.timeout)
    seconds = {"load_seconds": loaded - started, "run_seconds": time.perf_counter() - called}
    dtypes = {spec.name: spec.element for spec in session.outputs}
    if has_values:
        from .executor.values import as_arrays

        outputs, dtypes = as_arrays(session, outputs)
    if options.outputs:
        _write_outputs(options.outputs, outputs)
    if options.json:
        header = options.bundle, session.digest, session.devices
        print(json_line(run_values(*header, seconds, dtypes, outputs)))
    elif not options.outputs:
        _print_outputs(outputs)
    return 0


def _load(options: argparse.Namespace) -> "Session":
    from . import load
    from .ship_command import keys_of

    return load(
        options.bundle,
        threads=options.threads,
        devices=_devices(options.device),
        verify=options.verify,
        variant=options.variant,
        executor=options.executor,
        digest=options.digest,
        max_bytes=options.max_bytes,
        keys=keys_of(options),
    )


def run_values(
    bundle: str,
    digest: str,
    devices: "dict[str, str]",
    seconds: "dict[str, float]",
    dtypes: "dict[str, str]",
    outputs: "dict[str, np.ndarray]",
) -> "dict[str, Any]":
    """Return what ``run --json`` tells of one call; `devices`: those of ``Session``; `dtypes`: our
    names of element types."""
    described = {name: array_values(dtypes[name], array) for name, array in outputs.items()}
    header = {"bundle": bundle, "digest": digest, "devices": devices}
    return {**header, **seconds, "outputs": described}


def _print_outputs(outputs: "dict[str, np.ndarray]") -> None:
    for name, array in outputs.items():
        first = array.ravel()[:4].tolist()
        shown = [repr(it) if isinstance(it, str) else f"{it:.6g}" for it in first]
        shown += ["..."] * (array.size > 4)
        _print_lines(f"{name}: {array.dtype}{list(array.shape)} = [{', '.join(shown)}]")


def _devices(pairs: "list[str]") -> "dict[str, str]":
    devices: dict[str, str] = {}
    for pair in pairs:
        name, sign, kind = pair.partition("=")
        if not (name and sign and kind):
            why, do = "expected NAME=KIND[:ID][,target=T][,scope=S]", "e.g. --device acc=cpu:0"
            raise InputError(f"bad --device {pair!r}", "command line", why, do)
        if name in devices:
            why = f"expected one device, got {devices[name]!r} and {kind!r}"
            raise InputError(
                f"{name!r} is given twice", "option --device", why, "leave one of them out"
            )
        devices[name] = kind
    return devices


def _zeros(
    specs: "tuple[TensorSpec, ...]", given: "dict[str, tuple[int, ...]]"
) -> "dict[str, np.ndarray]":
    """Return zeros in the shapes that are given by input, else in the bundle's; what does not fit,
    the session refuses."""
    import numpy as np

    sizes = {
        dim: size
        for spec in specs
        for dim, size in zip(spec.shape, given.get(spec.name, ()), strict=False)
        if isinstance(dim, str)
    }
    arrays = {name: np.zeros(shape) for name, shape in given.items()}  # perhaps of no input
    open_specs: list[TensorSpec] = []
    for spec in specs:
        shape = given.get(spec.name) or [
            dim if isinstance(dim, int) else sizes.get(dim, -1) for dim in spec.shape
        ]
        if min(shape, default=0) < 0:
            open_specs.append(spec)
        else:
            arrays[spec.name] = np.zeros(shape, spec.dtype)
    if open_specs:
        where = ", ".join(f"input {spec.name!r}" for spec in open_specs)
        header = ", ".join(map(str, open_specs))
        has = "has a size" if len(open_specs) == 1 else "have sizes"
        options = shape_options(((spec.name, spec.shape) for spec in open_specs), sizes)
        do = f"give sizes, e.g. {options}, or --inputs F.npz"
        raise InputError("no inputs", where, f"{header} {has} that only you know", do)
    return arrays


def _shapes(pairs: "list[str]", specs: "tuple[TensorSpec, ...]") -> "dict[str, tuple[int, ...]]":
    shapes: dict[str, tuple[int, ...]] = {}
    for pair in pairs:
        name, sign, text = pair.rpartition("=")
        sizes = text.split("x") if text != "scalar" else []
        if not (name and sign and all(size.isdecimal() for size in sizes)):
            do = (
                f"e.g. {shape_options([(specs[0].name, specs[0].shape)])}"
                if specs
                else "leave it out"
            )
            why = "expected NAME=SIZES"
            raise InputError(f"bad --shape {pair!r}", "command line", why, do)
        shapes[name] = tuple(map(int, sizes))
    return shapes


def _read_inputs(path: str, shapes: "list[str]") -> "dict[str, np.ndarray]":
    from .npz import read_npz

    if shapes:
        why, do = "the arrays of the file have their shapes", "leave one of them out"
        raise InputError("inputs and shapes are given", "options --inputs, --shape", why, do)
    return read_npz(path)


def _write_outputs(path: str, outputs: "dict[str, np.ndarray]") -> None:
    """Write beside the path and rename: a file that is half written never has the name."""
    import os

    from .files import new_file
    from .npz import write_npz

    temporary = f"{path}.{os.getpid()}.part"
    # The rename would take /dev/null away from everybody.
    if os.path.exists(path) and not os.path.isfile(path):
        why = "expected a regular file or a free name"
        raise InputError(f"cannot write {path!r}", path, why, "choose another name")
    try:
        if os.path.lexists(temporary):  # of a process that had this number; or a planted link
            os.unlink(temporary)
        with open(new_file(temporary), "wb") as file:
            write_npz(file, outputs)
        os.replace(temporary, path)
    except OSError as error:
        why = error.strerror or str(error)
        do = "check the folder, its permissions and the disk"
        raise InputError(f"cannot write {path!r}", path, why, do) from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def machine() -> "dict[str, Any]":
    """Return what this machine can run: architecture, best level, features by name; its model."""
    from .loader import choose, cpu

    features, architecture = cpu.machine_features(), cpu.machine_architecture()
    level = choose.level_of(features, architecture)
    found = {"architecture": architecture, "level": level, "features": sorted(features)}
    return {**found, "processor": cpu.processor_model()}


def _identify(options: argparse.Namespace) -> int:
    found = machine()
    if options.json:
        print(json_line(found))
        return 0
    _print_lines(
        f"architecture: {found['architecture']}",
        f"best level: {found['level'] or 'none'}",
        f"features: {', '.join(found['features'])}",
        f"processor: {found['processor'] or 'unknown'}",
    )
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from .format.describe import describe_source, lines_of
    from .format.source import in_file, open_file

    try:
        source = open_file(options.bundle, options.digest)
        try:
            described = describe_source(source)
        finally:
            source.close()
    except BundleError as error:
        raise in_file(error, options.bundle) from error.__cause__
    if options.json:
        print(json_line(described))
    else:
        _print_lines(*lines_of(described))
    return 0


def _with_session(options: argparse.Namespace) -> int:
    from . import ship_command

    verb = {"selftest": ship_command.selftest, "install": ship_command.install}
    with _load(options) as session:
        return verb[options.verb_name](options, session)


def _without_session(options: argparse.Namespace) -> int:
    from . import ship_command

    verb = {"apply": ship_command.apply, "rollback": ship_command.rollback}
    return verb[options.verb_name](options)


_DIGEST: "dict[str, Any]" = {
    "metavar": "D", "help": "refuse any bundle but the one with this root digest",
}  # fmt: skip
_JSON: "dict[str, Any]" = {"action": "store_true"}
_KEYS: "dict[str, dict[str, Any]]" = {
    "--require-key": {
        "action": "append", "default": [], "metavar": "F",
        "help": "refuse a bundle that none of these public keys has signed",
    },
    "--policy": {"metavar": "F", "help": "refuse a bundle whose signatures this does not accept"},
}  # fmt: skip
_LOAD: "dict[str, dict[str, Any]]" = {
    "--threads": {"type": int, "default": 1, "metavar": "N"},
    "--device": {
        "action": "append", "default": [], "metavar": "NAME=KIND[:ID]",
        "help": "bind a virtual device",
    },
    "--executor": {"default": "aot", "metavar": "aot|vm"},
    "--verify": {"default": "full", "metavar": "full|fast|code"},
    "--variant": {"metavar": "TARGET", "help": "run this variant instead of the best"},
    "--digest": _DIGEST,
    **_KEYS,
    "--max-bytes": {
        "type": size_bytes, "metavar": "SIZE",
        "help": "most memory for workspace and outputs, e.g. 2GiB",
    },
    "--json": _JSON,
}  # fmt: skip
_RUN: "dict[str, dict[str, Any]]" = {
    "bundle": {},
    "--inputs": {"metavar": "F.npz", "help": "arrays by input name (default: zeros)"},
    "--shape": {
        "action": "append", "default": [], "metavar": "NAME=4x16",
        "help": "without --inputs: zeros of this shape",
    },
    "--outputs": {
        "metavar": "F.npz", "help": "write the outputs there; a summary is printed otherwise",
    },
    "--timeout": {
        "type": float, "metavar": "SECONDS",
        "help": "end the call, without results, after that time",
    },
    **_LOAD,
}  # fmt: skip
# Verb -> (what runs it, its help, argument -> what argparse is told of it)
_VERBS: "dict[str, tuple[Callable[[argparse.Namespace], int], str, dict[str, dict[str, Any]]]]" = {
    "run": (_run, "run a bundle once", _RUN),
    "selftest": (
        _with_session, "make the calls that a bundle holds, and compare", {"bundle": {}, **_LOAD},
    ),
    "install": (
        _with_session,
        "verify a bundle and make it the current one of a folder, whenever the power is cut",
        {
            "bundle": {},
            "--to": {"required": True, "metavar": "FOLDER"},
            "--keep": {"type": int, "default": 2, "metavar": "N", "help": "so many (default: 2)"},
            "--weights-from": {
                "metavar": "FOLDER", "help": "an installation that has the bundle with shared weights: it is linked",
            },
            "--no-selftest": {"action": "store_true", "help": "make no calls that it holds"},
            "--not-older": {
                "action": "store_true",
                "help": "refuse a bundle whose signed number is below the current one's, or missing"
                " (default where the current one has a number)",
            },
            "--allow-older": {"action": "store_true", "help": "install such a bundle all the same"},
            **_LOAD,
        },
    ),
    "rollback": (_without_session, "go back to the one before", {"folder": {}, "--json": _JSON}),
    "apply": (
        _without_session,
        "make a new bundle of an old one and what `ingot delta` wrote",
        {
            "old": {}, "delta": {}, "-o --output": {"required": True, "metavar": "NEW"},
            **_KEYS, "--json": _JSON,
        },
    ),
    "identify": (_identify, "what this machine can run", {"--json": _JSON}),
    "inspect": (
        _inspect, "what a bundle holds", {"bundle": {}, "--digest": _DIGEST, "--json": _JSON},
    ),
}  # fmt: skip
