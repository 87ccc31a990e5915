"""What decides a bundle beside the model, in canonical form.

In: checked values. Out: ``CompileOptions``. Not done here: texts of the user, ``native`` (``options``),
options again from plain values (``recorded_options``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.targets.target import Target

HOST = "host"


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Everything that decides the bundle beside the model; sorted where order means nothing.

    ``shapes``: input name -> sizes. ``devices``: name -> kind, without the host. ``place``: (glob over node names,
    device name), the last match counts.
    """

    targets: tuple[Target, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    devices: tuple[tuple[str, str], ...] = ()
    place: tuple[tuple[str, str], ...] = ()
    planner: str = "best"

    def plain(self) -> dict[str, object]:
        """Return every option by its name, as a bundle's lock and a lock file have them.

        Targets are recorded by their features, so ``native`` is what it was on the machine that built.
        """
        return {
            "targets": [str(target) for target in self.targets],
            "shapes": {name: list(sizes) for name, sizes in self.shapes},
            "devices": dict(self.devices),
            "place": [list(pair) for pair in self.place],
            "planner": self.planner,
        }
