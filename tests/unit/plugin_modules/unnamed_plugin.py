"""A module that nobody names: its import fails a test.

In: nothing. Out: nothing. Not done here: anything.
"""

raise AssertionError("nobody has named this plug-in")
