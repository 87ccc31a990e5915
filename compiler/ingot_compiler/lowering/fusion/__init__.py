"""Fusion, per target: from the placed graph to groups, buffers and views.

In: nothing; the entry is ``lowering.fuse``. Out: the parts of it. Not done here: loops.
"""
