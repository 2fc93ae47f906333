"""Reading of files: tasks enter; documents, or the reason why there is none, leave in the same order."""
