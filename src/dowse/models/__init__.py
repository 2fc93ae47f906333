"""Text becomes numbers: what a user wrote as the embedder goes in, an embedder that makes unit vectors comes out."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowse.models.choose import open_embedder as open_embedder

__all__ = ["open_embedder"]


def __getattr__(name: str) -> Any:
    """Imported when first used: a search by words alone needs none of it."""
    if name == "open_embedder":
        from dowse.models.choose import open_embedder

        return open_embedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
