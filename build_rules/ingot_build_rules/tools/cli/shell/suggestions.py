"""What an unknown option or verb probably stands for: by its meaning in other tools, else by its
spelling.

In: an unknown word, what there is. Out: a sentence that says what to do. Not done here: errors.
Imported when something went wrong.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from ingot_build_rules.making.options.option_rows import FIELDS, ROWS, spelling
from ingot_build_rules.tools.cli.shell.in_words_of_verb import written_key
from ingot_build_rules.tools.cli.shell.verbs import VERBS, Verb, read_verb

OPTION_MEANINGS: Mapping[str, str] = {
    **{
        f"--{spelling(field)} {value}".rstrip(): words
        for field, row in ROWS.items()
        for value, words in row.elsewhere.items()
    },
    "--output": "--out --outfile --output-file --output-path --save --dest --to-file",
    "--outputs": "--output --out -o --outfile --save --save-outputs",
    "--inputs": "--input --in -i --feed --data --load-inputs --args",
    "--threads": "--cores --num-threads --intra-op-threads --cpus -t -j --jobs",
    "--jobs": "--parallel --threads --cores --processes --num-workers --workers -p -t",
    "--seconds": "--time --duration --iterations --iters --repeat --runs --warmup --warm-up -n",
    "--folder": "--dir --directory --cd --chdir --root --project -d -f --file --path",
    "--dry-run": "--just-print --pretend --what-if --simulate",
    "--keep-going": "--continue --no-fail-fast",
    "--explain": "--why --reason --verbose -v -vv -d",
    "--debug": "--traceback --backtrace --verbose -v -vv",
    "--quiet": "--silent -s --no-progress",
    "--rehash": "--force -f -B --always-make --checksum",
    "--frozen": "--locked --offline --lock",
    "--json": "--format --output-format --machine-readable",
    "--to": "--emit --stage --stop-after --dump --dump-ir --print-ir --compile-to --mlir --ir -S",
    "--from": "--input-type --compile-from --stage",
    "--check": "--verify --validate --test --compare",
    "--max-bytes": "--memory --max-memory --memory-limit --workspace --memPoolSize --max-workspace",
    "--asm": "--assembly --disassemble --dump-asm -S -d",
    "--fusion": "--fused --groups --ops",
    "--cache": "--cache-dir --cache-folder --cachedir",
    "--depfile": "--deps --dep-file -MF -MD -MMD --emit-deps",
    "--digest": "--sha256 --checksum --hash",
    "--source": "--src --model --folder --from",
    "--against": "--compare --with --diff --base",
    "--variant": "--target --arch --cpu",
    "--once": "--one-shot --single",
}
"""Option -> what the same is called elsewhere."""
VERB_MEANINGS: Mapping[str, str] = {
    "build": "make all test tests check-all ninja",
    "compile": "convert cc translate iree-compile onnx trtexec",
    "init": "new create start setup",
    "quantize": "quantise quant compress",
    "run": "exec execute infer predict call",
    "bench": "benchmark profile time perf measure speed",
    "inspect": "show info dump describe objdump readelf print cat list ls",
    "report": "html page plot view visualize visualise netron",
    "diff": "compare cmp",
    "verify": "check validate fsck checksum",
    "reproduce": "rebuild repeat repro",
    "why": "explain reason",
    "identify": "cpu machine features targets devices probe host",
    "cache": "gc prune store",
    "clean": "rm remove clear delete distclean",
    "watch": "serve monitor",
    "query": "graph deps dot tree",
    "log": "history trace",
    "completion": "completions complete shell",
    "man": "manual docs doc",
}
NOTHING_LIKE_IT: Mapping[str, str] = {
    "--quantize --quantise --quantization --int8 --int4 --uint8 --calibration": (
        "there is none: Ingot compiles a model in the precision that it has. Quantize it before, "
        "with ingot quantize or another tool, and compile the result"
    ),
    "--fp16 --half --float16 --dtype": (
        "there is none: Ingot compiles a model in the element types that it has. Convert it before"
    ),
    "-O0": "leave it out: no code is made without optimising it",
    "--opset --opset-version": "there is none: the model says which opset it uses",
    "--no-cache --disable-cache": ("name a new folder with --cache DIR: nothing is found in it"),
    "--config-file --makefile": "there is none: the project's file is called ingot.toml",
    "-I -L -l --include --link": "there is none: a bundle needs no headers and no libraries",
    "--upload --push --publish push publish upload deploy": (
        "there is none: a bundle is one file, which any tool can copy"
    ),
    "train fit finetune": "there is none: Ingot compiles models that are trained",
    "install update upgrade": (
        "there is none: pip installs Ingot, and `python -m ingot_runtime install` a bundle"
    ),
    "--gpu-arch --sm --compute-capability": (
        "say it of a device, and place nodes there: --device gpu=cuda,target=sm_90 --place '*=gpu'"
    ),
}
"""Words -> why there is nothing like it."""
_SAME_SPELLING = 0.75
_OPTION = re.compile(r"(?<![\w-])--[a-z-]+")


def suggest_option(word: str, verb: Verb) -> str:
    """Say what an unknown option of a verb probably means."""
    has = {name for option in verb.options for name in option.names.split()} | {"--help"}
    meanings = _meaning(word, OPTION_MEANINGS)
    by_meaning = [option for option in meanings if option.split()[0] in has]
    long_names = sorted(name for name in has if name.startswith("--"))
    near = difflib.get_close_matches(word, long_names, n=1, cutoff=_SAME_SPELLING)
    if (reason := _reason(word)) and {*_OPTION.findall(reason)} <= has:
        return reason
    if not by_meaning and "--config" in has and (key := _project_key(word)):
        return (
            f"say it in ingot.toml: `{key}` of a [bundle.NAME], or --config bundle.NAME.{key}=..."
        )
    # `--outpt` is nearer to `--output` than anything that a table could know.
    if choice := (by_meaning or near):
        return f"did you mean {choice[0]!r}?"
    if word == "--force" and has & {"--output", "--outputs"}:
        return "leave it out: the result replaces a file that is there already"
    others = [name for name, _ in VERBS if _takes(name, word)]
    if others:
        return f"`ingot {others[0]}` takes {word}; see ingot {verb.name} --help"
    return f"see ingot {verb.name} --help"


def suggest_verb(word: str) -> str:
    """Say what an unknown verb probably means."""
    names = [name for name, _ in VERBS]
    if word.startswith("-"):
        return _reason(word) or "options follow the verb: see ingot --help"
    near = difflib.get_close_matches(word, names, n=1, cutoff=_SAME_SPELLING)
    choice = near or _meaning(word, VERB_MEANINGS) or difflib.get_close_matches(word, names, n=1)
    if reason := _reason(word):
        return reason
    return f"did you mean 'ingot {choice[0]}'?" if choice else "see ingot --help"


def _meaning(word: str, table: Mapping[str, str]) -> list[str]:
    return [name for name, others in table.items() if word in others.split()]


def _project_key(word: str) -> str:
    """The key of a bundle in a project that says what an option of ``compile`` does."""
    options = [
        name.split()[0].removeprefix("--") for name in (word, *_meaning(word, OPTION_MEANINGS))
    ]
    return next((written_key(FIELDS[option]) for option in options if option in FIELDS), "")


def _reason(word: str) -> str:
    return next((reason for words, reason in NOTHING_LIKE_IT.items() if word in words.split()), "")


def _takes(name: str, word: str) -> bool:
    return any(word in option.names.split() for option in read_verb(name).options)
