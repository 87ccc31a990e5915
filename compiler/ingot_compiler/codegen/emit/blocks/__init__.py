"""Micro-kernels: the statements of loop programs that have an emitter of their own.

In: ``Contraction``, ``Depthwise``, ``DepthwisePlane``, ``Winograd``, ``Attention``, ``Transpose``. Out: code,
register tiles. Not done here: all other statements.
"""
