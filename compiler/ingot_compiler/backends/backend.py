"""What a back end says of itself: the kind of device that it makes code for, and where its hooks
are.

In: nothing. Out: ``Backend``, the types of its hooks. Not done here: the list (``registry``), any
hook (one folder per back end).

A hook is named, "module:attribute", and not imported: an action that needs one hook of one back end
has the code of that module in its key, and no code of other back ends or of hooks that it does not
need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph, Node
    from ingot_compiler.ir.message import Text
    from ingot_compiler.lowering.fusion.device_rules import DeviceRules
    from ingot_compiler.lowering.groups.fused import Group
    from ingot_compiler.lowering.groups.group_steps import LoweredGroup
    from ingot_compiler.lowering.loops.program import LoopProgram


class Target(Protocol):
    """What code is made for, as everybody may know it; the rest is known to its back end. Elsewhere
    a target is its text."""

    @property
    def features(self) -> tuple[str, ...]:
        """What the loader must find on the device before it runs the code, sorted."""
        ...

    @property
    def rank(self) -> int:
        """Order of preference between targets of one back end that a device can run: higher is
        better."""
        ...

    def __str__(self) -> str:
        """Return the canonical text, which ``parse_target`` reads back as an equal target."""
        ...


RefuseOpFor = Callable[["Node", "Graph", str], "Text"]
"""(node, its graph, target) -> why a device that runs the target has no code for the node, and what
it runs; "" where it has. Control flow is never asked about: the host runs it."""
ParseTarget = Callable[[str, Sequence[str]], Target]
"""(text of the user, "" where none was given; the targets of the host that the bundle is made for)
-> target.

Raises UserError where the text is no target of this back end, or where one must be given."""
MakeDeviceRules = Callable[[str], "DeviceRules"]
"""Target -> what fusion is told of a device that runs it."""
LowerGroup = Callable[["Group", str], "LoweredGroup"]
"""(group of a device that runs the target, target) -> its launches and their loops."""
CompileKernel = Callable[["LoopProgram", str], tuple[str, bytes]]
"""(what the kernel does, target) -> (its symbol, a function of the program and of the back end's
version; its object)."""
CompileSupport = Callable[[str], bytes]
"""Target -> the object of what every image of it needs beside kernels; empty where that is
nothing."""
LinkImage = Callable[[Sequence[tuple[str, bytes]], "bytes | None", bytes, str], bytes]
"""(symbol and object of each kernel in the order of the image's table; `main`, which the host's
variants alone have; support; target) -> the bytes of the bundle's section. The same inputs give the
same bytes on every machine."""


KernelText = Callable[["LoopProgram", str], str]
"""(what the kernel does, target) -> the text of its code, for people."""
CountKernels = Callable[[bytes], int]
"""A library that is a table and texts -> how many kernels its table lists, -1 where it is none."""


@dataclass(frozen=True, slots=True)
class TargetAttribute:
    """One attribute of a target, a text or a list of texts; in the target's text ``prefix`` stands
    before each. ``example``: a value."""

    name: str
    prefix: str
    example: str
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Backend:
    """One kind of device, as ``ingot_runtime.format.plan.DEVICE_KINDS`` names it, and its hooks, of
    the types above.

    ``costs``: measured once by ``tests/benchmarks/bench_placement.py``, which says how far they are
    from the truth; none, and ``--place auto`` cannot be asked for. ``product_share``: a hook of the
    type ``placement.predicted_time.ProductShare``.
    ``is_processor``: its code runs on the host's processor, whose targets are its own.
    ``attributes``: of its targets, in the order of their text, the first one required; none if a
    target is a text and nothing else. ``derived``: what follows from them. ``tags``: the group of
    ``targets.toml`` that has names of its targets. ``scopes``: the memories of a device that a user
    may name, None where any name may be one. ``loops_for``: a target of processors that runs the
    same loops, so that a device may be either; empty where there is none. ``scratch_places``: how
    many times its loops have the scratch of one who runs them; a back end with fewer runs them too.
    ``target_prefix``: what the texts of its targets begin with, where they are no processors.
    """

    kind: str
    parse_target: str
    device_rules: str
    lower_group: str
    compile_kernel: str
    compile_support: str
    link_image: str
    refuse_op: str = "ingot_compiler.placement.placing_rules:refuse_nothing"
    product_share: str = "ingot_compiler.placement.predicted_time:all_products"
    costs: DeviceCosts | None = None
    is_processor: bool = False
    attributes: tuple[TargetAttribute, ...] = ()
    derived: tuple[str, ...] = ()
    tags: str = ""
    scopes: tuple[str, ...] | None = None
    loops_for: str = ""
    scratch_places: int = 1
    target_prefix: str | None = None
    kernel_text: str | None = None
    count_kernels: str | None = None
