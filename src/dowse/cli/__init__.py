"""The command line: arguments enter; text, JSON and an exit code leave."""
