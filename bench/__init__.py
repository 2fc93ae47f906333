"""How fast and how good Dowse is, beside its peers: `python -m bench.engine` and `python -m bench.quality`."""
