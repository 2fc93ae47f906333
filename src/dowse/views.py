"""Views of results: mappings that nobody can change, and the names that other systems give the fields of a hit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from dowse.types import Chunk

V = TypeVar("V")


class FrozenDict(dict[str, V]):
    """A dict that nobody can change, so that results hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)

    def _refuse(self, *given: object, **named: object) -> NoReturn:
        raise TypeError("a result cannot be changed; copy it with dict(…)")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse


class HitViews:
    """Other names of the fields of a hit."""

    if TYPE_CHECKING:
        id: str
        text: str
        document_id: str
        timestamp: str | None
        bm25_nlp_score: float | None
        final_score: float

    @property
    def chunk_id(self) -> str:
        return self.id

    @property
    def paper_id(self) -> str:
        return self.document_id

    @property
    def content(self) -> str:
        return self.text

    @property
    def score(self) -> float:
        return self.final_score

    @property
    def sparse_score(self) -> float | None:
        return self.bm25_nlp_score

    @property
    def created_at(self) -> datetime | None:
        """The timestamp as a datetime."""
        return None if self.timestamp is None else datetime.fromisoformat(self.timestamp)


class CandidateViews:
    """Other names of the fields of a reranked candidate."""

    __slots__ = ()

    if TYPE_CHECKING:
        chunk: Chunk
        value: float
        original: float | None

    @property
    def id(self) -> str:
        return self.chunk.id

    chunk_id = entity_id = id

    @property
    def text(self) -> str:
        return self.chunk.text

    content = text

    @property
    def score(self) -> float:
        return self.value

    reranked_score = rerank_score = score

    @property
    def original_score(self) -> float:
        return self.value if self.original is None else self.original

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name) if hasattr(self, name) else getattr(self.chunk, name)
