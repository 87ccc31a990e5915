"""Ops on strings, composed of ops on the tensors that strings are made of. One file per subject.

In: values of strings. Out: values of strings, tensors. Not done here: the nodes (``ops``). No string
is looked at when a model is compiled but those that it writes down.
"""
