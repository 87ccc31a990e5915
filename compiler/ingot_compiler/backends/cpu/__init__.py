"""The back end of ``cpu``: the processor as a device of its own, with memory of its own.

In: loop programs, targets of the host. Out: objects, libraries. Not done here: the hooks
(``backends.host``), the device itself (``ingot_runtime_devices.cpu``).
"""
