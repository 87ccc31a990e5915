"""The planner: one device for every value of a program, copies where they are allowed, and the
reason of each decision.

In: a program with annotations. Out: a plan. Not done here: which device is fastest.
"""
