"""Pages of one ranking, addressed by cursors, and the cache of rankings behind them."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable

from msgspec import Struct

from dowse.errors import BadRequestError
from dowse.identity import text_hash
from dowse.query.cache import LruCache
from dowse.query.facets import FacetedResult
from dowse.types import QueryRequest

KEPT = 32  # cached rankings; chosen: about 50 hits each, so a few megabytes at most
FIRST = ""  # cursor of the first page
_BROKEN = "invalid cursor; start again with an empty cursor"


class Cursor(Struct, frozen=True):
    """Position in a ranking. It is neither secret nor trusted: a forged one finds nothing, or another page."""

    offset: int
    ranking: str  # hash of the query and id of the snapshot

    def __str__(self) -> str:
        return urlsafe_b64encode(f"{self.offset}.{self.ranking}".encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Cursor:
        try:
            plain = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
            offset, _, ranking = plain.partition(".")
            found = cls(int(offset), ranking)
        except (Base64Error, UnicodeError, ValueError) as err:
            raise BadRequestError(_BROKEN) from err
        if found.offset < 0 or not ranking:
            raise BadRequestError(_BROKEN)
        return found


class ResultPage(Struct, frozen=True):
    """Range of a ranking, and the cursor of the next one."""

    found: FacetedResult
    first: int  # from 0
    last: int  # exclusive
    following: Cursor | None  # None on the last page


class RankingCache:
    """Cache of recent rankings, so that the pages of one query agree although the index changes."""

    def __init__(self, kept: int = KEPT) -> None:
        self._known: LruCache[str, FacetedResult] = LruCache(kept)

    def page(self, request: QueryRequest, cursor: str, snapshot: str, run: Callable[[], FacetedResult]) -> ResultPage:
        """Return the page at a cursor. `run` computes the ranking when it is not cached."""
        now = _query_hash(request) + snapshot
        at = Cursor(0, now) if cursor == FIRST else Cursor.parse(cursor)
        found = self._known.get(at.ranking)
        if found is None:
            if at.ranking != now:
                raise BadRequestError(
                    "this cursor belongs to a different query, or the index has changed; start again without a cursor"
                )
            found = run()
            self._known.put(now, found)
        elif at.ranking != now and not at.ranking.startswith(_query_hash(request)):
            raise BadRequestError("this cursor belongs to a different query; start again without a cursor")
        size = len(found.result.chunks)
        last = min(at.offset + size, len(found.ranked))
        more = size > 0 and last < len(found.ranked)
        return ResultPage(found, min(at.offset, last), last, Cursor(last, at.ranking) if more else None)


def _query_hash(request: QueryRequest) -> str:
    return text_hash(repr(request))[:12]
