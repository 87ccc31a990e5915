"""The back end of a device that runs the host's code in memory of its own.

In: the kind. Out: its ``Backend``: kernels and support are the host's, its library has no `main`.
Not done here: the hooks; which kinds there are.
"""

from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.host.target_attributes import ATTRIBUTES, DERIVED
from ingot_compiler.placement.device_costs import DeviceCosts


def device_backend(kind: str, scopes: tuple[str, ...] | None) -> Backend:
    """The record; ``scopes``: see ``Backend``."""
    return Backend(
        kind=kind,
        parse_target="ingot_compiler.backends.host.hooks:read_device_target",
        device_rules="ingot_compiler.backends.host.hooks:device_rules",
        lower_group="ingot_compiler.backends.host.hooks:lower_group",
        compile_kernel="ingot_compiler.backends.host.hooks:compile_kernel",
        compile_support="ingot_compiler.backends.host.hooks:compile_support",
        link_image="ingot_compiler.backends.host.hooks:link_library",
        product_share="ingot_compiler.kernels.products.product_share:product_share",
        costs=DeviceCosts(
            112e9,
            40e9,
            20e9,
            12e9,
            2 << 20,
            launch_seconds=27e-6,
            copy_seconds=30e-6,
            copy_bytes_per_second=4e9,
        ),
        is_processor=True,
        attributes=ATTRIBUTES,
        derived=DERIVED,
        tags="processor",
        scopes=scopes,
    )
