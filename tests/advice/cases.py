"""Commands that fail, and what their errors advise.

In: nothing. Out: ``CASES``; ``NOT_RUN``: advice that names a command and that no case ends in, with the
reason. Not done here: running them (``test_advice``), the files (``folder``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A command and the ``do:`` of its error. ``values``: what the reader puts in the place of words;
    ``lines``: what [bundle.b] of the project says; ``before``: commands that succeed first."""

    command: str
    do: str
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    lines: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


_HELP = "see ingot compile --help"
_OPEN = "--shape a=4x3 --shape b=4x3 --shape c=4x2x2x4"
_FILE = {"F.npz": "two.npz"}
_BUNDLE = "run it (`ingot run one.ingot`), or see what is in it (`ingot inspect one.ingot`)"
_OP = "define them: --op mine::Twice=FILE{}, a file with a function for each; or export without these nodes or element types, or with another opset; CONTRIBUTING tells how to add an op"
_TWICE = {"FILE": "twice.ingot-text"}
_TUNE = {"MODEL": "--help"}
_NAMED = {"NAME=1x3x224x224": "x=4"}
_COMPILE = (
    Case("ingot compile one.onnx -o - --json", "give -o a file", {"a file": "out/m.ingot"}),
    Case("ingot compile one.onnx --to graph --check", "leave --to or --check out"),
    Case("ingot compile one.onnx --to graph --selftest 2", "leave --selftest out"),
    Case("ingot compile one.onnx --graph q", "leave --graph out"),
    Case("ingot compile one.onnx --weights one.npz", "leave --weights out"),
    Case("ingot compile loops.txt --from loops --strict-dims --to loops", "leave --strict-dims out"),
    Case("ingot compile placed.txt --from placed --device acc=null", "leave --device out"),
    Case("ingot compile placed.txt --from placed --fallback warn", "leave --fallback out"),
    Case("ingot compile graph.txt --from graph --shape x=2x3", "leave --shape out"),
    Case("ingot compile one.onnx --to graph --depfile d", "add -o OUT.ingot"),
    Case("ingot compile one.onnx --to placed --place *=acc", "declare it with --device acc=KIND", {"KIND": "null"}),
    Case("ingot compile one.onnx --to placed --place rel=host", "did you mean 'relu'?"),
    Case("ingot compile one.onnx --to placed --place zzzzzz=host", "leave it out, and --to imported gives the names of all nodes"),
    Case("ingot compile net.onnx --device acc=null --place *=acc --to placed", "leave it on the host: --place choose=host, behind that, or give --fallback warn"),
    Case("ingot compile two.onnx --to graph --shape a=4", "the model declares 'a' as [n, 3]: write --shape a=?x3, a size for each ?"),
    Case("ingot compile scalar.onnx --to graph --shape x=3", "the model declares 'x' as []: write --shape x=scalar"),
    Case("ingot compile two.onnx --to graph --shape aa=4x3", "did you mean 'a'?"),
    Case("ingot compile two.onnx --to graph --other-shapes refuse", "give --shape NAME=1x3x224x224", {"NAME=1x3x224x224": "a=4x3"}),
    Case("ingot compile unset.onnx --to graph", "give --shape x=1x3x224x224"),
    Case("ingot compile one.onnx --to graph --target null", "leave it out, and declare a device: --device NAME=null", {"NAME": "acc"}),
    Case("ingot compile one.onnx --to graph --target x86-64-v5", "did you mean 'x86-64-v4'?"),
    Case("ingot compile one.ingot", _BUNDLE),
    Case("ingot compile one.onnx --planner greedy --to graph", "did you mean 'greedy_by_size'?"),
    Case("ingot compile one.onnx --tuning one.npz --to graph", "write it anew: `ingot tune MODEL`", _TUNE),
    Case("ingot compile one.onnx --tuning foreign.tune --to graph", "leave it out, or measure on such a machine: `ingot tune MODEL`", _TUNE),
    Case("ingot compile one.onnx --tuning nodes.tune --target x86-64-v3", "write the file anew: `ingot tune MODEL`", _TUNE),
    Case("ingot compile one.onnx --device acc=nul --to graph", "did you mean 'null'?"),
    Case("ingot compile matrix.onnx --max-bytes 1 --target x86-64-v3", "allow more by --max-bytes, or make the model smaller", {"--max-bytes": "--max-bytes 1GB"}),
    Case("ingot compile two.onnx --pool fast=200kB -o out/q.ingot", "give the sizes of inputs by --shape NAME=1x3x224x224 --other-shapes refuse, or leave --pool out", {"NAME=1x3x224x224": "c=4x2x2x4"}),
    Case("ingot compile mine.onnx --to graph", _OP.format(""), _TWICE),
    Case("ingot compile graphs", "name one (--graph one), or compile all into a folder (-o DIR)", {"DIR": "out"}),
    Case("ingot compile constants.txt --from graph -o out/q.ingot", "give the weights with --weights FILE.npz", {"FILE.npz": "constants.npz"}),
    Case("ingot compile constants.txt --from graph --weights one.npz -o out/q.ingot", "write it: `ingot compile MODEL --to graph --weights FILE.npz`", {"MODEL": "matrix.onnx", "FILE.npz": "out/w.npz"}),
    Case("ingot compile one.onnx --check one.npz --target aarch64", "check on such a machine, or leave --check out"),
    Case("ingot compile one.onnx --to graph --cache shared", "close it (chmod go-w {folder}/shared), name another cache (--cache DIR), or say that you trust all who can write to it (--cache-shared)", {"DIR": "out/cache"}),
)  # fmt: skip
_WORDS = (
    Case("ingot compile one.onnx --gpu-arch sm_90 --to graph", "say it of a device, and place nodes there: --device gpu=cuda,target=sm_90 --place '*=gpu'"),
    Case("ingot run one.ingot --gpu-arch sm_90", "see ingot run --help"),
    Case("ingot compile one.onnx -O2 --to graph", "did you mean '--optimize speed'?"),
    Case("ingot compile one.onnx -Os --to graph", "did you mean '--optimize size'?"),
    Case("ingot compile one.onnx -O0 --to graph", "leave it out: no code is made without optimising it"),
    Case("ingot compile one.onnx --no-cache --to graph", "name a new folder with --cache DIR: nothing is found in it", {"DIR": "out/cache"}),
    Case("ingot compile one.onnx --force --to graph", "leave it out: the result replaces a file that is there already"),
    Case("ingot compile one.onnx --bogus", _HELP),
    Case("ingot compile one.onnx --outpt out/x.txt --to graph", "did you mean '--output'?"),
    Case("ingot build -C project -O2", "say it in ingot.toml: `optimize` of a [bundle.NAME], or --config bundle.NAME.optimize=...", {"NAME": "b", "...": "size"}),
    Case("ingot build -C project --devices acc=null", "say it in ingot.toml: `devices.NAME` of a [bundle.NAME], or --config bundle.NAME.devices.NAME=...", {"bundle.NAME": "bundle.b", "NAME": "acc", "...": "null"}),
    Case("ingot run one.ingot --to graph", "`ingot compile` takes --to; see ingot run --help"),
    Case("ingot compilr one.onnx", "did you mean 'ingot compile'?"),
    Case("ingot --bogus", "options follow the verb: see ingot --help"),
    Case("ingot q", "see ingot --help"),
    Case("ingot compile one.onnx more", _HELP),
    Case("ingot compile one.onnx --to grap", "did you mean 'graph'?"),
    Case("ingot compile one.onnx --jobs 0", _HELP),
)  # fmt: skip
_CALLS = (
    Case("ingot run one.onnx", "compile it first: `ingot compile one.onnx`"),
    Case("ingot run two.ingot --shape a=4", "write --shape a=4x3"),
    Case("ingot run two.ingot --shape aa=4x3", "did you mean 'a'?"),
    Case("ingot run two.ingot --shape a=4x3 --shape a=5x3", "leave one of them out"),
    Case("ingot run two.ingot", f"give sizes, such as {_OPEN}, or the arrays with --inputs F.npz", _FILE),
    Case("ingot run two.ingot --inputs two.npz --shape a=4x3", "leave one of them out"),
    Case("ingot run picky.ingot --shape x=3 --shape z=4", "give other sizes of 'x', 'z', or other values: --inputs F.npz gives real ones, and without it they are made up", _FILE),
    Case("ingot bench two.ingot --decode 2 --shape a=4x3", "leave --inputs and --shape out"),
    Case("ingot bench two.ingot --model two.onnx", "leave --model out, or add --against onnxruntime"),
    Case("ingot bench one.onnx --against onnxruntime --model two.onnx", "leave --model out"),
    Case("ingot bench one.ingot --against onnxruntime", "name it: --model FILE.onnx", {"FILE.onnx": "one.onnx"}),
    Case("ingot bench one.ingot --target x86-64-v4", "leave --target out; `ingot inspect one.ingot` lists its variants"),
    Case("ingot inspect one.ingot --asm zz", "`ingot inspect one.ingot` lists the kernels with their nodes"),
    Case("ingot inspect bare.ingot --asm k_", "compile the model again, without --strip: `ingot compile MODEL`", {"MODEL": "one.onnx"}),
    Case("ingot why-device placed.ingot zz", "`ingot inspect placed.ingot` lists the nodes"),
    Case("ingot why-device placed.ingot rel", "did you mean 'relu'?"),
    Case("ingot verify one.ingot --digest 00", "`ingot inspect BUNDLE` prints the root digest", {"BUNDLE": "one.ingot"}),
    Case("ingot reproduce one.ingot --source none", "name another one: --source FOLDER", {"FOLDER": "."}),
    Case("ingot reproduce one.ingot --source empty", "name its folder: --source FOLDER", {"FOLDER": "."}),
    Case("ingot sign one.ingot", "ingot sign --help"),
    Case("ingot sign one.ingot --certificates c --key k", "add --sigstore"),
)  # fmt: skip
_EXPORTS = (
    Case("ingot export two.ingot --library -o out", f"choose them, such as {_OPEN}"),
    Case("ingot export two.onnx --c-source -o out", f"give sizes, such as {_OPEN}"),
    Case("ingot export two.ingot --library --shape aa=4x3 -o out", "did you mean 'a'?"),
    Case("ingot export two.ingot --library --shape a=4 -o out", "write --shape a=4x3"),
    Case("ingot export two.ingot --library --shape a=2x3 --shape b=3x3 --shape c=1x2x2x1 -o out", "write --shape b=2x3"),
    Case("ingot export picky.ingot --library -o out --shape x=3 --shape z=4", "choose others: --shape NAME=1x3x224x224", _NAMED),
    Case("ingot export one.ingot --library -o out --name 3x", "--name _3x"),
    Case("ingot export one.ingot --library -o out --dynamic", "leave it out"),
    Case("ingot export one.ingot --library --wasm -o out", "leave --library out or leave --wasm out"),
    Case("ingot export one.ingot -o out/one", "give one, such as --executable"),
    Case("ingot export both.ingot --library -o out", "--variant x86-64-v2"),
    Case("ingot export placed.ingot --executable -o out/x", "make it a dynamic one: --dynamic"),
    Case("ingot export mine.onnx --c-source -o out", _OP.format(" (of ingot compile)"), _TWICE),
    Case("ingot quantize one.onnx -o q.onnx", "add --weights int8, or --calibrate F.npz", {"F.npz": "one.npz"}),
    Case("ingot quantize one.onnx --weights int8 --ranges mse", "leave --ranges out"),
    Case("ingot quantize matrix.onnx --weights int8 --block 31", "try --block 32"),
    Case("ingot quantize one.onnx --calibrate one.npz", "compile the model as it is: `ingot compile one.onnx`"),
    Case("ingot quantize one.onnx --weights int8", "compile the model as it is: `ingot compile one.onnx`"),
)  # fmt: skip
_PROJECTS = (
    Case("ingot build -C empty", "write one for the models here with `ingot init`, or name its folder with -C DIR", {"DIR": "project"}),
    Case("ingot init project", "edit it (docs/project-file.md), or replace it with --force"),
    Case("ingot build -C project --json --events -", "give --events a file", {"a file": "out/events"}),
    Case("ingot build -C project --expect-cached --cache fresh", "see why with `ingot why TARGET`, or build without --expect-cached", {"ingot why TARGET": "ingot why -C project b"}),
    Case("ingot build -C project --frozen", "build without --frozen to accept it, which writes the lock file anew", lines=('planner = "best_fit"',), before=("ingot build -C project",)),
    Case("ingot build -C outside", "choose places inside, or allow these, if you trust the project with them (--allow-outside)"),
    Case("ingot build -C project --config bundle.b.fallbak=warn", "did you mean bundle.b.fallback?"),
    Case("ingot build -C project --config nothing", "write for example: --config bundle.a.planner=best", {"bundle.a": "bundle.b"}),
    Case("ingot build -C project", "the model declares 'a' as [n, 3]: write shape.a = \"?x3\", a size for each ?", lines=('shape.a = "4"',)),
    Case("ingot build -C project", 'leave it on the host: place.choose = "host", behind that, or give fallback = "warn"', lines=('devices.acc = "null"', 'place."*" = "acc"')),
    Case("ingot build -C project", 'write for example: planner = "best"', lines=('planner = "gredy"',)),
    Case("ingot cache why", "see ingot cache --help"),
    Case("ingot cache stat --max 3", "leave it out"),
    Case("ingot cache verify --cache none", "build something first, or name another folder (--cache DIR)", {"DIR": "other"}, before=("ingot build -C project --cache other",)),
    Case("ingot cache why abcdef01", "it was never made, or has been collected; `ingot cache stat` counts what is there"),
    Case("ingot man compile -o out", "leave -o out, or the verb"),
)  # fmt: skip
_DEVICE = (
    Case("python -m ingot_runtime run two.ingot", f"give sizes, e.g. {_OPEN}, or --inputs F.npz", _FILE),
    Case("python -m ingot_runtime rum", "python -m ingot_runtime --help"),
    Case("python -m ingot_runtime run placed.ingot --device acc", "e.g. --device acc=cpu:0"),
    Case("python -m ingot_runtime run one.ingot --device acc=cpu:0", "leave it out"),
    Case("python -m ingot_runtime run one.ingot --device host=cpu:0", "leave it out, or write host=host"),
    Case("python -m ingot_runtime run placed.ingot --device acc=cpu:0 --device acc=cpu:1", "leave one of them out"),
    Case("python -m ingot_runtime run null.ingot --device acc=opencl:0", "map it: --device acc=cpu:0"),
    Case("python -m ingot_runtime run null.ingot --device acc=null:9999", "map it: --device acc=null:0"),
    Case("python -m ingot_runtime run one.ingot --shape x=b", "e.g. --shape x=2x3"),
    Case("python -m ingot_runtime run one.ingot --variant x86-64-v4", "did you mean 'x86-64-v3'?"),
    Case("python -m ingot_runtime run one.ingot --digest 00", "`ingot inspect BUNDLE` prints the root digest", {"BUNDLE": "one.ingot"}),
    Case("python -m ingot_runtime selftest one.ingot", "`ingot compile MODEL --selftest N` keeps some in it", {"MODEL": "one.onnx", "N": "2"}),
    Case("python -m ingot_runtime run foreign.ingot", "`ingot compile MODEL --target {level}` makes one", {"MODEL": "one.onnx"}),
    Case("python -m ingot_runtime run one.ingot --inputs one.npz --shape x=2x3", "leave one of them out"),
)  # fmt: skip
CASES = (*_COMPILE, *_WORDS, *_CALLS, *_EXPORTS, *_PROJECTS, *_DEVICE)

_NAMES = "it names what wrote a file, and no command"
_MEMORY = "nothing here takes the memory of a machine, or kills a worker"
_BUG = "it is told of a bug of ours"
_PLUGINS = "tests/unit/test_plugin_errors.py and test_reproduce.py provoke it with plug-ins"
_PROGRAMS = "tests/unit/test_configuration.py provokes it with programs, whose text is edited"
_SHIPPED = (
    "tests/unit/test_install_shared.py and test_thin_shared.py provoke it with bundles that share"
)
_API = "it is about arguments of Python"
_SIGNED = "tests/unit/test_sign_sigstore.py and test_signatures.py provoke it with keys"
_QUANTISED = "tests/unit/test_quantize_static.py provokes it with a model of its own"
NOT_RUN: dict[str, str] = {
    "name another folder for the cache, or use this one for reading alone (--read-only)": "root writes to every folder",
    "check the cache first (ingot cache verify)": "tests/unit/test_store_collect.py damages an index",
    "repeat it when the build is done, or wait for it (--wait SECONDS)": "it needs two commands at a time",
    "name another cache (--cache DIR), or say that you trust all who can write to it (--cache-shared)": "another user has to own it",
    "remove the link, or name the folder behind it as the cache (--cache DIR)": "another user has to own it",
    "make its folder writable for you, name another one by XDG_STATE_HOME, or share the cache (--cache-shared)": "root writes to every folder",
    "run `ingot cache verify`, or choose another --cache": "tests/hostile damages a cache while it is used",
    "give inputs: --check INPUTS.npz": "generated inputs fit the models here",
    "leave --against out": "it needs another engine",
    "end what else runs here, measure longer (--seconds), or add --anyway": "it needs another engine on a busy machine",
    "repeat it with --debug and {}": _BUG,
    "repeat it with --debug and report it": _BUG,
    "this is a bug in ingot: please report it together with the output of `ingot compile --to {}`": _BUG,
    "export a model to ONNX, or name another folder: ingot init FOLDER": "the folder has to be another one",
    "leave its reader in floats (--keep)": _QUANTISED,
    "leave the file out, or the node that reads the tensor in floats (--keep)": _QUANTISED,
    "repair the weights, or leave their node in floats (--keep)": _QUANTISED,
    "leave out --no-run": "it is a part of a report",
    "name the lowest one that has to run it; several of --target are for the host": "a target is a text with its own commas",
    "give a file that --to wrote": _NAMES,
    "compare with --to loops": _NAMES,
    "give a file made by `ingot compile`": _NAMES,
    "write it by `ingot sign`": _NAMES,
    "get the file from who signs it, or sign it by `ingot sign`": _NAMES,
    "compile it first: `ingot compile {}`, and compile that": "it ends in the same command as another",
    "export it again: optimum-cli export onnx --model NAME FOLDER": "it is a command of another project",
    "--plugin MODULE:TARGET": _PLUGINS,
    "--plugin {}": _PLUGINS,
    "if you trust it, name it: --plugin {}": _PLUGINS,
    "free memory, or use fewer processes (-j 1)": _MEMORY,
    "if memory is short, use fewer processes (-j 1); else report it": _MEMORY,
    "use fewer processes (-j 1), or check the machine's limits": _MEMORY,
    "--pool {}=caller": "tests/unit/test_library_export.py provokes it with a model of its own",
    "leave them out; --place puts nodes on devices": "the text of an op is edited",
    "take the bundle that `ingot share` was given, which has all of its weights": _SHIPPED,
    "make both thin that `ingot share` was given, and share then": _SHIPPED,
    "`ingot share` with a bundle of another name": _SHIPPED,
    "install into a folder of its own, or `ingot share` with a bundle of another name": _SHIPPED,
    "install with --keep 2 or more": _SHIPPED,
    "sign it beside: --detached": _SIGNED,
    "put the certificate of --key first, and behind it those that lead to the root": _SIGNED,
    "write the tuning file anew: `ingot tune MODEL`": "tests/unit/test_tune.py provokes it with a model of its own",
    "declare it: --device {}=KIND": _PROGRAMS,
    "declare one: --device NAME={}": _PROGRAMS,
    "leave it on the host, or give --fallback warn": "where a glob counts, the error names it",
    "leave it out: bind() makes aligned arrays, see .inputs and .outputs": _API,
    "leave it out, or use session.run": _API,
    "update ingot-runtime, or compile the bundle with the ingot of this loader's version": "it needs another version",
    "this machine is below every level that ingot compiles for": "it needs another machine",
    "compile for it: --device {}=cuda,target=sm_{}{}, if there is code for it": "it needs a GPU",
    "map it: --device {}=opencl:0": "it needs a driver with fewer devices",
    "map it: --device {}=opencl:{}": "tests/unit/test_opencl_drivers.py provokes it with a driver of its own",
}
"""Advice with a command in it -> why no case ends in it."""
