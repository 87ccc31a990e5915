"""The OpenCL drivers of this machine that work, and the one that the tests run on.

In: the environment, what pip has installed. Out: an environment in which one driver is seen, or
none. Not done here: which tests need one (``@pytest.mark.opencl``).

A driver works where a kernel of one line compiles, runs and writes what it should, which the
devices package finds out for itself, in a process of its own. The loader of drivers takes the path
of a driver's library for a list of that driver alone.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path

_SYSTEM = Path("/etc/OpenCL/vendors")
_OF_PIP = Path(sys.prefix, "lib", "libintelocl.so")
_NONE = "/none/driver.so"
# Each of one thread; PoCL makes two devices.
_ONE_THREAD = {
    "POCL_DEVICES": "pthread pthread", "POCL_MAX_PTHREAD_COUNT": "1",
    "CL_CONFIG_CPU_TBB_NUM_WORKERS": "1",
}  # fmt: skip
_LOOK = """
import json
from ingot_runtime_devices.opencl_build import BUILDER, devices
found = devices()
print(json.dumps([f"{found[0].name}, {found[0].version}", len(found), BUILDER.failure_of(0)]))
"""
_CHOSEN = "INGOT_TESTED_DRIVER"
DO = "make driver, or apt install pocl-opencl-icd"


@dataclass(frozen=True, slots=True)
class Driver:
    """``name``: of its first device. ``why``: what is wrong with it, "" where it works."""

    library: str
    name: str
    device_count: int
    why: str


def find_drivers() -> list[Driver]:
    """Return all, those that work first."""
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(_look, dict.fromkeys(_libraries())))
    return sorted(found, key=lambda driver: bool(driver.why))


def _libraries() -> Iterator[str]:
    """Yield what the loader of drivers would open, then what pip brings and nothing names."""
    named = os.environ.get("OCL_ICD_VENDORS")
    place = Path(named) if named else _SYSTEM
    if place.is_dir():
        yield from map(_named_in, sorted(place.glob("*.icd")))
    elif named:
        yield _named_in(place) if place.suffix == ".icd" else named
    package = importlib.util.find_spec("pyopencl")
    if package and package.origin:
        yield from map(_named_in, sorted(Path(package.origin).parent.glob(".libs/*.icd")))
    if _OF_PIP.exists():
        yield str(_OF_PIP)


def _named_in(path: Path) -> str:
    """The library that such a file names; it may lie beside it."""
    name = path.read_text(encoding="utf-8").strip()
    beside = path.parent / name
    return str(beside) if beside.exists() else name


def _look(library: str) -> Driver:
    """Try a driver in a process of its own, which it may end."""
    done = subprocess.run(
        [sys.executable, "-c", _LOOK],
        env={**os.environ, **_ONE_THREAD, "OCL_ICD_VENDORS": library},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or f"code {done.returncode}").splitlines()[-1]
        return Driver(library, library, 0, last)
    return Driver(library, *json.loads(done.stdout))


def choose(number: int) -> Driver:
    """Let this process and its children see that one of the drivers that work, and no other; none,
    where there is no such."""
    if _CHOSEN not in os.environ:
        found = find_drivers()
        working = [driver for driver in found if not driver.why]
        told = "; ".join(f"{each.name}: {each.why or 'works'}" for each in found) or "none is there"
        chosen = working[number] if number < len(working) else Driver(_NONE, "", 0, told)
        os.environ |= _ONE_THREAD
        os.environ |= {"OCL_ICD_VENDORS": chosen.library, _CHOSEN: json.dumps(astuple(chosen))}
    return Driver(*json.loads(os.environ[_CHOSEN]))


def variables() -> Mapping[str, str]:
    """What a process without Python needs to see the same devices."""
    names = ("OCL_ICD_VENDORS", *_ONE_THREAD)
    return {name: os.environ[name] for name in names if name in os.environ}
