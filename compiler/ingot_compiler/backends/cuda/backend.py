"""The back end of ``cuda``: the host's fusion and loops, PTX for code.

In: nothing. Out: ``BACKEND``. Not done here: the hooks. There is code for all that the host runs
but control flow, which no device runs, so nothing is refused here. Nobody has measured its
costs, so ``--place auto`` is refused.
"""

from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.cuda.architectures import GROUPS_MAX

BACKEND = Backend(
    kind="cuda",
    parse_target="ingot_compiler.backends.cuda.read_target:read_target",
    device_rules="ingot_compiler.backends.cuda.hooks:device_rules",
    lower_group="ingot_compiler.backends.cuda.hooks:lower_group",
    compile_kernel="ingot_compiler.backends.cuda.compile_kernel:compile_kernel",
    compile_support="ingot_compiler.backends.host.hooks:no_support",
    link_image="ingot_compiler.backends.cuda.link_library:link_library",
    scopes=("global",),
    loops_for="x86-64-v3",
    scratch_places=GROUPS_MAX,
    target_prefix="sm_",
    kernel_text="ingot_compiler.backends.cuda.compile_kernel:kernel_text",
    count_kernels="ingot_compiler.backends.cuda.link_library:kernel_count",
)
