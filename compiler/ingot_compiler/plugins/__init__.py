"""Targets from outside: what a plug-in is, and how its hooks are called and held to their word.

In: a plug-in of the user, stages. Out: stages. Not done here: finding and importing plug-ins
(``build_rules``), which rule calls what.
"""
