"""The back end of ``null``: kernels and support are the host's, its library has no `main`.

In: nothing. Out: ``BACKEND``. Not done here: the hooks.
"""

from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.host.target_attributes import ATTRIBUTES, DERIVED
from ingot_compiler.placement.device_costs import DeviceCosts

BACKEND = Backend(
    kind="null",
    parse_target="ingot_compiler.backends.host.read_device_target:read_device_target",
    device_rules="ingot_compiler.backends.host.device_rules:device_rules",
    lower_group="ingot_compiler.backends.host.lower_group:lower_group",
    compile_kernel="ingot_compiler.backends.host.compile_kernel:compile_kernel",
    compile_support="ingot_compiler.backends.host.compile_support:compile_support",
    link_image="ingot_compiler.backends.host.link_library:link_library",
    costs=DeviceCosts(
        100e9, 40e9, 2.8e9, launch_seconds=60e-6, copy_seconds=10e-6, copy_bytes_per_second=1.6e9
    ),
    is_processor=True,
    attributes=ATTRIBUTES,
    derived=DERIVED,
    tags="processor",
)
