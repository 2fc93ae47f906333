"""Metadata answers: questions about documents, answered from their metadata, with the documents as evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np

from dowse.filters import META, Eq, Filter, In, comparisons, fulfils
from dowse.identity import id_number, number_id
from dowse.ports import ChunkReader, QuerySession
from dowse.query.plan.metadata_questions import MetadataField, MetadataQuestion, metadata_question
from dowse.query.stages.state import Hit, QueryState, StageScore
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Degradation, DocumentInfo

_AUTHOR_KEYS = ("authors", "author", "by", "creator")
_DATE_KEYS = ("date", "published", "publication_date", "created", "created_at", "year")
_VENUE_KEYS = ("journal", "venue", "conference", "booktitle", "publisher")
_KEYWORD_KEYS = ("keywords", "tags", "topics")
_CHANGED_KEYS = ("updated", "last_updated", "last_modified", "modified")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
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


def venue_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> DocumentField | None:
    return _own(info, _VENUE_KEYS)


def keywords_of(info: DocumentInfo, chunks: Sequence[Chunk]) -> DocumentField | None:
    return _own(info, _KEYWORD_KEYS)


def year_of(info: DocumentInfo) -> str:
    found = _YEAR.search(_first(info, _DATE_KEYS) or "")
    return found[0] if found else ""


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
MOST_VALUES = 30  # of a field; chosen likewise
MOST_MENTIONS = 10_000  # chunks that a term is searched in; chosen
STAGE = "metadata"

Reading = Callable[[DocumentInfo, Sequence[Chunk]], DocumentField | None]
_READINGS: Mapping[MetadataField, tuple[Reading, str, str]] = {
    "author": (author_of, "was written by", "author"),
    "published": (published_of, "is dated", "date"),
    "changed": (changed_of, "was last changed on", "time of change"),
    "title": (title_of, "is titled", "title"),
    "doi": (doi_of, "has the DOI", "DOI"),
    "venue": (venue_of, "appeared in", "venue"),
    "keywords": (keywords_of, "has the keywords", "keywords"),
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


_VALUE_KEYS: Mapping[str, tuple[str, ...]] = {
    "authors": _AUTHOR_KEYS,
    "venues": _VENUE_KEYS,
    "journals": _VENUE_KEYS,
    "keywords": _KEYWORD_KEYS,
}


class _Known(msgspec.Struct, frozen=True):
    """A document that passes the filter."""

    info: DocumentInfo
    chunks: Sequence[Chunk]
    passing: Sequence[Chunk]  # searchable ones


class AnswerMetadata(msgspec.Struct, frozen=True):
    """Stage that answers from metadata, which ends the search, or notes why it cannot."""

    store: QuerySession
    documents: Callable[[], Iterable[DocumentInfo]]
    tokenizer: Tokenizer
    name: str = STAGE

    def __call__(self, state: QueryState, /) -> QueryState:
        question = metadata_question(state.query.text)
        if question is None:
            return _unanswered(state, "the query names no known field or document")
        if question.asked in ("works", "count", "mentions", "values"):
            return self._of_collection(question, state)
        found = self._named(question, state.query.where)
        if not found and not question.subject:
            return _unanswered(state, "no document is in scope; name one by its path, or filter by one")
        if not found:
            return _unanswered(state, f"no document called “{question.subject}” is in the index")
        if len(found) > MOST_NAMED:
            return _unanswered(
                state, f"“{question.subject}” may be any of {len(found)} documents; name one by its path"
            )
        reading, verb, field = _READINGS[question.asked]
        told = [(each, value) for each in found if (value := reading(each.info, each.passing)) is not None]
        if not told:
            where = ", ".join(address(each.info) for each in found)
            return _unanswered(state, f"the metadata of {where} has no {field}")
        lines = (f"{_called(each.info, question)} {verb} {value.value} ({value.origin})." for each, value in told)
        return _answered(state, "\n".join(lines), [each for each, _ in told])

    def _named(self, question: MetadataQuestion, where: Filter) -> list[_Known]:
        if question.subject.lower() in ("", question.kind, "paper"):
            return self._passing(self._in_scope(where), where)
        infos = list(self.documents())
        full = named(question.subject, infos, self.tokenizer)
        # "the retry paper": the kind may be part of the title or path.
        bare = question.subject.lower().removesuffix(question.kind).strip()
        return self._passing(full or (named(bare, infos, self.tokenizer) if bare else []), where)

    def _in_scope(self, where: Filter) -> list[DocumentInfo]:
        """Return the documents that the filter of the request names: they are "the paper"."""
        fields = {clause.field for clause in comparisons(where)}
        if not fields or not fields <= {*_OF_DOCUMENTS, *(each for each in fields if each.startswith(META))}:
            return []
        ids = [str(each) for clause in where if isinstance(clause, In) and clause.field == "document_id"
               for each in clause.values]  # fmt: skip
        infos = self.store.documents_of(ids) if ids else self.documents()
        return [info for info in infos if fulfils(_values(info), where)][: MOST_NAMED + 1]

    def _of_collection(self, question: MetadataQuestion, state: QueryState) -> QueryState:
        """Answer about all documents that pass the filter."""
        where = (*state.query.where, *_of_kind(question.kind))
        if question.asked == "values":
            return _answered(state, self._value_counts(question.subject, where), [])
        if question.asked == "mentions":
            infos = self._mentioning(question.subject, where)
        else:
            infos = [
                info
                for info in self.documents()
                if (not question.subject or is_by(info, question.subject))
                and (not question.year or year_of(info) == question.year)
            ]
        found = self._passing(infos, where)
        if not found and question.asked != "count":
            about = f"mentions “{question.subject}”" if question.asked == "mentions" else _by(question)
            return _unanswered(state, f"no document {about} is in the index")
        return _answered(state, _listing(question, found), found[:MOST_WORKS])

    def _mentioning(self, subject: str, where: Filter) -> list[DocumentInfo]:
        terms = self.tokenizer.prose(subject)[0]
        found = self.store.search_words("bm25_nlp", terms, MOST_MENTIONS, where).ids
        held = self.store.held_terms({"bm25_nlp": terms}, found)
        ids = [number_id(each) for each, own in zip(found.tolist(), held, strict=True)
               if set(own.get("bm25_nlp", ())) == set(terms)]  # fmt: skip
        chunks = self.store.get(ids)
        return list(self.store.documents_of({chunks[each].document_id for each in ids if each in chunks}))

    def _value_counts(self, field: str, where: Filter) -> str:
        """Return the values of a field with the numbers of their documents, most frequent first."""
        counts: Counter[str] = Counter()
        keys = _VALUE_KEYS.get(field)
        for each in self._passing(self.documents(), where):
            value = (_first(each.info, keys) or "") if keys else ""
            if field == "years":
                counts.update([year_of(each.info)])
            elif keys is None:
                counts.update([each.passing[0].corpus_type])
            else:
                counts.update({part.strip() for part in _AND.split(value)})
        del counts[""]
        shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        rest = f" and {len(shown) - MOST_VALUES} more" if len(shown) > MOST_VALUES else ""
        return f"{field.capitalize()}: " + ", ".join(f"{name} ({n})" for name, n in shown[:MOST_VALUES]) + rest + "."

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


_OF_DOCUMENTS = frozenset(("document_id", "document_source", "file_path"))


def _values(info: DocumentInfo) -> Callable[[str], str | None]:
    known = {META + key: value for key, value in info.meta}
    return (known | {"document_id": info.id, "document_source": info.source, "file_path": info.path}).get


def _of_kind(kind: str) -> Filter:
    """Return the filter of a kind that is a corpus type; other kinds mean any document."""
    return (Eq("corpus_type", _KINDS[kind]),) if kind in _KINDS else ()


def _called(info: DocumentInfo, question: MetadataQuestion) -> str:
    return address(info) if question.asked == "title" else f"“{info.title}” ({address(info)})"


def _listing(question: MetadataQuestion, found: list[_Known]) -> str:
    works = "; ".join(f"“{each.info.title}” ({address(each.info)})" for each in found[:MOST_WORKS])
    rest = f"; and {len(found) - MOST_WORKS} more" if len(found) > MOST_WORKS else ""
    if question.asked == "count":
        about = " ".join(filter(None, (question.kind if len(found) == 1 else f"{question.kind}s", _by(question))))
        return f"{len(found)} {about}: {works}{rest}." if found else f"0 {about}."
    head = f"Mention {question.subject}" if question.asked == "mentions" else _by(question).capitalize()
    if question.subject and question.asked == "works":
        head = f"By {question.subject}" + (f" from {question.year}" if question.year else "")
    return f"{head}: {works}{rest}."


def _by(question: MetadataQuestion) -> str:
    by = f"by {question.subject}" if question.subject else ""
    return " ".join(filter(None, (by, f"from {question.year}" if question.year else "")))


def _answered(state: QueryState, text: str, found: list[_Known]) -> QueryState:
    return state.changed(metadata_answer=text, evidence=tuple(each.info.id for each in found))


def _unanswered(state: QueryState, reason: str) -> QueryState:
    note = Degradation(STAGE, f"not answered from metadata: {reason}; these are search results")
    return state.changed(degraded=(*state.degraded, note))
