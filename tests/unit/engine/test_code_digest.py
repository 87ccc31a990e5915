"""Digests of code: every source that a module can run counts, wherever it is installed; nothing
else does."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tidy.source import PACKAGES

from ingot_build_rules.engine.cache import file_facts
from ingot_build_rules.engine.cache.code_digest import CodeDigests
from ingot_build_rules.engine.cache.file_facts import FileFacts
from ingot_build_rules.engine.cache.installed import find_installed
from ingot_build_rules.engine.cache.state_file import read_state, write_state


def write_package(root: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Write files of the package ``p`` below ``root``; every folder becomes a package. Return the
    package roots."""
    for name, text in files.items():
        path = root / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in [root / "p", *(item for item in (root / "p").rglob("*") if item.is_dir())]:
        (folder / "__init__.py").touch()
    return {"p": str(root / "p")}


def closure(root: Path, files: Mapping[str, str], module: str) -> set[str]:
    """Return the paths in the closure without ``p/`` and without ``__init__`` files that are
    empty."""
    found = CodeDigests(write_package(root, files), None).files_of(module)
    assert list(found) == sorted(set(found))
    paths = {path.removeprefix("p/") for path, _ in found}
    return {path for path in paths if not path.endswith("__init__.py") or files.get(path)}


CASES: dict[str, tuple[dict[str, str], set[str]]] = {
    "import a.b": ({"a.py": "import p.b.c", "b/c.py": "", "b/d.py": ""}, {"a.py", "b/c.py"}),
    "from a import name": ({"a.py": "from p.b import x", "b.py": "x = 1", "c.py": ""}, {"a.py", "b.py"}),
    "from a import module": ({"a.py": "from p.b import c", "b/c.py": "", "b/d.py": ""}, {"a.py", "b/c.py"}),
    "relative": (
        {"a.py": "from .s import b", "s/b.py": "from . import c\nfrom .. import d\nfrom ..t.e import x", "s/c.py": "", "d.py": "", "t/e.py": ""},
        {"a.py", "s/b.py", "s/c.py", "d.py", "t/e.py"},
    ),
    "inside functions, branches, classes": (
        {
            "a.py": "def f():\n  if 1:\n    import p.b\nclass K:\n  try:\n    import p.c\n  except E:\n    import p.d\n"
            "match 1:\n  case 1:\n    import p.e\nwith f:\n  import p.g\n",
            **{f"{name}.py": "" for name in "bcdefg"},
        },
        {"a.py", "b.py", "c.py", "d.py", "e.py", "g.py"},
    ),
    "star": ({"a.py": "from p.b import *", "b/__init__.py": "__all__ = ['c']", "b/c.py": ""}, {"a.py", "b/__init__.py", "b/c.py"}),
    "package on the way": (
        {"a.py": "import p.b.c.d", "b/__init__.py": "import p.x", "b/c/d.py": "", "x.py": ""},
        {"a.py", "b/__init__.py", "b/c/d.py", "x.py"},
    ),
    "types alone": (
        {"a.py": "if TYPE_CHECKING:\n  import p.b\nelse:\n  import p.c\nif t.TYPE_CHECKING:\n  import p.b", "b.py": "", "c.py": ""},
        {"a.py", "c.py"},
    ),
    "name put together": (
        {"a.py": "import p.b.all", "b/all.py": "load = import_module(f'{__package__}.x')", "b/__init__.py": "", "c.py": ""},
        {"a.py", "b/all.py", "c.py"},  # in doubt everything
    ),
    "name put together, start known": (
        {"b/__init__.py": "def load(n): import_module(f'{__name__}.{n}')\nload('c')", "b/c.py": "", "a.py": "import p.b", "d.py": ""},
        {"b/__init__.py", "b/c.py", "a.py"},
    ),
    "constant name": ({"a.py": "importlib.import_module('p.b.c')", "b/c.py": "", "c.py": ""}, {"a.py", "b/c.py"}),
    "files of a package": (
        {"a.py": "from importlib.resources import files\nfiles('p.b') / 'x.txt'", "b/x.txt": "", "b/c.py": "", "y.txt": ""},
        {"a.py", "b/x.txt"},
    ),
    "functions of a quiet package on the way": (
        {"a.py": "from p.b.c import x", "b/__init__.py": "def f():\n  import p.d", "b/c.py": "x = 1", "d.py": ""},
        {"a.py", "b/__init__.py", "b/c.py"},
    ),
    "functions of a quiet package that is used": (
        {"a.py": "from p.b import f", "b/__init__.py": "def f():\n  import p.d", "d.py": ""},
        {"a.py", "b/__init__.py", "d.py"},
    ),
    "functions that the package calls": (
        {"a.py": "import p.b.c as c", "b/__init__.py": "def f():\n  import p.d\nf()", "b/c.py": "", "d.py": ""},
        {"a.py", "b/__init__.py", "b/c.py", "d.py"},
    ),
    "functions that the package hands out": (
        {"a.py": "from p.b.c import x", "b/__init__.py": "def f():\n  import p.d\ng.h['f'] = f", "b/c.py": "", "d.py": ""},
        {"a.py", "b/__init__.py", "b/c.py", "d.py"},
    ),
    "functions of a quiet module that is used": (
        {"a.py": "from p.b import f", "b.py": "def f():\n  import p.c\ndef g():\n  import p.d", "c.py": "", "d.py": ""},
        {"a.py", "b.py", "c.py", "d.py"},
    ),
    "circle": ({"a.py": "import p.b", "b.py": "import p.a"}, {"a.py", "b.py"}),
    "no Python": ({"a.py": "import p.b", "b.py": "import p.c ("}, {"a.py", "b.py"}),
    "gone": ({"a.py": "import p.b.gone.c\nimport q.r", "b/d.py": "", "b/__init__.py": "import p.e", "e.py": ""}, {"a.py", "b/__init__.py", "e.py"}),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(CASES))
def test_each_way_of_importing_counts(case: str, tmp_path: Path) -> None:
    """The closure has every file that the import leads to, and none beside."""
    files, expected = CASES[case]
    assert closure(tmp_path, files, "p.a") == expected


QUIET = "import p.x\ndef f():\n  import p.c\n  g()\ndef g():\n  import_module('p.d')\ndef h():\n  import p.e"
FUNCTIONS = {
    "one function": (QUIET, "p.a:h", {"a.py", "x.py", "e.py"}),
    "a function that calls another": (QUIET, "p.a:f", {"a.py", "x.py", "c.py", "d.py"}),
    "a function of no imports": (f"{QUIET}\ndef i():\n  pass", "p.a:i", {"a.py", "x.py"}),
    "no function": (f"{QUIET}\nI = 1", "p.a:I", {"a.py", "x.py", "c.py", "d.py", "e.py"}),
    "a module that runs one": (f"{QUIET}\nh()", "p.a:f", {"a.py", "x.py", "c.py", "d.py", "e.py"}),
    "a module that hands one out": (f"{QUIET}\nI = {{1: h}}", "p.a:f", {"a.py", "x.py", "c.py", "d.py", "e.py"}),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(FUNCTIONS))
def test_a_function_has_a_closure_of_its_own(case: str, tmp_path: Path) -> None:
    """It leaves out what other functions of its file import, unless it may run them, or importing
    the file does."""
    source, where, expected = FUNCTIONS[case]
    files = {"a.py": source} | {f"{name}.py": "" for name in "xcde"}
    assert closure(tmp_path, files, where) == expected


def test_a_name_that_becomes_a_module_changes_the_closure(tmp_path: Path) -> None:
    """``from p.b import c`` meant a variable until there was a file."""
    roots = write_package(tmp_path, {"a.py": "from p.b import c", "b/__init__.py": "c = 1"})
    before = CodeDigests(roots, None).digest("p.a")
    (tmp_path / "p" / "b" / "c.py").touch()
    assert CodeDigests(roots, None).digest("p.a") != before


def test_the_digest_is_of_names_and_sources_alone(tmp_path: Path) -> None:
    """Another folder and other times give the same; another line ending or name gives another."""
    files = {"a.py": "import p.b\n", "b.py": "x = 1\n", "c.py": ""}
    here = CodeDigests(write_package(tmp_path / "here", files), None)
    there_roots = write_package(tmp_path / "there" / "deeper", files)
    os.utime(tmp_path / "there" / "deeper" / "p" / "b.py", (1, 1))
    there = CodeDigests({"p": there_roots["p"] + "/"}, None)
    assert here.digest("p.a") == there.digest("p.a")
    assert here.files_of("p.a") == there.files_of("p.a")
    (tmp_path / "there" / "deeper" / "p" / "c.py").write_text("changed")
    assert CodeDigests(there_roots, None).digest("p.a") == here.digest("p.a")
    (tmp_path / "there" / "deeper" / "p" / "b.py").write_bytes(b"x = 1\r\n")
    changed = CodeDigests(there_roots, None)
    assert changed.digest("p.a") != here.digest("p.a")
    assert [path for path, _ in set(changed.files_of("p.a")) - set(here.files_of("p.a"))] == [
        "p/b.py"
    ]
    with pytest.raises(LookupError, match=r"no module 'p\.z'"):
        here.digest("p.z")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take files that are just written for old ones."""
    monkeypatch.setattr(file_facts, "SETTLED_NS", -(10**12))


@pytest.mark.usefixtures("settled")
def test_facts_are_kept_until_the_file_changes(tmp_path: Path) -> None:
    """What did not change is not read again; forged times and equal sizes do not hide a change."""
    path, cache = tmp_path / "file", str(tmp_path / "new folder" / "cache")
    reads: list[bytes] = []

    def read(content: bytes) -> tuple[str, tuple[str, ...]]:
        reads.append(content)
        return content.decode(), ()

    def fact() -> str:
        facts = FileFacts(cache, "kind 1")
        found = facts.fact(str(path), path.stat(), read)
        facts.save()
        return found[0]

    path.write_bytes(b"one")
    assert [fact(), fact()] == ["one", "one"]
    assert reads == [b"one"]
    status = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [fact(), fact()] == ["two", "two"]
    os.unlink(path)
    path.write_bytes(b"six")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert fact() == "six"
    assert reads == [b"one", b"two", b"six"]


def test_a_file_that_is_just_written_is_not_trusted_yet(tmp_path: Path) -> None:
    """Within one tick of the file system's clock a second change would leave no trace."""
    path, cache = tmp_path / "file", str(tmp_path / "cache")
    path.write_bytes(b"one")
    facts = FileFacts(cache, "kind 1")
    facts.fact(str(path), path.stat(), lambda _: ("", ()))
    facts.save()
    assert read_state(cache, "kind 1") is None


@pytest.mark.usefixtures("settled")
def test_a_damaged_cache_changes_nothing(tmp_path: Path) -> None:
    """Any byte of the cache file, any length, any foreign content: the digests stay right."""
    roots = write_package(tmp_path, {"a.py": "import p.b\n", "b.py": "x = 1\n"})
    cache = tmp_path / "cache"
    right = CodeDigests(roots, str(cache)).digest("p.a")
    whole = cache.read_bytes()
    damaged = [
        whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :]
        for index in range(0, len(whole), 7)
    ]
    for content in [*damaged, b"", whole[:-1], whole + b"x", b"\0" * 100]:
        cache.write_bytes(content)
        assert CodeDigests(roots, str(cache)).digest("p.a") == right
    stamp = (0, 0, 0, 0, "0" * 64, ("p.z",))
    states: list[object] = [
        1,
        {1: 2},
        {"x": None},
        {"x": stamp[:4]},
        {"x": (*stamp[:5], (1,))},
        {"x": stamp},
    ]
    for state in states:
        assert write_state(str(cache), "code digests 1", state)
        assert CodeDigests(roots, str(cache)).digest("p.a") == right
    shutil.rmtree(tmp_path / "p" / "__pycache__", ignore_errors=True)
    assert cache.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """A state file is a convenience: a file in its folder's place, or a folder in its own, is
    survived."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert not write_state(str(tmp_path / "file" / "cache"), "kind", 1)
    assert not write_state(str(tmp_path / "folder"), "kind", 1)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert read_state(str(tmp_path / "folder"), "kind") is None


def test_a_state_of_another_kind_is_not_there(tmp_path: Path) -> None:
    """A newer version's state is not misread."""
    path = str(tmp_path / "state")
    assert write_state(path, "kind 1", {"a": [1, 2]})
    assert read_state(path, "kind 1") == {"a": (1, 2)}
    assert read_state(path, "kind 2") is None
    assert read_state(path, "kind 1", b"a key") is None
    assert write_state(path, "kind 1", 1, b"a key")
    assert read_state(path, "kind 1", b"a key") == 1
    assert read_state(path, "kind 1", b"another key") is None
    assert read_state(path, "kind 1") is None


RECORD = "x/__init__.py,sha256=AAA,5\nx/__pycache__/a.pyc,,\n{name}.dist-info/RECORD,,\n{name}.dist-info/INSTALLER,sha256=B,4\n../../../bin/x,sha256={script},9\n"


def write_distribution(folder: Path, name: str, record: str) -> str:
    """Write what an installer leaves of a distribution; return the folder."""
    notes = folder / f"{name}.dist-info"
    notes.mkdir(parents=True)
    (notes / "RECORD").write_text(record)
    return str(folder)


def test_distributions_count_by_version_and_record(tmp_path: Path) -> None:
    """The files that an installer lists decide, not its notes, its scripts or the folder; the first
    folder wins."""
    facts = FileFacts(None, "")
    one = write_distribution(
        tmp_path / "one", "Some_dist-1.0", RECORD.format(name="Some_dist-1.0", script="C")
    )
    two = write_distribution(
        tmp_path / "two", "some.Dist-1.0", RECORD.format(name="some.Dist-1.0", script="D")
    )
    other = write_distribution(tmp_path / "other", "some_dist-1.0", "x/__init__.py,sha256=AAB,5\n")
    bare = tmp_path / "bare" / "some_dist-2.0.dist-info"
    bare.mkdir(parents=True)
    found = [
        find_installed(["some-dist"], path, facts)["some-dist"]
        for path in ([one, other], [str(tmp_path / "no"), two], [other, one])
    ]
    assert found[0] == found[1]
    assert found[2].version == "1.0"
    assert found[2].digest != found[0].digest
    versions = [
        find_installed(["some-dist"], path, facts)["some-dist"] for path in ([str(bare.parent)], [])
    ]
    assert [(item.version, item.digest) for item in versions] == [("2.0", ""), ("", "")]


def test_a_closure_names_the_distributions_that_it_reaches(tmp_path: Path) -> None:
    """Only those of the table count, and only for modules that lead to them."""
    roots = write_package(
        tmp_path, {"a.py": "import p.b", "b.py": "from x.y import z\nimport other", "c.py": ""}
    )
    folder = write_distribution(
        tmp_path / "site", "some_dist-1.0", RECORD.format(name="some_dist-1.0", script="C")
    )
    digests = CodeDigests(roots, None, {"x": "some-dist", "unused": "unused"}, [folder])
    assert [name for name, _ in digests.distributions_of("p.a")] == ["some-dist 1.0"]
    assert digests.distributions_of("p.c") == ()
    assert digests.digest("p.a") != CodeDigests(roots, None, {"x": "some-dist"}, []).digest("p.a")
    assert digests.digest("p.c") == CodeDigests(roots, None, {}, []).digest("p.c")


@st.composite
def packages(draw: st.DrawFn) -> dict[str, str]:
    """Random packages whose modules import one another at their top."""
    names = draw(
        st.lists(st.sampled_from(["a", "b", "s/c", "s/d", "s/t/e", "u/f"]), min_size=1, unique=True)
    )
    inits = draw(
        st.lists(
            st.sampled_from(["__init__", "s/__init__", "s/t/__init__", "u/__init__"]), unique=True
        )
    )
    files: dict[str, str] = {}
    for name in ["a", *names, *inits]:
        lines: list[str] = []
        for target in draw(st.lists(st.sampled_from(names), max_size=3)):
            stem, _, last = ("p/" + target).replace("/", ".").rpartition(".")
            ups = "." * (name.count("/") + 1)
            near = (ups + "/" + target).replace("./", ".").replace("/", ".").rpartition(".")
            lines.append(
                draw(
                    st.sampled_from(
                        [
                            f"import {stem}.{last}",
                            f"from {stem} import {last}",
                            f"from {near[0] if near[0].strip('.') else ups} import {last}",
                            f"try:\n  from {stem} import {last}\nexcept ImportError:\n  pass",
                        ]
                    )
                )
            )
        files[f"{name}.py"] = "\n".join(lines) + "\n"
    return files


@settings(max_examples=60)
@given(packages())
def test_the_closure_is_what_python_loads(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]
) -> None:
    """For modules that import at their top alone, the closure is exactly what the interpreter has
    loaded afterwards."""
    root = tmp_path_factory.mktemp("packages")
    roots = write_package(root, files)
    for loaded in loaded_modules(root, "p.a"):
        found = {path for path, _ in CodeDigests(roots, None).files_of("p.a")}
        assert found == loaded


def loaded_modules(root: Path, module: str) -> Iterator[set[str]]:
    """Import in this very interpreter; yield the files that were loaded, nothing if the packages do
    not import."""
    sys.path.insert(0, str(root))
    try:
        __import__(module)
        yield {
            os.path.relpath(str(item.__file__), root)
            for name, item in list(sys.modules.items())
            if name.split(".")[0] == "p"
        }
    except ImportError:  # a circle of `from` imports
        pass
    finally:
        sys.path.remove(str(root))
        for name in [name for name in sys.modules if name.split(".")[0] == "p"]:
            del sys.modules[name]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("rule", ["registry", "names", "plan_memory", "codegen"])
def test_our_own_rules_load_nothing_outside_of_their_closure(rule: str) -> None:
    """What the interpreter loads of our packages for a rule is in the rule's closure."""
    module = f"ingot_build_rules.making.rules.{rule}"
    code = f"import sys, {module}\nfor m in list(sys.modules.values()): print(getattr(m, '__file__', None))"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    loaded = {
        f"{top}/{Path(line).relative_to(folder)}"
        for line in output.splitlines()
        for top, folder in PACKAGES.items()
        if Path(line).is_relative_to(folder)
    }
    digests = CodeDigests({name: str(folder) for name, folder in PACKAGES.items()}, None)
    assert loaded
    assert loaded <= {path for path, _ in digests.files_of(module)}


@pytest.mark.parametrize(
    "packed", [b"", b"\xc1", b"\x92\x01", b"\x01\x01", b"\x91" * 5000, b"\xdd\xff\xff\xff\xff"]
)
def test_a_state_that_is_no_msgpack_is_not_there(packed: bytes, tmp_path: Path) -> None:
    """Even where the file's own digest is right."""
    path = tmp_path / "state"
    path.write_bytes(b"ingot state file" + hashlib.sha256(b"kind\n" + packed).digest() + packed)
    assert read_state(str(path), "kind") is None
