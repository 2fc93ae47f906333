"""What is known of documents as wholes: a title, path or person goes in, documents and their fields come out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, DocumentInfo

_AUTHOR_KEYS = ("authors", "author", "by", "creator")
_DATE_KEYS = ("date", "published", "publication_date", "created", "created_at", "year")
_CHANGED_KEYS = ("updated", "last_updated", "last_modified", "modified")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_AND = re.compile(r"\s*(?:,|;|&|\band\b)\s*")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Field:
    """A value, and where it comes from."""

    value: str
    origin: str


def address(info: DocumentInfo) -> str:
    return f"{info.source}/{info.path}"


def named(subject: str, infos: Iterable[DocumentInfo], tokenizer: Tokenizer) -> list[DocumentInfo]:
    """The documents that a subject names, only those of the best kind of match.

    The kinds, best first: title, path, file name or DOI as it is; all words of the subject in the title, with the
    fewest words besides; all words in title and path together.
    """
    wanted = set(tokenizer.prose(subject)[0])
    exact = _same(subject)
    # Most documents are ruled out by a glance at their letters: a stem keeps all letters of its word but the last two.
    glances = [stem[: max(len(stem) - 2, 1)] for stem in wanted]
    found: dict[tuple[int, int], list[DocumentInfo]] = {}
    for info in infos:
        text = _same(f"{info.title} {address(info)} {dict(info.meta).get('doi', '')}")
        if exact in text and exact in _exact_names(info):
            found.setdefault((0, 0), []).append(info)
        elif wanted and all(glance in text for glance in glances):
            place = _match(wanted, info, tokenizer)
            if place is not None:
                found.setdefault(place, []).append(info)
    return sorted(found[min(found)], key=address) if found else []


def _match(wanted: set[str], info: DocumentInfo, tokenizer: Tokenizer) -> tuple[int, int] | None:
    """Smaller is better."""
    title = set(tokenizer.prose(info.title)[0])
    if wanted <= title:
        return 1, len(title - wanted)
    both = title | set(tokenizer.prose(info.path)[0])
    return (2, len(both - wanted)) if wanted <= both else None


def _exact_names(info: DocumentInfo) -> set[str]:
    parts = info.path.split("/")
    tails = {"/".join(parts[at:]) for at in range(len(parts))}
    stem = parts[-1].rsplit(".", 1)[0]
    doi = dict(info.meta).get("doi", "")
    return {_same(each) for each in (info.title, address(info), stem, doi, *tails) if each}


def _same(text: str) -> str:
    return " ".join(text.split()).casefold()


def is_by(info: DocumentInfo, person: str) -> bool:
    """Whether one of the authors has all words of the name: a surname is enough, half a word is not."""
    wanted = set(_WORD.findall(person.casefold()))
    names = _AND.split(_first(info, _AUTHOR_KEYS) or "")
    return bool(wanted) and any(wanted <= set(_WORD.findall(name.casefold())) for name in names)


def author_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> Field | None:
    if value := _first(info, _AUTHOR_KEYS):
        return Field(value, "its metadata")
    names = list(dict.fromkeys(chunk.author for chunk in chunks if chunk.author))
    return Field(", ".join(names), "its chunks") if names else None


def published_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> Field | None:
    if value := _first(info, _DATE_KEYS):
        return Field(value, "its metadata")
    moments = [chunk.timestamp for chunk in chunks if chunk.timestamp]
    return Field(_written(min(moments)), "its oldest chunk") if moments else None


def changed_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> Field | None:
    if value := _first(info, _CHANGED_KEYS):
        return Field(value, "its metadata")
    if info.modified_ns > 0:
        return Field(_written(datetime.fromtimestamp(info.modified_ns / 1e9, UTC)), "the file's time")
    moments = [chunk.timestamp for chunk in chunks if chunk.timestamp]
    return Field(_written(max(moments)), "its newest chunk") if moments else None


def title_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> Field | None:
    return Field(f"“{info.title}”", "its metadata") if info.title else None


def doi_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> Field | None:
    value = _DOI.search(_first(info, ("doi", "identifier", "url")) or "")
    return Field(value[0], "its metadata") if value else None


def _first(info: DocumentInfo, keys: tuple[str, ...]) -> str | None:
    values = {key.lower(): value for key, value in info.meta}
    return next((values[key].strip() for key in keys if values.get(key, "").strip()), None)


def _written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
