"""Rules of ``canonicalise``, one table per family of ops.

In: nothing. Out: the modules of this folder. Not done here: the walk (``passes.canonicalise``).
"""
