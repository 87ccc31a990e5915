"""Command: ``python tests/bundle_bytes.py > before.txt``: a digest of every bundle of the model
corpus, so that a change that must not change code can be compared with the state before it.

In: models, and seeds of the fuzzer. Out: one line ``DIGEST MODEL FORM`` each, sorted; a refusal is
digested by its text. Not done here: comparing (``diff``), running (``tests/fuzz``, ``tests/models``).
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [
    os.path.join(ROOT, part) for part in ("", "build_rules", "compiler", "artifacts", "runtime")
]

from tests.conformance.run_case import compile_quickly  # noqa: E402
from tests.conformance.workers import Result, run_forked  # noqa: E402
from tests.fuzz.generate import generate  # noqa: E402
from tests.fuzz.program import to_model  # noqa: E402

from ingot_artifacts.inspect.describe import describe_bundle  # noqa: E402
from ingot_build_rules.tools.cli.main import main as ingot  # noqa: E402
from ingot_compiler.ir.errors import UnsupportedError  # noqa: E402
from ingot_runtime.ingot_error import IngotError  # noqa: E402

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
DEVICES = ("opencl", "cuda,target=sm_80")
EXPORTS = ("c", "c-small", "c-128", "wasm")
BATCH = 8  # programs of the fuzzer in one bundle
LIMIT_SECONDS = 1800.0


def _digest(model: str, form: str) -> str:
    with tempfile.TemporaryDirectory(prefix="ingot-bytes-") as folder:
        try:
            if form in EXPORTS:
                return _digest_of_export(model, form, folder)
            path = os.path.join(folder, "m.ingot")
            content = _content(model)
            if form in TARGETS:
                compile_quickly(content, path, (form,))
            else:
                compile_quickly(content, path, device=form)
            return _digest_of_bundle(path)
        except (UnsupportedError, IngotError) as error:
            return _refusal(str(error), folder)


def _digest_of_bundle(path: str) -> str:
    """Of all sections but the lock, which has the digests of the stages: their forms may change."""
    sections = describe_bundle(path)["sections"]
    kept = [section for section in sections if section["kind"] != "lock"]
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _refusal(text: str, folder: str) -> str:
    return "refused-" + hashlib.sha256(text.replace(folder, "").encode()).hexdigest()


def _content(model: str) -> bytes:
    if not model.startswith("seed:"):
        with open(model, "rb") as file:
            return file.read()
    first = int(model.removeprefix("seed:"))
    programs = [generate(seed) for seed in range(first, first + BATCH)]
    return bytes(to_model(programs).SerializeToString())


def _digest_of_export(model: str, form: str, folder: str) -> str:
    source, out = os.path.join(folder, "m.onnx"), os.path.join(folder, "out")
    with open(source, "wb") as file:
        file.write(_content(model))
    os.mkdir(out)
    kind = ["--wasm"] if form == "wasm" else ["--c-source", "--target", form]
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = ingot(["export", source, *kind, "-o", out, "--cache", os.path.join(folder, "c")])
    if code:
        return _refusal(told.getvalue(), folder)
    return _digest_of_files(
        sorted(os.path.join(at, name) for at, _, names in os.walk(out) for name in names)
    )


def _digest_of_files(paths: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def _work(task: str) -> Result:
    model, form = task.split("\t")
    return {"category": "done", "detail": _digest(model, form)}


def main(arguments: Sequence[str]) -> int:
    """Print the digests."""
    forms = (*TARGETS, *DEVICES, *EXPORTS)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", default="*", metavar="GLOB", help="of the corpus: */static.onnx"
    )
    parser.add_argument("--model", action="append", default=[], help="a further .onnx file")
    parser.add_argument("--forms", default="*", metavar="GLOB", help=f"of {', '.join(forms)}")
    parser.add_argument("--seeds", type=int, default=400, help="programs of the fuzzer")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    folder = os.path.join(ROOT, "tests", "models")
    corpus = [
        os.path.join(at, name)
        for at, _, names in os.walk(folder)
        for name in names
        if name.endswith(".onnx")
    ]
    first, end = options.first_seed, options.first_seed + options.seeds
    models = [
        *(
            path
            for path in corpus
            if fnmatch.fnmatch(os.path.relpath(path, folder), options.models)
        ),
        *options.model,
        *(f"seed:{seed}" for seed in range(first, end, BATCH)),
    ]
    chosen = [form for form in forms if fnmatch.fnmatch(form, options.forms)]
    tasks = [f"{model}\t{form}" for model in models for form in chosen]
    lines: list[str] = []
    for task, result in run_forked(tasks, _work, options.workers, LIMIT_SECONDS):
        model, form = task.split("\t")
        digest = result.get("detail", "") if result["category"] == "done" else str(result)
        lines.append(f"{digest} {os.path.relpath(model, ROOT)} {form}")
        print(len(lines), "of", len(tasks), end="\r", file=sys.stderr)
    print("\n".join(sorted(lines, key=lambda line: line.split(" ", 1)[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
