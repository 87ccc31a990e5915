"""The host's back end: LLVM makes the code of its processors.

In: loop programs, ``main``'s instruction list, a target. Out: objects, images. Not done here: what
a kernel computes (``lowering``).
"""
