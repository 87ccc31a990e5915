"""Lint: what an action reads must be known to its key; what is its code, its cache or its own need
not."""

from __future__ import annotations

import colorsys
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.harness.build_harness import TARGET, chain, with_external
from tests.harness.executor_harness import spec_of

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.trust import ANYONE
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.errors import UndeclaredReadError
from ingot_build_rules.engine.actions.perform import Outcome, RunningAction
from ingot_build_rules.engine.actions.rule import FileDigests, Rule, Rulebook, RuleContext
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.executors.lint import LintExecutor
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.host_target import resolve_target
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
from ingot_build_rules.making.stages.start_compilation import start_compilation

OUTSIDE = "/etc/hostname"


@dataclass(frozen=True, slots=True)
class Inputs:
    """``paths`` are named; ``folder`` is where notes are relative to."""

    paths: tuple[str, ...] = ()
    folder: str = "/"


def _resolve(files: FileDigests, inputs: Inputs, name: str) -> str:
    return files.digest(f"{inputs.folder}/{name}")


def lint(
    folder: Path, compute: Callable[[RuleContext, Inputs], object], inputs: Inputs | None = None
) -> Outcome:
    """Run one action under lint."""
    rule: Rule[Inputs, Any] = Rule("reader", 1, ("paths",), compute, _resolve)
    book = Rulebook("", (rule,), {"Inputs": __name__}, ())
    cache = Cache(str(folder / "cache"))
    values = Values(cache.blobs, Codec(book.types))
    executor = LintExecutor(book, values, [cache.folder])
    executor.submit(spec_of(rule, inputs or Inputs(), values))
    ((_, outcome),) = executor.wait(None)
    cache.close()
    return outcome


def test_an_undeclared_read_is_an_error(tmp_path: Path) -> None:
    """It names the rule and the file, however the file was opened, and whether or not the rule
    caught its error."""

    def read(_: RuleContext, __: Inputs) -> str:
        return Path(OUTSIDE).read_text()

    outcome = lint(tmp_path, read)
    assert isinstance(outcome.error, UndeclaredReadError)
    assert str(outcome.error) == (
        "an action read a file that its key does not know of\n"
        f"  where: rule reader: {OUTSIDE}\n"
        "  why: expected files that its inputs name or that it notes, got others\n"
        "  do: note it, or make its digest an ingredient; else a change of it goes unseen"
    )
    assert outcome.error.exit_code == 4


def test_what_is_declared_may_be_read(tmp_path: Path) -> None:
    """A path among the inputs, also by way of a link; a file that is noted, before or after it is
    read."""
    (tmp_path / "link").symlink_to(OUTSIDE)

    def read_named(_: RuleContext, inputs: Inputs) -> str:
        return Path(inputs.paths[0]).read_text()

    def read_noted(context: RuleContext, inputs: Inputs) -> str:
        text = Path(OUTSIDE).read_text()
        context.note("etc/hostname")
        return text

    assert lint(tmp_path, read_named, Inputs((OUTSIDE,))).error is None
    assert lint(tmp_path, read_named, Inputs((str(tmp_path / "link"),))).error is None
    assert lint(tmp_path, read_noted).error is None


def test_what_is_its_own_may_be_read(tmp_path: Path) -> None:
    """Files and folders that the action made, what its programs left there, blobs, code; what is
    not there is no read."""

    def work(context: RuleContext, _: Inputs) -> int:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "own").write_text("own")
            command = "import sys; open(sys.argv[1], 'w').write('text')"
            subprocess.run([sys.executable, "-I", "-c", command, f"{folder}/left"], check=True)
            Path(folder, "own").rename(Path(folder, "moved"))
            assert Path(folder, "left").read_text() + Path(folder, "moved").read_text() == "textown"
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).read_bytes()
        importlib.reload(colorsys)

        with pytest.raises(FileNotFoundError):
            Path("/nowhere").read_text()
        return len(bytes(context.keep_bytes(b"x" * 100_000).value()))

    outcome = lint(tmp_path, work)
    assert outcome.error is None


def test_nobody_is_watched_afterwards(tmp_path: Path) -> None:
    """Outside of an action everything may be read; errors and losses of an action stay what they
    are."""

    def fail(_: RuleContext, __: Inputs) -> str:
        Path(OUTSIDE).read_text()
        raise ValueError("a bug")

    assert "a bug" in str(lint(tmp_path, fail).error)
    Path(OUTSIDE).read_text()
    assert lint(tmp_path, lambda _, __: 1).error is None


def compile_linted(folder: Path, model: Path) -> dict[str, int]:
    """Compile a model under lint; return how many actions ran."""
    with open_build(BuildSettings(str(folder), ANYONE, executor="lint")) as build:
        assert start_compilation(
            build, str(model), CompileOptions((str(resolve_target(TARGET)),))
        ).to_bytes()
        return {name: count.ran for name, count in build.counts.items()}


def test_our_rules_read_what_their_keys_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compilation with weights beside the model: nothing is read that no key knows of; every hit
    runs again under lint, too."""
    model = with_external(chain([8, 16, 4]), tmp_path, "weights/first.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    first = compile_linted(tmp_path / "cache", tmp_path / "model.onnx")
    assert set(first) == set(RULEBOOK.by_name)
    assert compile_linted(tmp_path / "cache", tmp_path / "model.onnx") == first
    # Were the file beside the model not noted, lint would say so.
    monkeypatch.setattr(RunningAction, "note", RunningAction.warn)
    with pytest.raises(UndeclaredReadError, match=r"rule import_model: .*weights/first\.bin"):
        compile_linted(tmp_path / "other", tmp_path / "model.onnx")
