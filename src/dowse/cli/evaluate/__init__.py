"""Commands that measure quality: eval, judge, tune."""
