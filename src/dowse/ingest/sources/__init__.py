"""Sources: index requests enter; files with bytes, kinds and commits leave, or a reason to skip."""
