"""The back end of ``opencl``: the host's fusion and loops, source text for code.

In: nothing. Out: ``BACKEND``. Not done here: the hooks. There is code for all that the host runs
but control flow, which no device runs, so nothing is refused here.
"""

from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.opencl.c_dims import ITEMS_MAX
from ingot_compiler.placement.device_costs import DeviceCosts

BACKEND = Backend(
    kind="opencl",
    parse_target="ingot_compiler.backends.opencl.read_target:read_target",
    device_rules="ingot_compiler.backends.opencl.hooks:device_rules",
    lower_group="ingot_compiler.backends.opencl.hooks:lower_group",
    compile_kernel="ingot_compiler.backends.opencl.hooks:compile_kernel",
    compile_support="ingot_compiler.backends.host.hooks:no_support",
    link_image="ingot_compiler.backends.opencl.link_library:link_library",
    scopes=("global",),
    loops_for="x86-64-v3",
    scratch_places=ITEMS_MAX,
    target_prefix="opencl-c-",
    kernel_text="ingot_compiler.backends.opencl.kernel_source:kernel_text",
    count_kernels="ingot_compiler.backends.opencl.link_library:kernel_count",
    product_share="ingot_compiler.kernels.products.product_share:product_share",
    costs=DeviceCosts(
        112e9,
        20e9,
        20e9,
        12e9,
        2 << 20,
        launch_seconds=80e-6,
        copy_seconds=35e-6,
        copy_bytes_per_second=8e9,
    ),
)
