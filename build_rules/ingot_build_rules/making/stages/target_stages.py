"""The stages that a compilation has for each target of the host: fusion to kernels.

In: ``ModelStages``, a target. Out: ``TargetStages``. Not done here: any stage's own work (one rule
each), the image and the bundle (``compilation``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.making.options.tuning_option import ALL_LAYERS
from ingot_build_rules.making.rules.codegen import CODEGEN, CodegenInputs
from ingot_build_rules.making.rules.codegen_claimed import CODEGEN_CLAIMED
from ingot_build_rules.making.rules.fuse import FUSE, Fused, FuseInputs
from ingot_build_rules.making.rules.lower import LOWER, LowerInputs
from ingot_build_rules.making.rules.lower_claimed import LOWER_CLAIMED
from ingot_build_rules.making.rules.plan_memory import PLAN_MEMORY, PlanInputs
from ingot_build_rules.making.stages.kernel_uses import KernelUses, kernel_uses
from ingot_build_rules.making.stages.model_stages import ModelStages
from ingot_build_rules.making.values.lowered import Lowered
from ingot_build_rules.making.values.native_objects import KernelObject
from ingot_compiler.backends.backend import Backend
from ingot_compiler.ir.errors import LimitError, UnsupportedError, UserError
from ingot_compiler.ir.in_names import error_in_names
from ingot_compiler.lowering.groups.tuned_methods import ALL

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.group_steps import GroupSteps
    from ingot_compiler.memory.memory_plan import MemoryPlan

_LABEL_LEAVES_MAX = 3
Compiled = tuple[Lowered, tuple[KernelObject, ...]]
"""A group's steps and loops, and its kernels."""


class TargetStages:
    """Stages 6 to 9 for one target; each is asked for when it is first needed."""

    def __init__(self, model: ModelStages, position: int) -> None:
        """Take the target at ``position`` of the options."""
        self.position = position
        self.target = model.options.targets[position]
        self._model = model
        self._targets = model.devices.targets(self.target)
        self._codes = model.devices.codes(self.target)

    @cached_property
    def _backends(self) -> tuple[Backend, ...]:
        return self._model.devices.backends()

    async def fused(self) -> Fused:
        """Stage 6."""
        return await self._model.once(f"fused {self.position}", self._fuse)

    async def lowered(self) -> tuple[Lowered, ...]:
        """Stage 7, one per group."""
        fused = await self.fused()
        labels = await self._labels()
        lowered = [self._lowered(fused, group, labels[group]) for group in range(len(labels))]
        return await self._model.build.gather(lowered)

    async def steps(self) -> tuple[GroupSteps, ...]:
        """What runs for each group."""
        return tuple(lowered.steps for lowered in await self.lowered())

    async def plan(self) -> Artifact[MemoryPlan]:
        """Stage 8."""
        fused, steps, model = await self.fused(), await self.steps(), self._model
        options = model.options
        inputs = PlanInputs(
            fused.fused, steps, options.choices.planner, options.pools, 1 + len(options.devices)
        )
        try:
            plan = await model.need(PLAN_MEMORY, inputs, self.target)
        except (UserError, UnsupportedError) as error:
            raise error_in_names(error, await model.names()) from error
        if model.limit.max_bytes is not None:
            from ingot_compiler.lowering.groups.expand_groups import expand_groups

            expanded = expand_groups(await model.build.value(fused.fused), steps)
            try:
                model.limit.check_plan(await model.build.value(plan), expanded, self.target)
            except LimitError as error:
                raise error_in_names(error, await model.names()) from error
        return plan

    async def plan_with_tensors(self) -> Artifact[MemoryPlan]:
        """Stage 8 of C source whose inputs and outputs lie in the workspace."""
        fused, steps, options = await self.fused(), await self.steps(), self._model.options
        inputs = PlanInputs(fused.fused, steps, options.choices.planner, tensors_inside=True)
        return await self._model.need(PLAN_MEMORY, inputs, self.target)

    async def compiled(self) -> tuple[Compiled, ...]:
        """Stages 7 and 9 of each group."""
        return await self._model.once(f"compiled {self.position}", self._compile)

    async def kernel_uses(self) -> KernelUses:
        """Stage 9 before linking: which kernels run on which device."""
        kernels = [kernels for _, kernels in await self.compiled()]
        return kernel_uses(kernels, (await self.fused()).devices)

    async def constant_label(self, leaves: Sequence[str]) -> str:
        """What an explanation calls constants: the weights that they are made from."""
        called = (await self._model.names()).weights
        shown = ", ".join(called[int(leaf)] for leaf in leaves[:_LABEL_LEAVES_MAX])
        more = len(leaves) - _LABEL_LEAVES_MAX
        return f"{shown} and {more} more" if more > 0 else shown or "computed"

    async def _fuse(self) -> Fused:
        model = self._model
        placed, specialisations = await model.placed(), await model.specialisations()
        profiles = (await model.typed()).profiles if specialisations else ()
        hooks = tuple(backend.device_rules for backend in self._backends)
        choices = model.options.choices
        inputs = FuseInputs(
            placed, hooks, self._targets, specialisations, profiles, model.options.other_shapes,
            choices.precision, choices.optimize, await self._methods(),
        )  # fmt: skip
        fused = await model.need(FUSE, inputs, self.target)
        total_bytes = 0
        for constant in fused.constants:
            total_bytes += constant.size_bytes
            where = f"constant {await self.constant_label(constant.leaves)}"
            model.limit.check(constant.work_bytes, "a folded constant", where)
            model.limit.check(total_bytes, f"the constants of {self.target}", where)
        return fused

    async def _methods(self) -> tuple[tuple[int, str], ...]:
        """What was measured of the layers for this target, by the numbers of their nodes.

        Raises:
            UserError: the model has no such layer.
        """
        tuning = self._model.options.tuning
        if tuning is None or tuning.target != self.target:
            return ()
        nodes = (await self._model.names()).nodes
        numbers = {name: number for number, (name, _) in enumerate(nodes)}
        for name, _ in tuning.methods:
            if name not in numbers and name != ALL_LAYERS:
                why, do = "the model has no such node", "write the file anew: `ingot tune MODEL`"
                raise UserError("a tuning file is stale", f"its layer {name}", why, do)
        return tuple((numbers.get(name, ALL), method) for name, method in tuning.methods)

    async def _lowered(self, fused: Fused, group: int, label: str) -> Lowered:
        """By the back end of the group's device, or by the plug-in that has claimed it."""
        device, model = fused.devices[group], self._model
        content, target = fused.groups[group], self._targets[device]
        if plugin := fused.plugins[group]:
            claimed = model.plugins.lowering(plugin, content, target)
            return await model.need(LOWER_CLAIMED, claimed, label)
        inputs = LowerInputs(content, self._backends[device].lower_group, target)
        return await model.need(LOWER, inputs, label)

    async def _compile(self) -> tuple[Compiled, ...]:
        """Each group's loops and kernels; what groups have in common is asked for once."""
        fused = await self.fused()
        labels = await self._labels()
        loops = [backend.kind for backend in self._backends]
        codes = [(backend.kind, target) for backend, target in self._codes]
        keys = [
            (group.digest, loops[device], self._targets[device], codes[device])
            for group, device in zip(fused.groups, fused.devices, strict=True)
        ]
        first = {key: group for group, key in reversed(list(enumerate(keys)))}
        groups = sorted(first.values())
        compiled = [self._compile_group(fused, group, labels[group]) for group in groups]
        found = dict(zip(groups, await self._model.build.gather(compiled), strict=True))
        return tuple(found[first[key]] for key in keys)

    async def _compile_group(self, fused: Fused, group: int, label: str) -> Compiled:
        """A group's kernels are asked for as soon as its own loops are there, not when all are."""
        lowered, model = await self._lowered(fused, group, label), self._model
        device, plugin = fused.devices[group], fused.plugins[group]
        backend, target = self._codes[device]
        labels = [label] * len(lowered.programs)
        if plugin:
            found = [model.plugins.codegen(plugin, each, target) for each in lowered.kernels]
            claimed = [inputs for inputs in found if inputs is not None]
            if claimed:
                return lowered, await model.need_all(CODEGEN_CLAIMED, claimed, labels)
        inputs = [
            CodegenInputs(kernel, backend.compile_kernel, target) for kernel in lowered.kernels
        ]
        return lowered, await model.need_all(CODEGEN, inputs, labels)

    async def _labels(self) -> tuple[str, ...]:
        return await self._model.once(f"labels {self.position}", self._make_labels)

    async def _make_labels(self) -> tuple[str, ...]:
        """For each group its target and the nodes that it came from."""
        fused, names = await self.fused(), await self._model.names()
        return tuple(
            f"{self.target}: {names.describe(source) or 'layout'}" for source in fused.sources
        )
