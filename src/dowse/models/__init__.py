"""Models: the name of a model enters; an embedder, reranker or LLM client leaves.

Imports only the core values and ports. Vendor libraries are imported on first use.
"""
