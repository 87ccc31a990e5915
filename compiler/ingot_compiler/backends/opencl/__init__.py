"""The back end of ``opencl``: the loop programs of every device, as OpenCL C.

In: loop programs, the version of OpenCL C. Out: libraries of source text. Not done here: the device
(``ingot_runtime_devices.opencl``), compiling the text, which the device's driver does at load.

The functions are those that the host runs: a kernel is written by ``codegen.emit``, cut for
vectors of 256 bits, and each of its instructions becomes a statement of C.
"""
