"""The suffix of a file that holds a program.

In: nothing. Out: ``PROGRAM``. Not done here: reading one (``from_program``); this is imported by
every compilation.
"""

PROGRAM = "ingot-text"
"""The suffix without its dot; in the place of a stage, the text form of a program."""
