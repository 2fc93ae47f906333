"""Metadata answers: questions about documents, answered from their metadata, with the documents as evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np

from dowse.filters import Filter, In
from dowse.identity import id_number
from dowse.ports import ChunkReader
from dowse.query.plan.metadata_questions import MetadataField, MetadataQuestion, metadata_question
from dowse.query.stages.state import Hit, QueryState, StageScore
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Degradation, DocumentInfo

_AUTHOR_KEYS = ("authors", "author", "by", "creator")
_DATE_KEYS = ("date", "published", "publication_date", "created", "created_at", "year")
_CHANGED_KEYS = ("updated", "last_updated", "last_modified", "modified")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_AND = re.compile(r"\s*(?:,|;|&|\band\b)\s*")
_WORD = re.compile(r"[^\W_]+")


class DocumentField(msgspec.Struct, frozen=True):
    """A value and its origin."""

    value: str
    origin: str


def address(info: DocumentInfo) -> str:
    return f"{info.source}/{info.path}"


def named(subject: str, infos: Iterable[DocumentInfo], tokenizer: Tokenizer) -> list[DocumentInfo]:
    """Return the documents that a subject names, only those of the best kind of match.

    Kinds, best first: title, path, file name or DOI as it is; all words of the subject in the title, with the
    fewest words besides; all words in title and path together.
    """
    wanted = set(tokenizer.prose(subject)[0])
    exact = _same(subject)
    # A cheap check rules out most documents: a stem keeps all letters of its word but the last two.
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
    """Return the quality of a match; smaller is better."""
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
    """Return whether an author has all words of the name: a surname is enough, half a word is not."""
    wanted = set(_WORD.findall(person.casefold()))
    names = _AND.split(_first(info, _AUTHOR_KEYS) or "")
    return bool(wanted) and any(wanted <= set(_WORD.findall(name.casefold())) for name in names)


def author_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> DocumentField | None:
    names = ", ".join(dict.fromkeys(chunk.author for chunk in chunks if chunk.author))
    return _own(info, _AUTHOR_KEYS) or (DocumentField(names, "its chunks") if names else None)


def published_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> DocumentField | None:
    return _own(info, _DATE_KEYS) or _of_chunks(min, chunks, "its oldest chunk")


def changed_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> DocumentField | None:
    if own := _own(info, _CHANGED_KEYS):
        return own
    if info.modified_ns > 0:
        return DocumentField(_written(datetime.fromtimestamp(info.modified_ns / 1e9, UTC)), "the file's time")
    return _of_chunks(max, chunks, "its newest chunk")


def title_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> DocumentField | None:
    return DocumentField(f"“{info.title}”", "its metadata") if info.title else None


def doi_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> DocumentField | None:
    value = _DOI.search(_first(info, ("doi", "identifier", "url")) or "")
    return DocumentField(value[0], "its metadata") if value else None


def _own(info: DocumentInfo, keys: tuple[str, ...]) -> DocumentField | None:
    value = _first(info, keys)
    return DocumentField(value, "its metadata") if value else None


def _of_chunks(
    pick: Callable[[list[datetime]], datetime], chunks: Sequence[Chunk], origin: str
) -> DocumentField | None:
    moments = [chunk.timestamp for chunk in chunks if chunk.timestamp]
    return DocumentField(_written(pick(moments)), origin) if moments else None


def _first(info: DocumentInfo, keys: tuple[str, ...]) -> str | None:
    values = {key.lower(): value for key, value in info.meta}
    return next((values[key].strip() for key in keys if values.get(key, "").strip()), None)


def _written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


MOST_NAMED = 3  # chosen: a subject that matches more documents is ambiguous
MOST_WORKS = 20  # chosen: more is a listing, not an answer
STAGE = "metadata"

Reading = Callable[[DocumentInfo, Sequence[Chunk]], DocumentField | None]
_READINGS: Mapping[MetadataField, tuple[Reading, str, str]] = {
    "author": (author_of, "was written by", "author"),
    "published": (published_of, "is dated", "date"),
    "changed": (changed_of, "was last changed on", "time of change"),
    "title": (title_of, "is titled", "title"),
    "doi": (doi_of, "has the DOI", "DOI"),
}
# Corpus types by the words of a query.
_KINDS: Mapping[str, str] = {
    "adr": "DOC_ADR",
    "paper": "DOC_PAPER",
    "preprint": "DOC_PAPER",
    "publication": "DOC_PAPER",
    "readme": "DOC_README",
    "runbook": "DOC_RUNBOOK",
    "transcript": "CONVO_TRANSCRIPT",
}


class _Known(msgspec.Struct, frozen=True):
    """A document that passes the filter."""

    info: DocumentInfo
    chunks: Sequence[Chunk]
    passing: Sequence[Chunk]  # searchable ones


class AnswerMetadata(msgspec.Struct, frozen=True):
    """Stage that answers from metadata, or notes why it cannot; the search continues in both cases."""

    store: ChunkReader
    documents: Callable[[], Iterable[DocumentInfo]]
    tokenizer: Tokenizer
    name: str = STAGE

    def __call__(self, state: QueryState, /) -> QueryState:
        question = metadata_question(state.query.text)
        if question is None:
            return _unanswered(state, "the query names no known field or document")
        works = question.asked == "works"
        found = self._works(question, state.query.where) if works else self._named(question, state.query.where)
        if not found:
            return _unanswered(state, f"no document {'by' if works else 'called'} “{question.subject}” is in the index")
        if works:
            return _answered(state, _listing(question, found), found)
        if len(found) > MOST_NAMED:
            return _unanswered(
                state, f"“{question.subject}” may be any of {len(found)} documents; name one by its path"
            )
        reading, verb, field = _READINGS[question.asked]
        told = [(each, value) for each in found if (value := reading(each.info, each.chunks)) is not None]
        if not told:
            where = ", ".join(address(each.info) for each in found)
            return _unanswered(state, f"the metadata of {where} has no {field}")
        lines = (f"{_called(each.info, question)} {verb} {value.value} ({value.origin})." for each, value in told)
        return _answered(state, "\n".join(lines), [each for each, _ in told])

    def _named(self, question: MetadataQuestion, where: Filter) -> list[_Known]:
        if question.subject.lower() == question.kind or question.subject.lower() in ("it", "document", "paper"):
            return self._passing(_filtered_documents(self.store, where), where)
        infos = list(self.documents())
        full = named(question.subject, infos, self.tokenizer)
        # "the retry paper": the kind may be part of the title or path.
        bare = question.subject.lower().removesuffix(question.kind).strip()
        return self._passing(full or (named(bare, infos, self.tokenizer) if bare else []), where)

    def _works(self, question: MetadataQuestion, where: Filter) -> list[_Known]:
        found = self._passing((info for info in self.documents() if is_by(info, question.subject)), where)
        corpus_type = _KINDS.get(question.kind)
        of_kind = [each for each in found if each.passing[0].corpus_type == corpus_type]
        return (of_kind or found)[:MOST_WORKS]

    def _passing(self, infos: Iterable[DocumentInfo], where: Filter) -> list[_Known]:
        known = (_known(self.store, info.id, where) for info in infos)
        return [each for each in known if each is not None]


class CiteEvidence(msgspec.Struct, frozen=True):
    """Stage that ranks the documents behind a metadata answer first, each by its best or else first chunk."""

    store: ChunkReader
    name: str = "evidence"

    def __call__(self, state: QueryState, /) -> QueryState:
        if not state.evidence:
            return state
        top = max([1.0, *(hit.value for hit in state.hits)])
        cited: list[Hit] = []
        for document_id in state.evidence:
            hit = self._hit(document_id, state)
            if hit is not None:
                score = StageScore(self.name, top, len(cited) + 1, "its metadata answers the question")
                cited.append(hit.changed(value=top, scores=(*hit.scores, score)))
        first = {hit.chunk.id for hit in cited}
        return state.changed(hits=(*cited, *(hit for hit in state.hits if hit.chunk.id not in first)))

    def _hit(self, document_id: str, state: QueryState) -> Hit | None:
        found = next((hit for hit in state.hits if hit.chunk.document_id == document_id), None)
        if found is not None:
            return found
        known = _known(self.store, document_id, state.query.where)
        return None if known is None else Hit(known.passing[0], 0.0)


def _known(store: ChunkReader, document_id: str, where: Filter) -> _Known | None:
    """Return a document of this snapshot; None if it is gone or no chunk passes the filter."""
    info = store.document(document_id)
    if info is None:
        return None
    chunks = store.document_chunks(document_id)
    searchable = [chunk for chunk in chunks if chunk.level == "chunk"]
    mask = store.passing(np.array([id_number(chunk.id) for chunk in searchable], np.uint64), where)
    passing = [chunk for chunk, passes in zip(searchable, mask, strict=True) if passes]
    return _Known(info, chunks, passing) if passing else None


def _filtered_documents(store: ChunkReader, where: Filter) -> list[DocumentInfo]:
    """Return the documents that the filter of the request names: they are "the paper"."""
    ids = [
        str(each)
        for clause in where
        if isinstance(clause, In) and clause.field == "document_id"
        for each in clause.values
    ]
    infos = (store.document(each) for each in dict.fromkeys(ids))
    return [info for info in infos if info is not None]


def _called(info: DocumentInfo, question: MetadataQuestion) -> str:
    return address(info) if question.asked == "title" else f"“{info.title}” ({address(info)})"


def _listing(question: MetadataQuestion, found: list[_Known]) -> str:
    works = "; ".join(f"“{each.info.title}” ({address(each.info)})" for each in found)
    return f"By {question.subject}: {works}."


def _answered(state: QueryState, text: str, found: list[_Known]) -> QueryState:
    return state.changed(metadata_answer=text, evidence=tuple(each.info.id for each in found))


def _unanswered(state: QueryState, reason: str) -> QueryState:
    note = Degradation(STAGE, f"not answered from metadata: {reason}; these are search results")
    return state.changed(degraded=(*state.degraded, note))
