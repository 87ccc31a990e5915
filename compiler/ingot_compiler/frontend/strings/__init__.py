"""Ops on strings, composed of ops on the tensors that strings are made of.

One file per subject. No string is looked at when a model is compiled but those that it writes down.
"""
