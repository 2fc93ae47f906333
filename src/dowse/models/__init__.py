"""Models: the name of a model enters; an embedder, reranker or LLM client leaves.

Imports only the core values and ports. Vendor libraries are imported on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowse.models.choose import open_embedder as open_embedder

__all__ = ["open_embedder"]


def __getattr__(name: str) -> Any:
    """Import on first use: a search by words alone needs no model."""
    if name == "open_embedder":
        from dowse.models.choose import open_embedder

        return open_embedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
