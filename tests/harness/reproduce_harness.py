"""A small project that is built by the command, and ways to change one thing of it: source, option,
code, linker, bundle.

In: a folder. Out: bundles, JSON reports. Not done here: assertions.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal

import ingot_compiler
from ingot_artifacts.bundle.encode_head import encode_head
from ingot_artifacts.inspect.describe import opened
from ingot_runtime.format import header as head
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.sha256 import sha256

MSGPACK: Any = importlib.import_module("msgpack")  # without types
PROJECT = """
[model.net]
source = "models/net.onnx"
shape.x = "2x3x8x8"

[bundle.net]
model = "net"
targets = ["x86-64-v2", "aarch64"]
planner = "hill_climb"
"""
WEIGHTS = ("w0", "scale", "shift", "mean", "variance", "w1")


def network() -> ModelProto:
    """Every stage has something to do: a batch norm to fold, a layer norm, weights to pack, an open
    batch."""
    nodes = [
        node("Conv", "x w0", "c", pads=[1, 1, 1, 1], name="/conv"),
        node("BatchNormalization", "c scale shift mean variance", "b", name="/norm"),
        node("Relu", "b", "r", name="/relu"),
        node("GlobalAveragePool", "r", "g", name="/pool"),
        node("Flatten", "g", "f", name="/flatten"),
        node("MatMul", "f w1", "m", name="/matmul"),
        node("LayerNormalization", "m gain", "y", name="/layer_norm", epsilon=1e-5),
    ]
    constants = {
        "w0": normal(0, 8, 3, 3, 3), "scale": normal(1, 8), "shift": normal(2, 8), "mean": normal(3, 8),
        "variance": np.abs(normal(4, 8)) + 1, "w1": normal(5, 8, 6), "gain": normal(6, 6),
    }  # fmt: skip
    return make_model(nodes, [tensor("x", ["n", 3, 8, 8])], [tensor("y", ["n", 6])], constants)


@dataclass(frozen=True)
class Built:
    """A project in ``folder`` and the ``cache`` that it was built with."""

    folder: Path
    cache: Path

    @property
    def bundle(self) -> Path:
        """The one that was built."""
        return self.folder / "dist" / "net.ingot"

    def copy(self, folder: Path) -> Built:
        """The same project elsewhere, with bundle and lock file; the cache is shared."""
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns(".ingot"))
        return Built(folder, self.cache)

    def without_lock(self) -> Built:
        """Delete the lock file."""
        (self.folder / "dist" / "net.lock.json").unlink()
        return self

    def arguments(self, *more: str) -> list[str]:
        """Of ``ingot reproduce``; the cache may be used, which is quicker and finds the same
        differences."""
        where = ["--source", str(self.folder), "--cache", str(self.cache), "--cached"]
        return ["reproduce", str(self.bundle), *where, "-q", "-j1", "--json", *more]

    def edit_model(self, change: Callable[[ModelProto], object]) -> None:
        """Change the model's file."""
        path = self.folder / "models" / "net.onnx"
        model = ModelProto.FromString(path.read_bytes())
        change(model)
        path.write_bytes(model.SerializeToString())

    def edit_project(self, old: str, new: str) -> None:
        """Change the project's file."""
        replace_text(self.folder / "ingot.toml", old, new)


def replace_text(path: Path, old: str, new: str) -> None:
    """Replace what is there exactly once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


def write_project(folder: Path) -> None:
    """Write model and ``ingot.toml``."""
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "net.onnx").write_bytes(network().SerializeToString())
    (folder / "ingot.toml").write_text(PROJECT, encoding="utf-8")


def flip_weight(model: ModelProto, name: str) -> None:
    """Change one byte of a weight, in the middle of a number."""
    (weight,) = [item for item in model.graph.initializer if item.name == name]
    data = bytearray(weight.raw_data)
    data[5] ^= 1
    weight.raw_data = bytes(data)


def share(model: ModelProto, source: str, name: str) -> None:
    """Give a weight the bytes of another one."""
    weights = {item.name: item for item in model.graph.initializer}
    weights[name].raw_data = weights[source].raw_data


def command(python_path: Path, arguments: Sequence[str]) -> tuple[int, dict[str, Any], str]:
    """Run the command in a process that finds packages in a folder first; its JSON and its
    errors."""
    path = os.pathsep.join([str(python_path), *(entry for entry in sys.path if entry)])
    done = subprocess.run(
        [sys.executable, "-m", "ingot", *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def copy_of_compiler(folder: Path) -> Path:
    """Copy the compiler's package into a folder; return the package."""
    source = Path(str(ingot_compiler.__file__)).parent
    return shutil.copytree(
        source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__")
    )


def copy_of_zig(folder: Path) -> None:
    """Copy the package of the linker and C compiler with another byte in the padding of its ELF
    header, which nobody reads."""
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None
    assert spec.origin is not None
    package = folder / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(Path(spec.origin).parent / "zig", package / "zig")
    (package / "lib").symlink_to(
        Path(spec.origin).parent / "lib"
    )  # by which the program knows where it is installed
    with (package / "zig").open("r+b") as file:
        file.seek(15)
        assert file.read(1) == b"\0"
        file.seek(15)
        file.write(b"\1")


Payloads = dict[tuple[int, int], bytes]


def forge(path: Path, change: Callable[[dict[str, Any]], object], kind: int = head.LOCK) -> None:
    """Change a section of msgpack and sign the bundle again, as its maker could."""
    with opened(path) as source:
        rows = [(row.kind, row.id) for row in source.sections]
        content = path.read_bytes()
        payloads = {
            (row.kind, row.id): content[row.offset : row.offset + row.size_bytes]
            for row in source.sections
        }
    plain: dict[str, Any] = MSGPACK.unpackb(payloads[kind, 0])
    change(plain)
    payloads[kind, 0] = pack(plain)
    path.write_bytes(assemble(rows, payloads))


def assemble(rows: Sequence[tuple[int, int]], payloads: Mapping[tuple[int, int], bytes]) -> bytes:
    """Lay sections out and sign them."""
    end = head.HEADER_SIZE_BYTES + len(rows) * head.ROW_SIZE_BYTES
    sections: list[head.Section] = []
    for kind, id_ in rows:
        alignment = head.section_kind(kind).alignment
        offset = end + -end % alignment
        digest = head.NO_DIGEST if kind == head.WEIGHTS else sha256(payloads[kind, id_])
        sections.append(
            head.Section(kind, id_, offset, len(payloads[kind, id_]), alignment, 0, digest)
        )
        end = offset + len(payloads[kind, id_])
    start, _ = encode_head(sections, end)
    content = bytearray(end)
    content[: len(start)] = start
    for row in sections:
        content[row.offset : row.offset + row.size_bytes] = payloads[row.kind, row.id]
    return bytes(content)


def external(model: ModelProto, folder: Path, name: str) -> None:
    """Move a weight into the file ``weights.bin`` beside the model."""
    (weight,) = [item for item in model.graph.initializer if item.name == name]
    (folder / "models" / "weights.bin").write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
