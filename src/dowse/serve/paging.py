"""Pages of one ranking: a cursor that a client hands back enters, the next hits and the next cursor leave."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from dowse.errors import BadRequestError
from dowse.identity import text_hash
from dowse.query.facets import Survey
from dowse.types import QueryRequest

KEPT = 32  # rankings that are remembered; chosen: about 50 hits each, so a few megabytes at most
FIRST = ""  # the cursor that begins
_BROKEN = "the cursor is not one of ours; begin with an empty one"


@dataclass(frozen=True)
class Cursor:
    """Where in which ranking. Nothing in it is secret or trusted: a changed one finds nothing, or another page."""

    offset: int
    ranking: str  # names the question and the moment of the index

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


@dataclass(frozen=True)
class Page:
    """Some hits of a ranking, and where it goes on."""

    survey: Survey
    first: int  # the page's first hit, from 0
    last: int  # behind its last hit
    following: Cursor | None  # None at the end


class Rankings:
    """Remembers the newest rankings, so that pages of one question fit together though the index changes."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._known: OrderedDict[str, Survey] = OrderedDict()
        self._lock = Lock()

    def page(self, request: QueryRequest, cursor: str, moment: str, ask: Callable[[], Survey]) -> Page:
        """The page after a cursor. `ask` makes the ranking when it is not remembered."""
        now = _name(request, moment)
        at = Cursor(0, now) if cursor == FIRST else Cursor.parse(cursor)
        found = self._recall(at.ranking)
        if found is None:
            if at.ranking != now:
                raise BadRequestError(
                    "this cursor goes with another query, or the index has changed; begin again with an empty cursor"
                )
            found = ask()
            self._keep(now, found)
        elif at.ranking != now and not at.ranking.startswith(_question(request)):
            raise BadRequestError("this cursor goes with another query; begin again with an empty cursor")
        size = len(found.result.chunks)
        last = min(at.offset + size, len(found.ranked))
        more = size > 0 and last < len(found.ranked)
        return Page(found, min(at.offset, last), last, Cursor(last, at.ranking) if more else None)

    def _recall(self, name: str) -> Survey | None:
        with self._lock:
            if name in self._known:
                self._known.move_to_end(name)
            return self._known.get(name)

    def _keep(self, name: str, found: Survey) -> None:
        with self._lock:
            self._known[name] = found
            while len(self._known) > self._kept:
                self._known.popitem(last=False)


def _question(request: QueryRequest) -> str:
    return text_hash(repr(request))[:12]


def _name(request: QueryRequest, moment: str) -> str:
    return _question(request) + moment
