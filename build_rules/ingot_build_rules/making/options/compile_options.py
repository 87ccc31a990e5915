"""What decides a bundle beside the model, in canonical form.

In: checked values. Out: ``CompileOptions``. Not done here: texts of the user, ``native``
(``options``), options again from plain values (``recorded_options``).
"""

from __future__ import annotations

from ingot_build_rules.making.options.op_option import OpOption
from ingot_build_rules.making.options.option_rows import DEFAULTS, GENERAL, Choices, recorded
from ingot_build_rules.making.options.tuning_option import TuningOption
from ingot_compiler.plugins.settings import PluginSettings
from ingot_runtime.lazy_dataclass import dataclass

HOST = "host"
AUTO = "auto"
"""In the place of a device: the cost model chooses one."""
OR = "|"
"""Between the kinds that one device may be."""


@dataclass(frozen=True, slots=True)
class DeviceOption:
    """A virtual device beside the host: ``id`` says which device of its kind it is until a load
    says otherwise; ``target``, as its back end prints it, is what its code is for; ``scope`` names
    a memory of it ("" is its own). ``alternatives``: what it may be instead, of the same name, the
    first that a machine has counts."""

    name: str
    kind: str
    id: int
    target: str
    scope: str = ""
    alternatives: tuple[DeviceOption, ...] = ()

    @property
    def all(self) -> tuple[DeviceOption, ...]:
        """What it may be, the first choice first."""
        return (self, *self.alternatives)

    @property
    def codes(self) -> tuple[tuple[str, str], ...]:
        """Kind and target of each of these."""
        return tuple((each.kind, each.target) for each in self.all)

    def __str__(self) -> str:
        scope = f",scope={self.scope}" if self.scope else ""
        own = f"{self.kind}:{self.id},target={self.target}{scope}"
        return OR.join((own, *map(str, self.alternatives)))


@dataclass(frozen=True, slots=True)
class PluginOption:
    """A target from outside: ``where`` it is, "module:attribute", and what it is told."""

    where: str
    settings: PluginSettings

    def plain(self) -> dict[str, object]:
        """Return it as a bundle's lock has it."""
        attributes = dict(self.settings.attributes)
        return {"target": self.where, "name": self.settings.plugin, "attributes": attributes}


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Everything that decides the bundle beside the model; sorted where order means nothing.

    ``targets``: of the host, as their back end prints them. ``shapes``: one profile each, (input
    name, shape) in the order of the names. ``devices``: by name, without the host. ``place``: (glob
    over node names, device name or ``auto``), the last match counts. ``plugins``: in the order in
    which the user names them. ``values``: those of ``choices``, which artifacts have as a tuple.
    ``ops``: definitions of the user, by name. ``tuning``: what was measured of the layers.
    """

    targets: tuple[str, ...]
    shapes: tuple[tuple[tuple[str, str], ...], ...] = ()
    devices: tuple[DeviceOption, ...] = ()
    place: tuple[tuple[str, str], ...] = ()
    other_shapes: str = GENERAL
    values: tuple[str | bool | tuple[str, ...], ...] = DEFAULTS
    plugins: tuple[PluginOption, ...] = ()
    ops: tuple[OpOption, ...] = ()
    tuning: TuningOption | None = None

    @property
    def choices(self) -> Choices:
        """The options that mean the same everywhere."""
        return Choices._make(self.values)

    @property
    def pools(self) -> tuple[tuple[str, int | None], ...]:
        """Name and limit in bytes, None for none, of the pools that the host's values lie in."""
        parts = (text.partition("=") for text in self.choices.pools)
        return tuple((name, int(limit) if equals else None) for name, equals, limit in parts)

    def plain(self) -> dict[str, object]:
        """Return every option by its name, as a bundle's lock and a lock file have them.

        Targets are recorded by their features, so ``native`` is what it was on the machine that
        built.
        """
        plugins = {"plugins": [plugin.plain() for plugin in self.plugins]} if self.plugins else {}
        ops = {"ops": [option.plain() for option in self.ops]} if self.ops else {}
        tuning = {"tuning": self.tuning.plain()} if self.tuning else {}
        return {
            **plugins,
            **ops,
            **tuning,
            "targets": list(self.targets),
            "shapes": [dict(profile) for profile in self.shapes],
            "devices": {device.name: str(device) for device in self.devices},
            "place": [list(pair) for pair in self.place],
            "other_shapes": self.other_shapes,
            **recorded(self.choices),
        }
