"""Kernels as text of a language of the C family: what OpenCL C and C99 have in common.

In: a kernel, a dialect. Out: tables, declarations and statements. Not done here: how
a dialect spells types and lanes, the function around the statements (a back end each).
"""
