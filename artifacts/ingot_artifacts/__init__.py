"""Artifacts: bundles written, described and compared; digests; files that appear whole or not at
all.

In: what the compiler made. Out: files. Not done here: compiling, running; nothing of the compiler
is imported.
"""
