"""Sources: index requests enter; files with bytes, kinds and commits leave, or a reason to skip.

Folders, globs, archives and git revisions look alike from here on. Imports no reader.
"""
