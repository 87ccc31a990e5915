"""The chain of rules from a model to a bundle. Each result is requested when it is needed, so that
``--to`` stops early.

In: a model's source, options, a ``Build``. Out: ``Compilation``: every stage, the bundle's parts.
Not done here: any stage's own work (one rule each), files.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, cast

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.making.options.compile_options import HOST, CompileOptions
from ingot_build_rules.making.options.device_table import HOST_ROW, kind_code
from ingot_build_rules.making.rules.bundle import BUNDLE, BundleInputs, BundleParts
from ingot_build_rules.making.rules.codegen import CODEGEN, CodegenInputs
from ingot_build_rules.making.rules.codegen_main import CODEGEN_MAIN, MainInputs
from ingot_build_rules.making.rules.codegen_support import CODEGEN_SUPPORT, SupportInputs
from ingot_build_rules.making.rules.digest_weights import DIGEST_WEIGHTS, DigestInputs
from ingot_build_rules.making.rules.fuse import FusedConstant
from ingot_build_rules.making.rules.link import LINK, LinkInputs
from ingot_build_rules.making.rules.names import NAMES, NamesInputs
from ingot_build_rules.making.rules.pack_constant import PACK_CONSTANT, PackInputs
from ingot_build_rules.making.rules.variant import Alternative, Library, Variant
from ingot_build_rules.making.stages.alternatives import programs_of
from ingot_build_rules.making.stages.claimed_code import claimed_support
from ingot_build_rules.making.stages.kernel_uses import KernelUses, kernel_uses, kernels_on
from ingot_build_rules.making.stages.model_source import ModelSource
from ingot_build_rules.making.stages.model_stages import ModelStages
from ingot_build_rules.making.stages.target_stages import Compiled, TargetStages
from ingot_build_rules.making.stages.toolchain import Toolchain
from ingot_build_rules.making.stages.weight_layout import WeightLayout, lay_out
from ingot_build_rules.making.values.interface import Interface, signatures_of
from ingot_build_rules.making.values.native_objects import KernelObject, MainObject
from ingot_build_rules.making.values.packed_constant import PackedConstant
from ingot_compiler.backends.registry import backend_of, parse_target
from ingot_compiler.targets.target import processor_models
from ingot_runtime.format.interface import LibrarySignature

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.group_steps import GroupSteps
    from ingot_compiler.lowering.loops.program import LoopProgram
    from ingot_compiler.memory.memory_plan import MemoryPlan

    _CompiledParts = tuple[tuple[Compiled, ...], Artifact[MemoryPlan], Artifact[memoryview]]
    _PackedParts = tuple[tuple[PackedConstant, ...], Artifact[memoryview]]

_Pending = Coroutine[Any, Any, object]


class Compilation(ModelStages):
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
        super().__init__(build, source, options, max_bytes)
        self.targets = tuple(TargetStages(self, number) for number in range(len(options.targets)))
        self._toolchain = toolchain

    async def variant(self, position: int) -> Variant:
        """Stage 10 of the target at ``position`` of the options: the image and all that it was made
        from."""
        stages = self.targets[position]
        return await self.once(f"variant {position}", lambda: self._variant(stages))

    async def variants(self) -> tuple[Variant, ...]:
        """Stage 10 of every target."""
        return await self.build.gather([self.variant(each.position) for each in self.targets])

    async def libraries(self) -> tuple[Library, ...]:
        """The code of the devices beside the host."""
        return await self.once("libraries", self._make_libraries)

    async def kernel_counts(self) -> tuple[int, ...]:
        """For each device beside the host, how many kernels its library has."""
        return tuple(len(kernels) for kernels in await self._library_kernels())

    async def layout(self) -> WeightLayout:
        """Where every constant of every variant lies."""
        return await self.once("layout", self._lay_out)

    async def interface(self) -> Interface:
        """Inputs and outputs with the user's names."""
        fused, names = await self.targets[0].fused(), (await self.imported()).names
        typed = await self.typed()
        own = fused.inputs, fused.outputs
        return await self.need(NAMES, NamesInputs(names, *own, typed.contradictions, typed.forms))

    async def bundle_parts(self) -> BundleParts:
        """Stage 11: all of the bundle but the file."""
        return await self.once("bundle_parts", self._bundle)

    # -- how each is made --------------------------------------------------------------------------

    async def _lay_out(self) -> WeightLayout:
        fused = await self.build.gather([stages.fused() for stages in self.targets])
        constants = [
            [(part.name, part.size_bytes, part.device) for part in item.constants] for item in fused
        ]
        return lay_out(constants, 1 + len(self.options.devices))

    async def _variant(self, stages: TargetStages) -> Variant:
        fused, target = await stages.fused(), stages.target
        parts: list[_Pending] = [stages.compiled(), stages.plan(), self._support(HOST, target)]
        compiled, plan, support = cast("_CompiledParts", await self.build.gather(parts))
        uses = kernel_uses([own for _, own in compiled], fused.devices)
        kernels = kernels_on((0,), [uses])
        main = await self._main(stages, compiled, plan, uses, kernels)
        support = await claimed_support(self, stages, compiled, support)
        link = _link_inputs(HOST, target, kernels, support, main.content)
        image, known = await self.need(LINK, link, target), parse_target(HOST, target)
        return Variant(
            target,
            known.features,
            known.rank,
            fused.fused,
            _steps(compiled),
            _programs(compiled),
            uses.symbols(),
            kernels,
            plan,
            main,
            image,
            processor_models(target, self.options.targets),
        )

    async def _main(
        self,
        stages: TargetStages,
        compiled: tuple[Compiled, ...],
        plan: Artifact[MemoryPlan],
        uses: KernelUses,
        kernels: tuple[KernelObject, ...],
    ) -> MainObject:
        """The `main` of one variant; ``kernels``: those of its image."""
        fused, libraries = await stages.fused(), await self.libraries()
        images, layout = (kernels, *await self._library_kernels()), await self.layout()
        inputs, outputs = signatures_of(fused.inputs, fused.outputs)
        main = MainInputs(
            fused=fused.fused,
            steps=_steps(compiled),
            programs=_programs(compiled),
            kernel_indices=uses.positions_in(images),
            symbols=tuple(kernel.symbol for kernel in kernels),
            plan=plan,
            constant_offsets=layout.offsets_bytes[stages.position],
            weights_bytes=layout.section_bytes[0],
            inputs=inputs,
            outputs=outputs,
            devices=(*self.devices.rows(), *(HOST_ROW for _ in self.options.pools)),
            libraries=tuple(map(_library_code, libraries)),
            target=stages.target,
        )
        return await self.need(CODEGEN_MAIN, main, stages.target)

    async def _make_libraries(self) -> tuple[Library, ...]:
        """One for each kind of device and target, with what any variant launches there."""
        await self.build.gather([stages.compiled() for stages in self.targets])
        uses = [await stages.kernel_uses() for stages in self.targets]
        found: list[Library] = []
        for number, ((kind, target), *_) in enumerate(self.devices.libraries()):
            kernels = kernels_on(self.devices.devices_of(number), uses)
            found.append(await self._library(kind, target, kernels))
        return tuple(found)

    async def _library(self, kind: str, target: str, kernels: tuple[KernelObject, ...]) -> Library:
        link = _link_inputs(kind, target, kernels, await self._support(kind, target))
        image = await self.need(LINK, link, f"{kind} {target}")
        return Library(kind, target, parse_target(kind, target).features, kernels, image)

    async def _alternatives(self) -> tuple[Alternative, ...]:
        """The libraries once more, for what their devices may be instead."""
        libraries, found = await self.libraries(), list[Alternative]()
        for number, codes in enumerate(self.devices.libraries()):
            devices = self.devices.devices_of(number)
            for choice, (kind, target) in enumerate(codes[1:], 1):
                programs = await programs_of(libraries[number].kernels, devices, self.targets)
                hook = backend_of(kind).compile_kernel
                inputs = [CodegenInputs(program, hook, target) for program in programs]
                kernels = await self.need_all(CODEGEN, inputs, [f"{kind} {target}"] * len(inputs))
                library = await self._library(kind, target, kernels)
                found.append(Alternative(library, number, self.devices.ids(number, choice)))
        return tuple(found)

    async def _library_kernels(self) -> tuple[tuple[KernelObject, ...], ...]:
        """For each device beside the host, the kernels of its library."""
        libraries = await self.libraries()
        numbers = map(self.devices.library_of, self.devices.others)
        return tuple(libraries[number].kernels for number in numbers)

    async def _support(self, kind: str, target: str) -> Artifact[memoryview]:
        inputs = SupportInputs(backend_of(kind).compile_support, target)
        return await self.need(CODEGEN_SUPPORT, inputs, target)

    async def packed_constants(self) -> tuple[PackedConstant, ...]:
        """The constants as kernels read them, in the order of the file."""
        layout, weights = await self.layout(), (await self.imported()).weights
        fused = [(await stages.fused()).constants for stages in self.targets]
        constants = [fused[place.variant][place.number] for place in layout.constants]
        together: dict[str, list[FusedConstant]] = {}
        for constant in (constant for variant in fused for constant in variant):
            together.setdefault(constant.expressions.digest, []).append(constant)
        wanted = dict.fromkeys(constant.expressions.digest for constant in constants)
        inputs: list[PackInputs] = []
        labels: list[str] = []
        for batch in map(together.__getitem__, wanted):
            read = tuple(dict.fromkeys(leaf for part in batch for leaf in part.leaves))
            leaves = tuple((leaf, weights[int(leaf)]) for leaf in read)
            size_bytes = max(part.start_bytes + part.size_bytes for part in batch)
            inputs.append(PackInputs(batch[0].expressions, leaves, size_bytes))
            labels.append(await self.targets[0].constant_label(read))
        packed = await self.need_all(PACK_CONSTANT, inputs, labels)
        contents = dict(zip(wanted, packed, strict=True))
        return tuple(
            PackedConstant(
                place.offset_bytes,
                place.size_bytes,
                contents[constant.expressions.digest],
                constant.start_bytes,
            )
            for place, constant in zip(layout.constants, constants, strict=True)
        )

    async def _packed(self) -> _PackedParts:
        """The constants, and the tree over them."""
        packed, layout = await self.packed_constants(), await self.layout()
        target = self.options.targets[0]
        support = await self._support(HOST, target)
        digest = DigestInputs(packed, layout.section_bytes, support, target)
        return packed, await self.need(DIGEST_WEIGHTS, digest)

    async def _bundle(self) -> BundleParts:
        # What the format cannot hold is refused before code is made.
        interface = await self.interface()
        parts: list[_Pending] = [self.variants(), self._packed()]
        variants, (packed, tree) = cast(
            "tuple[tuple[Variant, ...], _PackedParts]", await self.build.gather(parts)
        )
        imported, layout = await self.imported(), await self.layout()
        inputs = BundleInputs(
            names=await self.full_names(),
            interface=interface,
            graph=await self.graph(),
            optimized=await self.optimized(),
            placed=await self.placed(),
            specialisations=await self.specialisations(),
            profiles=(await self.typed()).profiles,
            options=self.options,
            variants=variants,
            libraries=await self.libraries(),
            alternatives=await self._alternatives(),
            device_libraries=tuple(map(self.devices.library_of, self.devices.others)),
            ranges=layout.ranges,
            packed=packed,
            tree=tree,
            weights_bytes=layout.section_bytes,
            weights=tuple(weight.digest for weight in imported.weights),
            defaults=imported.defaults,
            toolchain=self._toolchain,
        )
        return await self.need(BUNDLE, inputs)


def _steps(compiled: Iterable[Compiled]) -> tuple[GroupSteps, ...]:
    return tuple(lowered.steps for lowered, _ in compiled)


def _programs(compiled: Iterable[Compiled]) -> tuple[Artifact[LoopProgram], ...]:
    return tuple(program for lowered, _ in compiled for program in lowered.programs)


def _link_inputs(
    kind: str,
    target: str,
    kernels: tuple[KernelObject, ...],
    support: Artifact[memoryview],
    main: Artifact[memoryview] | None = None,
) -> LinkInputs:
    """What is linked to an image of ``kernels``; a library has no `main`."""
    contents = tuple((kernel.symbol, kernel.content) for kernel in kernels)
    return LinkInputs(contents, main, support, backend_of(kind).link_image, target)


def _library_code(library: Library) -> LibrarySignature:
    """A library as `main` knows it."""
    return kind_code(library.kind), library.target, library.features, len(library.kernels)
