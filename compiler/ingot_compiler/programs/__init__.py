"""Programs: functions, closures, data and references over the core ops, with devices that the
planner gives to every value.

In: text. Out: planned programs. Not done here: graphs (``placement``), machine code.
"""
