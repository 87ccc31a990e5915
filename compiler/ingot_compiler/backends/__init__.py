"""What makes machine code of loop programs: one folder per back end.

In: loop programs, programs of ``main``, targets. Out: objects and images. Not done here: what a
kernel computes (``lowering``).
"""
