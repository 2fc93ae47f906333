"""Metadata answers: questions about documents, answered from their metadata, with the documents as evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

import msgspec

from dowse.filters import META, Eq, Filter, In, comparisons, fulfils
from dowse.identity import number_id
from dowse.ports import ChunkReader, QuerySession
from dowse.query.plan.metadata_questions import MetadataField, MetadataQuestion, metadata_question
from dowse.query.stages.legs import passing
from dowse.query.stages.sort import put_first
from dowse.query.stages.state import Hit, QueryState
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Degradation, DocumentInfo

# Names of a field in metadata, the preferred one first.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "author": ("authors", "author", "by", "creator"),
    "published": ("date", "published", "publication_date", "created", "created_at", "year"),
    "changed": ("updated", "last_updated", "last_modified", "modified"),
    "doi": ("doi", "identifier", "url"),
    "venue": ("journal", "venue", "conference", "booktitle", "publisher"),
    "keywords": ("keywords", "tags", "topics"),
}
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_AND = re.compile(r"\s*(?:,|;|&|\band\b)\s*")
_WORD = re.compile(r"[^\W_]+")


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
            title = set(tokenizer.prose(info.title)[0])
            both = title | set(tokenizer.prose(info.path)[0])
            if wanted <= both:
                place = (1, len(title - wanted)) if wanted <= title else (2, len(both - wanted))
                found.setdefault(place, []).append(info)
    return sorted(found[min(found)], key=address) if found else []


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
    names = _AND.split(_first(info, _KEYS["author"]) or "")
    return bool(wanted) and any(wanted <= set(_WORD.findall(name.casefold())) for name in names)


def year_of(info: DocumentInfo) -> str:
    found = _YEAR.search(_first(info, _KEYS["published"]) or "")
    return found[0] if found else ""


def _read(field: MetadataField, info: DocumentInfo, chunks: Sequence[Chunk]) -> tuple[str, str] | None:
    """Return the value of a field and its origin: the metadata, else the file or the chunks where they have one."""
    own = info.title and f"“{info.title}”" if field == "title" else _first(info, _KEYS[field])
    if field == "doi":
        own = match[0] if (match := _DOI.search(own or "")) else None
    if own:
        return own, "its metadata"
    moments = [chunk.timestamp for chunk in chunks if chunk.timestamp]
    if field == "author" and (names := ", ".join(dict.fromkeys(chunk.author for chunk in chunks if chunk.author))):
        return names, "its chunks"
    if field == "published" and moments:
        return _written(min(moments)), "its oldest chunk"
    if field == "changed" and info.modified_ns > 0:
        return _written(datetime.fromtimestamp(info.modified_ns / 1e9, UTC)), "the file's time"
    return (_written(max(moments)), "its newest chunk") if field == "changed" and moments else None


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

# Verb and noun of a field in an answer.
_WORDS: Mapping[MetadataField, tuple[str, str]] = {
    "author": ("was written by", "author"),
    "published": ("is dated", "date"),
    "changed": ("was last changed on", "time of change"),
    "title": ("is titled", "title"),
    "doi": ("has the DOI", "DOI"),
    "venue": ("appeared in", "venue"),
    "keywords": ("has the keywords", "keywords"),
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
_FIELD_OF_VALUES = {"authors": "author", "venues": "venue", "journals": "venue", "keywords": "keywords"}
_OF_DOCUMENTS = frozenset(("document_id", "document_source", "file_path"))
Known = tuple[DocumentInfo, Sequence[Chunk]]
"""A document, and its searchable chunks that pass the filter: at least one."""


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
        subject = question.subject
        if not found and not subject:
            return _unanswered(state, "no document is in scope; name one by its path, or filter by one")
        if not found:
            return _unanswered(state, f"no document called “{subject}” is in the index")
        if len(found) > MOST_NAMED:
            return _unanswered(state, f"“{subject}” may be any of {len(found)} documents; name one by its path")
        verb, noun = _WORDS[question.asked]
        read = ((info, _read(question.asked, info, chunks)) for info, chunks in found)
        told = [(info, value) for info, value in read if value is not None]
        if not told:
            where = ", ".join(address(info) for info, _ in found)
            return _unanswered(state, f"the metadata of {where} has no {noun}")
        called = address if question.asked == "title" else _called
        lines = (f"{called(info)} {verb} {value} ({origin})." for info, (value, origin) in told)
        return _answered(state, "\n".join(lines), [info for info, _ in told])

    def _named(self, question: MetadataQuestion, where: Filter) -> list[Known]:
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

        def passes(info: DocumentInfo) -> bool:
            known = {META + key: value for key, value in info.meta}
            known |= {"document_id": info.id, "document_source": info.source, "file_path": info.path}
            return fulfils(known.get, where)

        return list(islice(filter(passes, infos), MOST_NAMED + 1))

    def _of_collection(self, question: MetadataQuestion, state: QueryState) -> QueryState:
        where = state.query.where
        if question.kind in _KINDS:  # other kinds mean any document
            where = (*where, Eq("corpus_type", _KINDS[question.kind]))
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
        found_infos = [info for info, _ in found]
        return _answered(state, _listing(question, found_infos), found_infos[:MOST_WORKS])

    def _mentioning(self, subject: str, where: Filter) -> list[DocumentInfo]:
        terms = self.tokenizer.prose(subject)[0]
        found = self.store.search_words("bm25_nlp", terms, MOST_MENTIONS, where).ids
        held = self.store.held_terms({"bm25_nlp": terms}, found)
        ids = [number_id(each) for each, own in zip(found.tolist(), held, strict=True)
               if set(own.get("bm25_nlp", ())) == set(terms)]  # fmt: skip
        chunks = self.store.get(ids)
        return list(self.store.documents_of({chunks[each].document_id for each in ids if each in chunks}))

    def _value_counts(self, field: str, where: Filter) -> str:
        counts: Counter[str] = Counter()
        for info, chunks in self._passing(self.documents(), where):
            if field == "years":
                counts.update([year_of(info)])
            elif field in _FIELD_OF_VALUES:
                value = _first(info, _KEYS[_FIELD_OF_VALUES[field]]) or ""
                counts.update({part.strip() for part in _AND.split(value)})
            else:
                counts.update([chunks[0].corpus_type])
        del counts[""]
        shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        rest = f" and {len(shown) - MOST_VALUES} more" if len(shown) > MOST_VALUES else ""
        return f"{field.capitalize()}: " + ", ".join(f"{name} ({n})" for name, n in shown[:MOST_VALUES]) + rest + "."

    def _passing(self, infos: Iterable[DocumentInfo], where: Filter) -> list[Known]:
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
        cited = [hit for each in state.evidence if (hit := self._hit(each, state)) is not None]
        why = "its metadata answers the question"
        return state.changed(hits=put_first(self.name, cited, state.hits, top, lambda _: why))

    def _hit(self, document_id: str, state: QueryState) -> Hit | None:
        found = next((hit for hit in state.hits if hit.chunk.document_id == document_id), None)
        if found is not None:
            return found
        known = _known(self.store, document_id, state.query.where)
        return None if known is None else Hit(known[1][0], 0.0)


def _known(store: ChunkReader, document_id: str, where: Filter) -> Known | None:
    """Return a document of this snapshot; None if it is gone or no chunk passes the filter."""
    info = store.document(document_id)
    if info is None:
        return None
    searchable = {chunk.id: chunk for chunk in store.document_chunks(document_id) if chunk.level == "chunk"}
    chunks = [searchable[each] for each in passing(store, searchable, where)]
    return (info, chunks) if chunks else None


def _called(info: DocumentInfo) -> str:
    return f"“{info.title}” ({address(info)})"


def _listing(question: MetadataQuestion, found: list[DocumentInfo]) -> str:
    works = "; ".join(map(_called, found[:MOST_WORKS]))
    rest = f"; and {len(found) - MOST_WORKS} more" if len(found) > MOST_WORKS else ""
    if question.asked == "count":
        about = " ".join(filter(None, (question.kind if len(found) == 1 else f"{question.kind}s", _by(question))))
        return f"{len(found)} {about}: {works}{rest}." if found else f"0 {about}."
    by = _by(question)
    head = f"Mention {question.subject}" if question.asked == "mentions" else by[:1].upper() + by[1:]
    return f"{head}: {works}{rest}."


def _by(question: MetadataQuestion) -> str:
    by = f"by {question.subject}" if question.subject else ""
    return " ".join(filter(None, (by, f"from {question.year}" if question.year else "")))


def _answered(state: QueryState, text: str, found: list[DocumentInfo]) -> QueryState:
    return state.changed(metadata_answer=text, evidence=tuple(info.id for info in found))


def _unanswered(state: QueryState, reason: str) -> QueryState:
    note = Degradation(STAGE, f"not answered from metadata: {reason}; these are search results")
    return state.changed(degraded=(*state.degraded, note))
