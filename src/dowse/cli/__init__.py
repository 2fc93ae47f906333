"""The command line: arguments enter; text, JSON and an exit code leave.

`help` and `main` load a command's module only when it runs. Imports every package; no package imports it.
"""
