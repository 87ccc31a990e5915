"""When the loader did what while it loaded a bundle.

In: a call that loads. Out: its result, and its ``Phase``s. Not done here: loading.

The loader itself notes no times. Its functions are seen by Python's profiling hook, which costs a
load some tenths of a millisecond and a load that nobody watches nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from ingot_runtime.executor.session import Session
from ingot_runtime.format import source
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.loader import bind_devices, choose, cpu, image, pool, weights

if TYPE_CHECKING:
    from typing import Any

_PHASES: dict[CodeType, str] = {
    source.open_file.__code__: "open the file, check its header and table",
    source.read_plan.__code__: "read and check the plan",
    bind_devices.bind_devices.__code__: "bind devices",
    cpu.machine_features.__code__: "find the features of the CPU",
    choose.choose_variant.__code__: "choose a variant",
    image.Image.__init__.__code__: "map and check the code",
    pool.ThreadPool.__init__.__code__: "start threads",
    weights.map_weights.__code__: "map the weights",
    weights.Verifier.verify.__code__: "verify the weights",
    Session.__init__.__code__: "make the session",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a load, a load or a call: when it was, by ``time.perf_counter``."""

    name: str
    started_seconds: float
    ended_seconds: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended_seconds - self.started_seconds


def load_with_phases(load: Callable[[], Session]) -> tuple[Session, list[Phase]]:
    """Return a session, and the phases of its load in the order in which they ended, the whole load
    last."""
    phases: list[Phase] = []
    begun: list[float] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = _PHASES.get(frame.f_code)
        if name is None:
            return
        if event == "call":
            begun.append(time.perf_counter())
        elif event == "return":
            phases.append(Phase(name, begun.pop(), time.perf_counter()))

    before = sys.getprofile()
    started = time.perf_counter()
    sys.setprofile(note)
    try:
        session = load()
    finally:
        sys.setprofile(before)
    phases.append(Phase("load", started, time.perf_counter()))
    return session, phases
