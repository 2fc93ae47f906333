"""Direct answers above the hits: a question that metadata or a graph answers enters, a sentence with its places leaves.

An answer is a stage like those of `query.stages`, which it imports, with `query.plan`.
"""
