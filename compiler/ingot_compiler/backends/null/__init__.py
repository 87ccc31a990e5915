"""The back end of ``null``: a device with memory of its own that runs the host's code.

In: loop programs, targets of the host. Out: objects, libraries. Not done here: the device itself
(``ingot_runtime.devices.null``).
"""
