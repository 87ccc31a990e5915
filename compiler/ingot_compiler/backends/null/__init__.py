"""The back end of ``null``, the device for tests: its memory is its own, its code the host's.

In: loop programs, targets of the host. Out: objects, libraries. Not done here: the hooks
(``backends.host``), the device itself (``ingot_runtime_devices.null``).
"""
