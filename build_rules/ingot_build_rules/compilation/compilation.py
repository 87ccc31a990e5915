"""The chain of rules from a model to a bundle: who asks for what, lazily, so that ``--to`` stops
early.

In: a model's source, options, a ``Build``. Out: ``Compilation``: every stage, the bundle's parts.
Not done here: any stage's own work (one rule each), files.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ingot_build_rules.compilation.memory_limit import MemoryLimit
from ingot_build_rules.compilation.model_source import ModelSource
from ingot_build_rules.compilation.weight_layout import PlacedConstant, WeightLayout, lay_out
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.rule import Inputs, Output, Rule
from ingot_build_rules.rules.bundle import BUNDLE, BundleInputs, BundleParts
from ingot_build_rules.rules.codegen import CODEGEN, CodegenInputs
from ingot_build_rules.rules.codegen_main import CODEGEN_MAIN, MainInputs
from ingot_build_rules.rules.codegen_support import CODEGEN_SUPPORT, SupportInputs
from ingot_build_rules.rules.compile_options import HOST, CompileOptions, DeviceOption
from ingot_build_rules.rules.digest_weights import DIGEST_WEIGHTS, DigestInputs
from ingot_build_rules.rules.fuse import FUSE, Fused, FusedConstant, FuseInputs
from ingot_build_rules.rules.import_model import IMPORT_MODEL, Imported, ImportInputs
from ingot_build_rules.rules.infer_types import INFER_TYPES, InferInputs
from ingot_build_rules.rules.interface import Interface, signatures_of
from ingot_build_rules.rules.kernel_object import KernelObject
from ingot_build_rules.rules.link import LINK, LinkInputs
from ingot_build_rules.rules.lower import LOWER, Lowered, LowerInputs
from ingot_build_rules.rules.main_object import MainObject
from ingot_build_rules.rules.names import NAMES, NamesInputs
from ingot_build_rules.rules.optimize import OPTIMIZE, OptimizeInputs
from ingot_build_rules.rules.pack_constant import PACK_CONSTANT, PackInputs
from ingot_build_rules.rules.packed_constant import PackedConstant
from ingot_build_rules.rules.place import PLACE, PlaceInputs
from ingot_build_rules.rules.plan_memory import PLAN_MEMORY, PlanInputs
from ingot_build_rules.rules.variant import Library, Variant
from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.registry import backend_of, parse_target
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.in_names import error_in_names, refers
from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice
from ingot_runtime.format.interface import LibrarySignature
from ingot_runtime.format.plan import DEVICE_KINDS
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph, Names, OptimizedGraph
    from ingot_compiler.lowering.group_steps import GroupSteps
    from ingot_compiler.lowering.loops import LoopProgram
    from ingot_compiler.memory.memory_plan import MemoryPlan
    from ingot_compiler.placement.placed import PlacedGraph

HOST_CODE = (0, -1)
"""A host in the device table as `main` knows it: kind, no library."""
Value = TypeVar("Value")
Compiled = tuple[Lowered, tuple[KernelObject, ...]]
"""A group's steps and loops, and its kernels."""
Toolchain = tuple[tuple[str, str], ...]
"""(name, version or digest) of what a bundle's lock names."""


class Compilation:
    """One bundle; each stage is asked for when it is first needed."""

    def __init__(
        self,
        build: Build,
        source: ModelSource,
        options: CompileOptions,
        toolchain: Toolchain,
        max_bytes: int | None = None,
    ) -> None:
        """Ask for nothing yet."""
        self._limit = MemoryLimit(max_bytes)
        self.build = build
        self.options = options
        self._source = source
        self._toolchain = toolchain
        self._made: dict[str, Any] = {}

    async def imported(self) -> Imported:
        """Stage 2, its names and weights."""
        return await self._once("imported", self._import)

    async def source_paths(self) -> tuple[str, ...]:
        """The model's file, and those beside it that import has read; none for a model that came as
        bytes."""
        path = self._source.path
        beside = (await self.imported()).external
        return (
            (path, *(os.path.join(os.path.dirname(path), name) for name in beside)) if path else ()
        )

    async def names(self) -> Names:
        """What the user called things."""
        return await self.build.value((await self.imported()).names)

    async def graph(self) -> Artifact[Graph]:
        """Stage 3."""
        imported = await self.imported()
        return await self.need(INFER_TYPES, InferInputs(imported.model, imported.weights))

    async def optimized(self) -> Artifact[OptimizedGraph]:
        """Stage 4."""
        return await self.need(OPTIMIZE, OptimizeInputs(await self.graph()))

    async def placed(self) -> Artifact[PlacedGraph]:
        """Stage 5."""
        return await self._once("placed", self._place)

    async def specialisation(self) -> Artifact[PlacedGraph] | None:
        """Stage 5 once more, for the sizes of ``--shape``; None without them."""
        return await self._once("specialisation", self._place_specialisation)

    async def fused(self, position: int) -> Fused:
        """Stage 6 of the target at ``position`` of the options."""
        return await self._once(f"fused {position}", lambda: self._fuse(position))

    async def lowered(self, position: int) -> tuple[Lowered, ...]:
        """Stage 7, one per group."""
        fused = await self.fused(position)
        inputs = [self._lowering(fused, group, position) for group in range(len(fused.groups))]
        return await self.need_all(LOWER, inputs, await self._labels(position))

    async def steps(self, position: int) -> tuple[GroupSteps, ...]:
        """What runs for each group."""
        return tuple(lowered.steps for lowered in await self.lowered(position))

    async def plan(self, position: int) -> Artifact[MemoryPlan]:
        """Stage 8."""
        fused = await self.fused(position)
        label = self._target_label(position)
        steps = await self.steps(position)
        plan = await self.need(
            PLAN_MEMORY, PlanInputs(fused.fused, steps, self.options.planner), label
        )
        if self._limit.max_bytes is not None:
            from ingot_compiler.lowering.expand_groups import expand_groups

            expanded = expand_groups(await self.build.value(fused.fused), steps)
            try:
                self._limit.check_plan(await self.build.value(plan), expanded, label)
            except LimitError as error:
                raise error_in_names(error, await self.names()) from error
        return plan

    async def kernels(self, position: int) -> tuple[KernelObject, ...]:
        """Stage 9 before linking: one per program of each group; equal kernels are the same
        object."""
        return _kernels(await self._compiled(position))

    async def variant(self, position: int) -> Variant:
        """Stage 10: the image and all that it was made from."""
        return await self._once(f"variant {position}", lambda: self._variant(position))

    async def variants(self) -> tuple[Variant, ...]:
        """Stage 10 of every target."""
        return await self.build.gather([self.variant(position) for position in self._positions()])

    async def libraries(self) -> tuple[Library, ...]:
        """The code of the devices beside the host."""
        return await self._once("libraries", self._make_libraries)

    async def kernel_counts(self) -> tuple[int, ...]:
        """For each device beside the host, how many kernels its library has."""
        libraries = await self.libraries()
        return tuple(
            len(libraries[self._library_of(device)].kernels) for device in self.options.devices
        )

    async def layout(self) -> WeightLayout:
        """Where every constant of every variant lies."""
        return await self._once("layout", self._lay_out)

    async def interface(self) -> Interface:
        """Inputs and outputs with the user's names."""
        fused, names = await self.fused(0), (await self.imported()).names
        return await self.need(NAMES, NamesInputs(names, fused.inputs, fused.outputs))

    async def bundle_parts(self) -> BundleParts:
        """Stage 11: all of the bundle but the file."""
        return await self._once("bundle_parts", self._bundle)

    async def need(self, rule: Rule[Inputs, Output], inputs: Inputs, label: str = "") -> Output:
        """Return one rule's result."""
        return (await self.need_all(rule, (inputs,), (label,)))[0]

    async def need_all(
        self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs], labels: Sequence[str] = ()
    ) -> tuple[Output, ...]:
        """Return a rule's results; stages after import refer to nodes by ordinal, their errors get
        the names here."""
        try:
            return await self.build.need_all(rule, inputs, labels)
        except IngotError as error:
            if isinstance(error, LimitError) and not error.where:
                raise error.at(next(filter(None, labels), rule.name)) from error
            if refers(error):
                raise error_in_names(error, await self.names()) from error
            raise

    # -- how each is made --------------------------------------------------------------------------

    async def _once(self, name: str, make: Callable[[], Awaitable[Value]]) -> Value:
        if name not in self._made:
            self._made[name] = await make()
        return cast("Value", self._made[name])

    async def _import(self) -> Imported:
        source, options = self._source, self.options
        content = None if source.path else self.build.keep_bytes(source.content)
        inputs = ImportInputs(
            source.digest, options.shapes, options.place, source.name, source.path, source.state, content,
            self._limit.max_bytes,
        )  # fmt: skip
        imported = await self.build.need(IMPORT_MODEL, inputs)
        if self._limit.max_bytes is not None:
            expanded_bytes = (await self.build.value(imported.model)).expanded_bytes
            self._limit.check(
                expanded_bytes,
                "the expansion of the model's own functions",
                f"model {source.name!r}",
            )
        return imported

    async def _place(self) -> Artifact[PlacedGraph]:
        return await self.need(PLACE, PlaceInputs(await self.optimized(), self._devices()))

    async def _place_specialisation(self) -> Artifact[PlacedGraph] | None:
        sizes = (await self.imported()).sizes
        if not sizes:
            return None
        label = ", ".join(f"{name} = {size}" for name, size in sizes)
        optimized = await self.need(OPTIMIZE, OptimizeInputs(await self.graph(), sizes), label)
        return await self.need(PLACE, PlaceInputs(optimized, self._devices()), label)

    async def _fuse(self, position: int) -> Fused:
        placed, specialisation = await self.placed(), await self.specialisation()
        sizes = (await self.imported()).sizes if specialisation else ()
        hooks = tuple(backend.device_rules for backend in self._backends())
        inputs = FuseInputs(placed, hooks, self._targets(position), specialisation, sizes)
        fused = await self.need(FUSE, inputs, self._target_label(position))
        total_bytes = 0
        for constant in fused.constants:
            total_bytes += constant.size_bytes
            where = f"constant {await self._constant_label(constant)}"
            self._limit.check(constant.work_bytes, "a folded constant", where)
            self._limit.check(
                total_bytes, f"the constants of {self._target_label(position)}", where
            )
        return fused

    async def _lay_out(self) -> WeightLayout:
        fused = await self.build.gather([self.fused(position) for position in self._positions()])
        constants = [
            [(part.expression.digest, part.size_bytes, part.device) for part in item.constants]
            for item in fused
        ]
        return lay_out(constants, 1 + len(self.options.devices))

    async def _variant(self, position: int) -> Variant:
        fused, target = await self.fused(position), self.options.targets[position]
        parts: list[Coroutine[Any, Any, object]] = [
            self._compiled(position),
            self.plan(position),
            self._support(HOST, target),
        ]
        compiled, plan, support = cast(
            "tuple[tuple[Compiled, ...], Artifact[MemoryPlan], Artifact[memoryview]]",
            await self.build.gather(parts),
        )
        objects, devices = _kernels(compiled), _devices_of_kernels(compiled, fused.devices)
        libraries = await self.libraries()
        kernels = _distinct(
            kernel for kernel, device in zip(objects, devices, strict=True) if device == 0
        )
        lists = [
            kernels,
            *(libraries[self._library_of(device)].kernels for device in self.options.devices),
        ]
        numbers = [{kernel.symbol: index for index, kernel in enumerate(each)} for each in lists]
        indices = tuple(
            numbers[device][kernel.symbol] for kernel, device in zip(objects, devices, strict=True)
        )
        lowered = tuple(each for each, _ in compiled)
        main = await self._main(position, fused, lowered, plan, indices, tuple(numbers[0]))
        hook, label = backend_of(HOST).link_image, self._target_label(position)
        image = await self.need(
            LINK, LinkInputs(_contents(kernels), main.content, support, hook, target), label
        )
        symbols, known = tuple(kernel.symbol for kernel in objects), parse_target(HOST, target)
        steps, programs = tuple(each.steps for each in lowered), _programs(lowered)
        return Variant(
            target,
            known.features,
            known.rank,
            fused.fused,
            steps,
            programs,
            symbols,
            kernels,
            plan,
            main,
            image,
        )

    async def _make_libraries(self) -> tuple[Library, ...]:
        """One for each kind of device and target, with what any variant launches there."""
        compiled = await self.build.gather(
            [self._compiled(position) for position in self._positions()]
        )
        devices = [(await self.fused(position)).devices for position in self._positions()]
        found: list[Library] = []
        for number, (kind, target) in enumerate(self._codes()):
            mine = [
                index
                for index, each in enumerate(self.options.devices, 1)
                if self._library_of(each) == number
            ]
            groups = [
                pair
                for each in zip(compiled, devices, strict=True)
                for pair in zip(*each, strict=True)
            ]
            kernels = _distinct(
                kernel for (_, own), device in groups if device in mine for kernel in own
            )
            label = f"{kind} {target}"
            hook, features = backend_of(kind).link_image, parse_target(kind, target).features
            inputs = LinkInputs(
                _contents(kernels), None, await self._support(kind, target), hook, target
            )
            found.append(
                Library(kind, target, features, kernels, await self.need(LINK, inputs, label))
            )
        return tuple(found)

    def _codes(self) -> tuple[tuple[str, str], ...]:
        """Kind and target of each library, in the order of the first device that has it."""
        return tuple(dict.fromkeys((device.kind, device.target) for device in self.options.devices))

    def _library_of(self, device: DeviceOption) -> int:
        return self._codes().index((device.kind, device.target))

    def _backends(self) -> tuple[Backend, ...]:
        """The back end of each device, the host's first."""
        return tuple(map(backend_of, (HOST, *(device.kind for device in self.options.devices))))

    def _targets(self, position: int) -> tuple[str, ...]:
        """What each device runs, the host's first."""
        return (self.options.targets[position], *(device.target for device in self.options.devices))

    def _devices(self) -> tuple[DeclaredDevice, ...]:
        others = (
            DeclaredDevice(
                device.name,
                VirtualDevice(
                    device.kind, device.id, f"{device.kind}:{device.target}", device.scope
                ),
            )
            for device in self.options.devices
        )
        return (DeclaredDevice(HOST, VirtualDevice(HOST_TYPE, 0)), *others)

    async def _support(self, kind: str, target: str) -> Artifact[memoryview]:
        return await self.need(
            CODEGEN_SUPPORT, SupportInputs(backend_of(kind).compile_support, target), target
        )

    async def _compiled(self, position: int) -> tuple[Compiled, ...]:
        return await self._once(f"compiled {position}", lambda: self._compile(position))

    async def _compile(self, position: int) -> tuple[Compiled, ...]:
        """For each group its loops and its kernels, asked for as soon as its loops are there, not
        when all are."""
        fused, labels, targets = (
            await self.fused(position),
            await self._labels(position),
            self._targets(position),
        )
        backends = self._backends()

        async def compiled(group: int) -> Compiled:
            device = fused.devices[group]
            lowered = await self.need(LOWER, self._lowering(fused, group, position), labels[group])
            hook = backends[device].compile_kernel
            inputs = [CodegenInputs(program, hook, targets[device]) for program in lowered.programs]
            return lowered, await self.need_all(CODEGEN, inputs, [labels[group]] * len(inputs))

        code = [(backend.kind, target) for backend, target in zip(backends, targets, strict=True)]
        keys = [
            (group.digest, code[at]) for group, at in zip(fused.groups, fused.devices, strict=True)
        ]
        different = {key: number for number, key in reversed(list(enumerate(keys)))}
        numbers = sorted(different.values())
        found = dict(
            zip(numbers, await self.build.gather(list(map(compiled, numbers))), strict=True)
        )
        return tuple(found[different[key]] for key in keys)

    def _lowering(self, fused: Fused, group: int, position: int) -> LowerInputs:
        device = fused.devices[group]
        hook, target = self._backends()[device].lower_group, self._targets(position)[device]
        return LowerInputs(fused.groups[group], hook, target)

    async def _main(
        self,
        position: int,
        fused: Fused,
        lowered: tuple[Lowered, ...],
        plan: Artifact[MemoryPlan],
        indices: tuple[int, ...],
        symbols: tuple[str, ...],
    ) -> MainObject:
        layout = await self.layout()
        inputs, outputs = signatures_of(fused.inputs, fused.outputs)
        return await self.need(
            CODEGEN_MAIN,
            MainInputs(
                fused=fused.fused,
                steps=tuple(each.steps for each in lowered),
                programs=_programs(lowered),
                kernel_indices=indices,
                symbols=symbols,
                plan=plan,
                constant_offsets=layout.offsets_bytes[position],
                weights_bytes=layout.section_bytes[0],
                inputs=inputs,
                outputs=outputs,
                devices=(
                    HOST_CODE,
                    *(
                        (_kind_code(each.kind), self._library_of(each))
                        for each in self.options.devices
                    ),
                ),
                libraries=tuple(map(_library_code, await self.libraries())),
                target=self.options.targets[position],
            ),
            self._target_label(position),
        )

    async def _packed(self) -> tuple[tuple[PackedConstant, ...], Artifact[memoryview]]:
        """The constants as kernels read them, in the order of the file, and the tree over them."""
        layout, weights = await self.layout(), (await self.imported()).weights
        constants = [
            (await self.fused(place.variant)).constants[place.number] for place in layout.constants
        ]
        inputs = [
            PackInputs(
                constant.expression, tuple((leaf, weights[int(leaf)]) for leaf in constant.leaves)
            )
            for constant in constants
        ]
        labels = [await self._constant_label(constant) for constant in constants]
        contents = await self.need_all(PACK_CONSTANT, inputs, labels)
        packed = tuple(map(_packed, layout.constants, contents))
        target = self.options.targets[0]
        digest_inputs = DigestInputs(
            packed, layout.size_bytes, await self._support(HOST, target), target
        )
        return packed, await self.need(DIGEST_WEIGHTS, digest_inputs)

    async def _bundle(self) -> BundleParts:
        interface = (
            await self.interface()
        )  # what the format cannot hold is refused before code is made
        parts: list[Coroutine[Any, Any, object]] = [self.variants(), self._packed()]
        variants, (packed, tree) = cast(
            "tuple[tuple[Variant, ...], tuple[tuple[PackedConstant, ...], Artifact[memoryview]]]",
            await self.build.gather(parts),
        )
        imported, layout = await self.imported(), await self.layout()
        return await self.need(
            BUNDLE,
            BundleInputs(
                names=imported.names,
                interface=interface,
                graph=await self.graph(),
                optimized=await self.optimized(),
                placed=await self.placed(),
                specialisation=await self.specialisation(),
                sizes=imported.sizes,
                options=self.options,
                variants=variants,
                libraries=await self.libraries(),
                ranges=layout.ranges,
                packed=packed,
                tree=tree,
                weights_bytes=layout.section_bytes,
                weights=tuple(weight.digest for weight in imported.weights),
                toolchain=self._toolchain,
            ),
        )

    # -- what explanations call things -------------------------------------------------------------

    def _positions(self) -> range:
        return range(len(self.options.targets))

    def _target_label(self, position: int) -> str:
        return self.options.targets[position]

    async def _labels(self, position: int) -> tuple[str, ...]:
        """For each group its target and the nodes that it came from."""
        return await self._once(f"labels {position}", lambda: self._make_labels(position))

    async def _make_labels(self, position: int) -> tuple[str, ...]:
        fused, names, target = (
            await self.fused(position),
            await self.names(),
            self._target_label(position),
        )
        return tuple(f"{target}: {names.describe(source) or 'layout'}" for source in fused.sources)

    async def _constant_label(self, constant: FusedConstant) -> str:
        called = (await self.names()).weights
        return ", ".join(called[int(leaf)] for leaf in constant.leaves) or "computed"


def _programs(lowered: Iterable[Lowered]) -> tuple[Artifact[LoopProgram], ...]:
    return tuple(program for each in lowered for program in each.programs)


def _kernels(compiled: Iterable[Compiled]) -> tuple[KernelObject, ...]:
    return tuple(kernel for _, kernels in compiled for kernel in kernels)


def _devices_of_kernels(compiled: Iterable[Compiled], devices: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        device for (_, kernels), device in zip(compiled, devices, strict=True) for _ in kernels
    )


def _distinct(kernels: Iterable[KernelObject]) -> tuple[KernelObject, ...]:
    return tuple({kernel.symbol: kernel for kernel in kernels}.values())


def _contents(kernels: Iterable[KernelObject]) -> tuple[tuple[str, Artifact[memoryview]], ...]:
    return tuple((kernel.symbol, kernel.content) for kernel in kernels)


def _kind_code(kind: str) -> int:
    return DEVICE_KINDS.index(kind)


def _library_code(library: Library) -> LibrarySignature:
    """A library as `main` knows it."""
    return _kind_code(library.kind), library.target, library.features, len(library.kernels)


def _packed(place: PlacedConstant, content: Artifact[memoryview]) -> PackedConstant:
    return PackedConstant(place.offset_bytes, place.size_bytes, content)
