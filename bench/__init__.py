"""Benchmarks of speed and quality, with other engines in the same run."""
