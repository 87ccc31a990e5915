"""``ingot why-device``, the line about placement and what is told of globs: every decision keeps
its reason, in the user's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.json_schemas import checked
from tests.unit.end_to_end.test_end_to_end_devices import choice, network

import ingot
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view.device_chain import device_chains
from ingot_compiler.frontend.model.place_marks import place_marks
from ingot_compiler.ir.errors import UnsupportedError, UserError

ACC = ("--device", "acc=null", "--target", "x86-64-v2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundles: of a network by hand and by cost, of one with control flow, stripped, for the
    host."""
    made = tmp_path_factory.mktemp("why")
    two: dict[str, Any] = {"targets": "x86-64-v2", "devices": {"acc": "null"}}
    by_hand = {"/stem/*": "acc", "*/Conv": "acc", "/body/*": "host"}
    ingot.compile(network(), place=by_hand, **two).save(made / "hand.ingot")
    ingot.compile(network(), place=by_hand, strip=True, **two).save(made / "stripped.ingot")
    auto = {"*": "auto", "/body/*": "acc"}
    ingot.compile(network(), place=auto, **two).save(made / "auto.ingot")
    ingot.compile(choice(), place={"*": "acc"}, fallback="allow", **two).save(made / "if.ingot")
    ingot.compile(choice(), targets="x86-64-v2").save(made / "host.ingot")
    return made


def told(folder: Path, name: str, value: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the verb prints, line by line; its JSON is as the schema says and says the same."""
    assert main(["why-device", str(folder / name), value]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["why-device", str(folder / name), value, "--json"]) == 0
    found = checked("why-device", capsys.readouterr().out)
    texts = [
        link["text"] for chain in found["chains"] for link in (*chain["links"], *chain["copies"])
    ]
    assert all(any(text in line for line in lines) for text in texts)
    return lines


MEAN = "/mean/GlobalAveragePool (GlobalAveragePool)"
FOLLOWS = "no option names it: it follows"
NO_CODE = "acc has no code for it, where --place '*=acc' puts it"
CHAINS = {
    ("hand.ingot", "/stem/Relu"): [
        "/stem/Relu is on acc",
        "  /stem/Relu (Relu): put on acc by --place '/stem/*=acc'",
        "  copied to host for /body/Conv (Conv)",
    ],
    ("hand.ingot", "/body/Conv"): [
        "/body/Conv is on host",
        "  /body/Conv (Conv): put on host by --place '/body/*=host', not '*/Conv=acc'",
    ],
    ("hand.ingot", "/mean/Flatten"): [
        "/mean/Flatten is on acc",
        f"  /mean/Flatten (Flatten): {FOLLOWS} {MEAN}, which it reads",
        f"  {MEAN}: {FOLLOWS} /join/Add (Add), which it reads",
    ],
    ("hand.ingot", "x"): [
        "x is on host",
        "  input x: the caller gives it, on the host",
        "  copied to acc for /stem/Conv (Conv)",
    ],
    ("auto.ingot", "/body/Conv"): [
        "/body/Conv is on acc",
        "  /body/Conv (Conv): put on acc by --place '/body/*=acc', not '*=auto'",
    ],
    ("if.ingot", "/r"): [
        "/r is on host",
        f"  /r (If): {NO_CODE}: the host runs it (--fallback)",
        "  copied to acc for /y (Mul)",
    ],
    ("if.ingot", "y"): [
        "y is on host",
        "  a copy on host: copied to host for the caller",
        "  /y (Mul): put on acc by --place '*=acc'",
    ],
    ("host.ingot", "/r"): ["/r: on the host, like everything: there is no other device"],
}


@pytest.mark.parametrize(("name", "value"), CHAINS)
def test_chains(folder: Path, name: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each link in the user's names: the option that counts and those that do not, who made and who
    reads a value, what the host alone runs."""
    lines = told(folder, name, value, capsys)
    assert lines[: len(CHAINS[name, value])] == CHAINS[name, value]


def test_what_auto_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a node that was left to the cost model: the time of each device; the least one was
    taken."""
    lines = told(folder, "auto.ingot", "/mean/Flatten", capsys)
    assert "left to the cost model by --place '*=auto'; with its copies it takes host " in lines[1]
    assert main(["why-device", str(folder / "auto.ingot"), "/*", "--json"]) == 0
    chains = json.loads(capsys.readouterr().out)["chains"]
    compared = [link for chain in chains for link in chain["links"] if link["reason"] == "auto"]
    assert len(compared) >= 6
    for link in compared:
        times: dict[str, float] = link["predicted_seconds"]
        assert times[link["device"]] == min(times.values())


def test_a_stripped_bundle_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes go by their numbers there; the options are those of the lock."""
    lines = told(folder, "stripped.ingot", "#2", capsys)
    assert lines[0].startswith("stripped: ")
    assert lines[1] == "#2 is on host"
    assert "put on host by --place '/body/*=host'" in lines[2]


def test_unknown_names(folder: Path) -> None:
    """The nearest names are told."""
    described = describe_bundle(folder / "hand.ingot")
    with pytest.raises(UserError, match="nothing is called '/stem/Con'") as caught:
        device_chains(described, "/stem/Con", "hand.ingot")
    assert "'/stem/Conv'" in caught.value.do


def test_a_forged_section_ends_the_chain(folder: Path) -> None:
    """Numbers that lead nowhere, in a circle or to no glob are no more than the end."""
    described = describe_bundle(folder / "hand.ingot")
    rows: list[dict[str, Any]] = described["debug"]["placement"][0]["values"]
    for number, row in enumerate(rows):
        row |= {"from": number, "globs": [0, 99], "reason": "follows" if number % 2 else "odd"}
    described["debug"]["placement"][0]["outputs"] = [10**6]
    described["lock"]["options"]["place"] = [1, ["a"], None]
    for chain in device_chains(described, "*", "hand.ingot"):
        assert chain.lines()
        assert chain.plain()


def line_of(text: str) -> str:
    """The line about placement."""
    (line,) = [line for line in text.splitlines() if line.startswith("  placed")]
    return line


def test_the_line(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``compile`` and ``inspect`` say the same of nodes, operations and bytes; nothing of the kind
    where there is the host alone."""
    (tmp_path / "m.onnx").write_bytes(network().SerializeToString())
    command = ["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.ingot"), *ACC]
    assert main([*command, "--place", "/body/*=acc"]) == 0
    line = line_of(capsys.readouterr().out)
    assert line == (
        "  placed: host 7 nodes, 50.5 % of operations; acc 1 node, 49.5 % of operations; "
        "copies host to acc 6.4 kB, acc to host 6.4 kB"
    )
    assert main(["inspect", str(tmp_path / "m.ingot")]) == 0
    assert line_of(capsys.readouterr().out) == line
    assert main(["inspect", str(folder / "host.ingot")]) == 0
    assert "placed" not in capsys.readouterr().out


def test_which_glob_counts_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two that disagree: the later one wins, and both are named, with the nodes."""
    (tmp_path / "m.onnx").write_bytes(network().SerializeToString())
    command = ["compile", str(tmp_path / "m.onnx"), "--to", "placed", *ACC]
    assert main([*command, "--place", "/*=acc", "--place", "/stem/*=host"]) == 0
    printed = capsys.readouterr()
    assert "--place /stem/*=host counts, and not the earlier /*=acc, for '/stem/" in printed.err
    assert main([*command, "--place", "/stem/*=host", "--place", "auto"]) == 0
    printed = capsys.readouterr()
    assert "counts" not in printed.err
    assert '@[0] on "host"' in printed.out
    assert '@[2] on "auto"' in printed.out


def test_what_is_no_glob(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The form of the option is told."""
    for text in ("/stem/*", "/stem/*=", "=acc", "atuo"):
        assert main(["compile", str(tmp_path / "m.onnx"), *ACC, "--place", text]) == 1
        assert f"expected GLOB=DEVICE or auto, got '{text}'" in capsys.readouterr().err


def test_a_fallback_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``warn``; ``forbid`` refuses by both sides of the conflict, ``allow`` says nothing."""
    (tmp_path / "m.onnx").write_bytes(choice().SerializeToString())
    command = ["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.ingot"), *ACC]
    command += ["--place", "/s=host", "--place", "*=acc"]
    assert main([*command, "--fallback", "warn"]) == 0
    warned = "node '/r' (If) runs on the host: device acc has no code for it"
    assert warned in capsys.readouterr().err
    assert main([*command, "--fallback", "allow"]) == 0
    assert warned not in capsys.readouterr().err
    assert main(command) == 3
    error = capsys.readouterr().err
    assert "control flow runs on the host" in error
    assert "the node is there by --place *=acc" in error
    assert "leave it on the host: --place /r=host, behind that, or give --fallback warn" in error


@pytest.mark.parametrize(
    ("glob", "do"),
    [
        ("/stm/*", "'/stem/Conv'"),
        ("/stem/Con", "'/stem/Conv'"),
        ("/BODY/CONV", "'/body/Conv'"),
        ("zzz", "gives the names of all nodes"),
    ],
)
def test_a_glob_that_matches_nothing(glob: str, do: str) -> None:
    """The nearest names are suggested, also of a glob with wildcards."""
    with pytest.raises(UserError, match="a placement matches no node") as caught:
        ingot.compile(network(), targets="x86-64-v2", devices={"acc": "null"}, place={glob: "acc"})
    assert do in caught.value.do


def test_a_name_that_is_no_glob_for_itself() -> None:
    """What is suggested matches: brackets of a name are escaped."""
    with pytest.raises(UserError) as caught:
        place_marks(["proj[2]"], [("proj[2]", "acc")])
    assert caught.value.do == "did you mean 'proj[[]2]'?"
    assert place_marks(["proj[2]"], [("proj[[]2]", "acc")]) == ("acc",)


def test_the_three_ways_are_one(tmp_path: Path) -> None:
    """``auto`` and ``fallback`` from the command line, ``ingot.toml`` and Python give one
    bundle."""
    (tmp_path / "m.onnx").write_bytes(choice().SerializeToString())
    (tmp_path / "ingot.toml").write_text(
        '[model.m]\nsource = "m.onnx"\n[bundle.m]\nmodel = "m"\ntargets = ["x86-64-v2"]\n'
        'devices = { acc = "null" }\nplace = "auto"\nfallback = "allow"\n'
    )
    command = ["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "c.ingot"), *ACC]
    assert main([*command, "--place", "auto", "--fallback", "allow", "-q"]) == 0
    assert main(["build", "-C", str(tmp_path), "-q"]) == 0
    made = ingot.compile(
        str(tmp_path / "m.onnx"), targets="x86-64-v2", devices={"acc": "null"}, place="auto",
        fallback="allow",
    )  # fmt: skip
    bundles = [(tmp_path / name).read_bytes() for name in ("c.ingot", "dist/m.ingot")]
    assert bundles == [made.to_bytes()] * 2


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"devices": {"auto": "null"}}, "device name taken"),
        ({"fallback": "perhaps"}, "unknown fallback 'perhaps'"),
        ({"place": {"*": "atuo"}}, "unknown device 'atuo'"),
    ],
)
def test_mistakes(options: dict[str, Any], what: str) -> None:
    """One error each."""
    with pytest.raises(UserError, match=what):
        ingot.compile(network(), targets="x86-64-v2", **options)


def test_both_sides_of_a_conflict() -> None:
    """The node's constraint, and the glob that contradicts it, in the words of Python."""
    with pytest.raises(UnsupportedError) as caught:
        ingot.compile(choice(), devices={"acc": "null"}, place={"/c": "host", "/*": "acc"})
    assert caught.value.why == (
        "control flow runs on the host; nodes inside of it are placed by their own names; the node is there by "
        "place={'/*': 'acc'}"
    )


def test_warnings_of_python() -> None:
    """A fallback is a warning there, too; globs that disagree are none: dicts are written so."""
    place = {"/s": "host", "*": "acc"}
    with pytest.warns(UserWarning, match="device acc has no code for it"):
        ingot.compile(choice(), devices={"acc": "null"}, place=place, fallback="warn")
