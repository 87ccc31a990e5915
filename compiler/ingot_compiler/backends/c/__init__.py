"""Loop programs and ``main`` as C99: for any compiler, and for machines without a system.

In: loop programs, an instruction list, a form. Out: texts of C. Not done here: which files they
become and how they are compiled (``ingot_build_rules.tools.export``).

The functions are those that the host runs: a kernel is written by ``codegen.emit``, and
each of its instructions becomes a statement of C, in the same order.
"""

C_KERNEL = "ingot_compiler.backends.c.kernel_text:compile_kernel"
"""The hook of the type ``CompileKernel`` that writes a kernel as C; its target names a form."""
