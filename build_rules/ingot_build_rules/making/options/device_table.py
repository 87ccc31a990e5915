"""The devices of a compilation by their numbers, and which library has the code of each.

In: the devices beside the host. Out: ``DeviceTable``. Not done here: reading what the user says of
a device (``device_options``), the libraries themselves (``compilation``).
"""

from __future__ import annotations

from ingot_build_rules.making.options.compile_options import HOST, DeviceOption
from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.registry import backend_of
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice
from ingot_runtime.format.plan import DEVICE_KINDS
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

Codes = tuple[tuple[str, str], ...]
"""Kind and target of what a device may be, the first choice first."""
HOST_ROW = (0, -1)
"""A host in the device table as `main` knows it: kind, no library."""


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """The host is device 0; ``others`` follow in their order, by name."""

    others: tuple[DeviceOption, ...]

    def libraries(self) -> tuple[Codes, ...]:
        """The codes of each library kind and target, followed by those of its alternatives, in the
        order of the first device that has them."""
        return tuple(dict.fromkeys(device.codes for device in self.others))

    def library_of(self, device: DeviceOption) -> int:
        """The number of the library with the code of a device beside the host."""
        return self.libraries().index(device.codes)

    def alternatives(self) -> dict[str, tuple[VirtualDevice, ...]]:
        """By name, what a device may be instead."""
        return {
            device.name: tuple(map(_virtual, device.alternatives))
            for device in self.others
            if device.alternatives
        }

    def ids(self, library: int, choice: int) -> tuple[tuple[int, int], ...]:
        """For each device whose code is in a library, its number and which device of the kind it
        is, if it is what was named as number ``choice`` (0: the first)."""
        devices = self.devices_of(library)
        return tuple((number, self.others[number - 1].all[choice].id) for number in devices)

    def devices_of(self, library: int) -> tuple[int, ...]:
        """The numbers of the devices whose code is in a library."""
        return tuple(
            number
            for number, device in enumerate(self.others, 1)
            if self.library_of(device) == library
        )

    def backends(self) -> tuple[Backend, ...]:
        """The back end that makes loops for each device, the host's first."""
        kinds = (_loops_of(device.codes)[0] for device in self.others)
        return tuple(map(backend_of, (HOST, *kinds)))

    def targets(self, host_target: str) -> tuple[str, ...]:
        """What the loops of each device are for, the host's first."""
        return (host_target, *(_loops_of(device.codes)[1] for device in self.others))

    def codes(self, host_target: str) -> tuple[tuple[Backend, str], ...]:
        """The back end that makes code for each device, and for which target, the host's first."""
        others = [(backend_of(device.kind), device.target) for device in self.others]
        return ((backend_of(HOST), host_target), *others)

    def refusals(self) -> tuple[str, ...]:
        """The hook of each device but the host that says which ops it has no code for."""
        return tuple(backend.refuse_op for backend in self.backends()[1:])

    def costs(self) -> tuple[DeviceCosts, ...]:
        """What each device costs.

        Raises:
            UnsupportedError: nobody has measured a kind.
        """
        known = [(backend.kind, backend.costs) for backend, _ in self.codes("")]
        for device, (kind, costs) in zip(self.others, known[1:], strict=True):
            if costs is None:
                raise UnsupportedError(
                    f"the costs of {kind!r} devices are not known",
                    OptionRef("device", f"{device.name}={device}"),
                    "auto compares devices by what they cost, and nobody has measured this kind",
                    "place the nodes by hand",
                )
        return tuple(costs for _, costs in known if costs is not None)

    def product_shares(self) -> tuple[str, ...]:
        """The hook of each device that says which products it really makes."""
        return tuple(backend.product_share for backend, _ in self.codes(""))

    def declared(self) -> tuple[DeclaredDevice, ...]:
        """The devices as placement knows them."""
        others = [DeclaredDevice(device.name, _virtual(device)) for device in self.others]
        return (DeclaredDevice(HOST, VirtualDevice(HOST_TYPE, 0)), *others)

    def rows(self) -> tuple[tuple[int, int], ...]:
        """The devices as `main` knows them: kind and library of each."""
        others = [(kind_code(device.kind), self.library_of(device)) for device in self.others]
        return (HOST_ROW, *others)


def _loops_of(codes: Codes) -> tuple[str, str]:
    """Whose loops all of these can run: of the one that has scratch for the most who run at a
    time."""
    return max(codes, key=lambda code: backend_of(code[0]).scratch_places)


def kind_code(kind: str) -> int:
    """The number of a kind of device in a bundle."""
    return DEVICE_KINDS.index(kind)


def _virtual(device: DeviceOption) -> VirtualDevice:
    return VirtualDevice(device.kind, device.id, f"{device.kind}:{device.target}", device.scope)
