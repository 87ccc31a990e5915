"""One bundle, loaded and called with all times noted: for the trace of a run.

In: a way to load it, inputs. Out: ``RunRecord``, with the outputs of the first call. Not done here:
the trace (``run_trace``).

The native `main` is called twice: the first call touches memory for the first time. Then the same
program is stepped twice in a session of its own, since only a stepped one tells of its launches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.view.load_phases import Phase, load_with_phases
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session
    from ingot_runtime.executor.vm import Step

_CALLS = ("first call", "second call")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call, and its steps if it was stepped."""

    phase: Phase
    steps: tuple[Step, ...]


@dataclass(slots=True)
class RunRecord:
    """What happened, in order; ``feed``: the inputs; ``outputs``: of the first call; ``variant``:
    the target that ran; ``devices``: what each virtual device was bound to; ``kernels``: the symbol
    of each launch that was stepped."""

    loads: list[Phase] = field(default_factory=list[Phase])
    calls: list[RecordedCall] = field(default_factory=list[RecordedCall])
    feed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    variant: str = ""
    devices: dict[str, str] = field(default_factory=dict[str, str])
    kernels: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def load_seconds(self) -> float:
        """How long the first load took."""
        return next(phase.seconds for phase in self.loads if phase.name == "load")


def record_run(
    load: Callable[..., Session],
    make_feed: Callable[[Session], Mapping[str, Any]],
    timeout: float | None,
    *,
    stepped: bool,
) -> RunRecord:
    """Load and call.

    Args:
        load: ``ingot_runtime.load`` with all that the user chose; with ``executor`` and ``verify``
            overridden, it loads the session that is stepped.
        make_feed: the inputs for a session.
        timeout: of each call, as for ``Session.run``.
        stepped: the first session is stepped already.
    """
    record = RunRecord()
    session = _loaded(record, load)
    record.feed = _tensors(session, make_feed(session))
    if not stepped:
        with session:
            _call_twice(record, session, timeout, stepped=False)
        session = _loaded(record, lambda: load(executor="vm", verify="code"))
    with session:
        _call_twice(record, session, timeout, stepped=True)
        record.kernels = {launch: kernel for launch, kernel, _ in session.trace()}
        record.variant = session.loaded.variant.target
        record.devices = session.devices
    return record


def _tensors(session: Session, feed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tensors that inputs are made of: what a trace is of."""
    plan = session.loaded.plan
    if plan.values is None:
        return feed
    from ingot_runtime.executor.values import packed

    return packed(plan, feed)


def _loaded(record: RunRecord, load: Callable[[], Session]) -> Session:
    session, phases = load_with_phases(load)
    record.loads += phases
    return session


def _call_twice(
    record: RunRecord, session: Session, timeout: float | None, *, stepped: bool
) -> None:
    from ingot_runtime.executor.session import Session as OfTensors

    for name in _CALLS:
        started = time.perf_counter()
        outputs = OfTensors.run(session, record.feed, timeout)
        label = f"{name}, stepped" if stepped else name
        steps = tuple(session.steps()) if stepped else ()
        record.calls.append(RecordedCall(Phase(label, started, time.perf_counter()), steps))
        if not record.outputs:
            record.outputs = outputs
