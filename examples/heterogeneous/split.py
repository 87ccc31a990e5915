"""Run one bundle over the host and an OpenCL device, and say what ran where.

In: a bundle with a device ``acc``, inputs. Out: lines of text. Not done here: compiling it (the
README beside this file); only the loader, its devices and numpy are needed.
"""

from __future__ import annotations

import argparse

import numpy as np

import ingot_runtime


def main(bundle: str, inputs: str) -> None:
    """Load, run once, print."""
    with ingot_runtime.load(bundle) as session, np.load(inputs) as file:
        outputs = session.run({name: file[name] for name in file.files})
        counts = session.device_counts()
    for name, array in outputs.items():
        print(f"{name}: {', '.join(f'{number:.4f}' for number in array.ravel()[:4])}, ...")
    for device, launches in counts.launches.items():
        print(f"{device}: launches {launches}")
    for (source, target), (copies, size_bytes) in counts.copies.items():
        print(f"{source} -> {target}: copies {copies}, bytes {size_bytes}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="run a bundle over the host and a device")
    parser.add_argument("bundle")
    parser.add_argument("inputs", help="an .npz file")
    options = parser.parse_args()
    main(options.bundle, options.inputs)
