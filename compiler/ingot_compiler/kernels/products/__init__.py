"""How matrix products and convolutions are computed.

In: facts of a product. Out: its ``Method``, the kinds of its kernels. Not done here: code
(``emit.blocks``).
"""
