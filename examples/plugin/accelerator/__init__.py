"""The accelerator: a plug-in, one module for each hook, so that each is in the keys of its own
actions alone.

In: nothing. Out: nothing. Not done here: anything; ``target`` has ``TARGET``.
"""
