"""The native code that every host image carries beside its kernels, in C: ``c/``, one file per
piece and a line in ``c/support.c``.

In: nothing. Out: ``SUPPORT_EXPORTS`` (``abi.EXPORTS`` name -> symbol). Not done here: compiling it
(``compile_support``), ``main`` (``backends.host.main``), kernels, linking.
"""

SUPPORT_EXPORTS: dict[str, str] = {
    "launch": "ingot_launch",
    "worker": "ingot_worker",
    "blake3_verify": "ingot_blake3_verify",
    "checksum_verify": "ingot_checksum_verify",
    "sigbus_handler": "ingot_sigbus_handler",
    "python_poll": "ingot_python_poll",
}
