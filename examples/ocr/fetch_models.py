"""Fetch the models of the OCR example: PP-OCRv4, as the package ``rapidocr_onnxruntime`` brings it.

In: the package index, or a wheel that is here already (``--wheel``). Out: ``models/detect.onnx``
(where is text?), ``models/turn.onnx`` (is it upside down?), ``models/recognise.onnx`` (what does it
say?) and ``dist/characters.txt``, what each number of the last one means, beside this file. Not
done here: installing the package; nothing else of it is used. It is licensed under Apache-2.0.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import onnx

HERE = Path(__file__).resolve().parent
PACKAGE = "rapidocr_onnxruntime==1.4.4"
MODELS = {
    "detect": "ch_PP-OCRv4_det_infer.onnx",
    "turn": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "recognise": "ch_PP-OCRv4_rec_infer.onnx",
}


def download(folder: str) -> Path:
    """Return the wheel, without what it depends on."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    subprocess.run([*pip, PACKAGE], check=True)
    (wheel,) = Path(folder).glob("*.whl")
    return wheel


def unpack(wheel: Path, folder: Path) -> None:
    """Write models and characters."""
    for name in ("models", "dist"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for name, file in MODELS.items():
            content = archive.read(f"rapidocr_onnxruntime/models/{file}")
            (folder / "models" / f"{name}.onnx").write_bytes(content)
    model = onnx.load_model_from_string((folder / "models" / "recognise.onnx").read_bytes())
    (characters,) = [item.value for item in model.metadata_props if item.key == "character"]
    (folder / "dist" / "characters.txt").write_text(characters.removesuffix("\n"), encoding="utf-8")


def main() -> None:
    """Fetch, and say what is there now."""
    parser = argparse.ArgumentParser(description="fetch the models of the OCR example")
    parser.add_argument("--wheel", type=Path, help=f"a wheel of {PACKAGE} (default: download it)")
    parser.add_argument("--folder", type=Path, default=HERE, help="where to (default: beside this)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            unpack(arguments.wheel or download(folder), arguments.folder)
        except subprocess.CalledProcessError:
            sys.exit(f"error: pip cannot download {PACKAGE}; its own words are above")
        except (OSError, zipfile.BadZipFile, KeyError) as error:
            sys.exit(f"error: {arguments.wheel or PACKAGE} is not that wheel: {error}")
    print("models:", ", ".join(f"models/{name}.onnx" for name in MODELS))


if __name__ == "__main__":
    main()
