"""The host's back end: LLVM makes the code of its processors, LLD puts it together.

In: nothing. Out: ``BACKEND``. Not done here: the hooks; `main`, which is the host's alone
(``host.main``).
"""

from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.host.target_attributes import ATTRIBUTES, DERIVED
from ingot_compiler.placement.device_costs import DeviceCosts

BACKEND = Backend(
    kind="host",
    parse_target="ingot_compiler.backends.host.hooks:read_target",
    device_rules="ingot_compiler.backends.host.hooks:device_rules",
    lower_group="ingot_compiler.backends.host.hooks:lower_group",
    compile_kernel="ingot_compiler.backends.host.hooks:compile_kernel",
    compile_support="ingot_compiler.backends.host.hooks:compile_support",
    link_image="ingot_compiler.backends.host.hooks:link_variant",
    product_share="ingot_compiler.kernels.products.product_share:product_share",
    costs=DeviceCosts(112e9, 40e9, 20e9, 12e9, 2 << 20, launch_seconds=0.5e-6),
    attributes=ATTRIBUTES,
    derived=DERIVED,
    tags="processor",
)
