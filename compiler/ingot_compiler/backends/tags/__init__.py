"""Names of well-known targets, ``targets.toml``: data, and what reads it.

In: nothing. Out: tags. Not done here: what a target is (each back end knows its own).
"""
