"""Reading of files: tasks enter; documents, or the reason why there is none, leave in the same order.

Worker processes with limits on time and memory read most files. Imports `readers`, `sources` and `privacy`.
"""
