"""The back end of ``cuda``: the loop programs of every device, as PTX.

In: loop programs, the architectures of GPUs. Out: libraries of PTX. Not done here: the device
(``ingot_runtime_devices.cuda``), compiling PTX, which the device's driver does at load.

The functions are those that the host runs: a kernel is written by ``codegen.emit``, cut for
vectors of 256 bits, and eight threads of a warp run it, each as one lane (``lanes``).
"""
