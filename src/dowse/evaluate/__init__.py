"""Is it any good? A collection with judgments goes in; figures, comparisons and advice come out."""
