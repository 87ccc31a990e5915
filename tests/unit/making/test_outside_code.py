"""What of a plug-in's code is in keys: what its modules can import, wherever Python finds it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ingot_build_rules.engine.actions import codec, message_pack
from ingot_build_rules.making.options.outside_code import outside_code
from ingot_build_rules.making.stages.own_code import code_digests, code_parts, include_outside
from ingot_compiler.ir import dims


def _parts(module: str) -> dict[str, str]:
    """File or distribution -> digest, without our own files."""
    digests = code_digests(None)
    include_outside(digests, module)
    return {name: each for name, each in code_parts(digests, module) if "ingot_" not in name}


def test_the_static_closure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that a hook's module imports, files of its package that it reads, installed packages
    by their version; neither what it does not import nor the standard library."""
    package = tmp_path / "closure_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "hook.py").write_text(
        "import json\nfrom importlib.resources import files\nimport numpy\nimport rich\n"
        "from closure_helper import help\nTEXT = files('closure_plugin')\n"
    )
    (package / "beside.py").write_text("import onnx\n")
    (package / "data.bin").write_bytes(b"1")
    (tmp_path / "closure_helper.py").write_text("def help(): ...\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names = {name.partition(" ")[0] for name in _parts("closure_plugin.hook")}
    assert names == {
        "closure_plugin/__init__.py", "closure_plugin/hook.py", "closure_plugin/data.bin",
        "closure_helper.py", "numpy", "rich", "python",
    }  # fmt: skip
    assert "closure_plugin/beside.py" in _parts("closure_plugin.beside")
    assert dict(outside_code("closure_plugin.hook").distributions)["rich"] == "rich"


def test_our_own_code_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that calls the host's code generation has that in its key, another one has not."""
    call = "from ingot_compiler.backends.host.hooks import compile_kernel\n"
    (tmp_path / "calling_plugin.py").write_text(call)
    (tmp_path / "quiet_plugin.py").write_text("import math\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    digests, found = code_digests(None), list[set[str]]()
    for module in ("calling_plugin", "quiet_plugin"):
        include_outside(digests, module)
        found.append({name for name, _ in code_parts(digests, module)})
    emitter = "ingot_compiler/codegen/emit/kernel.py"
    assert (emitter in found[0], emitter in found[1]) == (True, False)


def test_the_encoding_is_in_every_key() -> None:
    """How results are encoded decides them, whatever a module imports; these files are where the
    encoder is."""
    digests = code_digests(None)
    found = {name for name, _ in code_parts(digests, dims.__name__)}
    assert {f"{module.__name__.replace('.', '/')}.py" for module in (codec, message_pack)} < found
