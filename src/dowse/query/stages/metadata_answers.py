"""A question about documents as wholes goes in; its answer from their metadata, and they as evidence, come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dowse.filters import Filter, In
from dowse.identity import id_number
from dowse.ports import StoreReader
from dowse.query.plan.metadata_questions import Asked, MetadataQuestion, metadata_question
from dowse.query.stages.catalogue import (
    Field,
    address,
    author_of,
    changed_of,
    doi_of,
    is_by,
    named,
    published_of,
    title_of,
)
from dowse.query.stages.state import Hit, Slate
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Degradation, DocumentInfo, Score

MOST_NAMED = 3  # chosen: a subject that names more documents names none
MOST_WORKS = 20  # chosen: more is a listing, not an answer
STAGE = "metadata"

Reading = Callable[[DocumentInfo, Sequence[Chunk]], Field | None]
_READINGS: Mapping[Asked, tuple[Reading, str, str]] = {
    "author": (author_of, "was written by", "author"),
    "published": (published_of, "is dated", "date"),
    "changed": (changed_of, "was last changed on", "time of change"),
    "title": (title_of, "is titled", "title"),
    "doi": (doi_of, "has the DOI", "DOI"),
}
# What a question may call a kind of writing, and which it is.
_KINDS: Mapping[str, str] = {
    "adr": "DOC_ADR",
    "paper": "DOC_PAPER",
    "preprint": "DOC_PAPER",
    "publication": "DOC_PAPER",
    "readme": "DOC_README",
    "runbook": "DOC_RUNBOOK",
    "transcript": "CONVO_TRANSCRIPT",
}


@dataclass(frozen=True)
class _Known:
    """A document that passes the filter."""

    info: DocumentInfo
    chunks: Sequence[Chunk]
    passing: Sequence[Chunk]  # searchable ones


@dataclass(frozen=True)
class AnswerMetadata:
    """Answers and sets the evidence, or says why not; the search goes on in both cases (C-25)."""

    store: StoreReader
    documents: Callable[[], Iterable[DocumentInfo]]
    tokenizer: Tokenizer
    name: str = STAGE

    def __call__(self, slate: Slate, /) -> Slate:
        question = metadata_question(slate.query.text)
        if question is None:
            return _unanswered(slate, "the question names no field and document that metadata has")
        works = question.asked == "works"
        found = self._works(question, slate.query.where) if works else self._named(question, slate.query.where)
        if not found:
            return _unanswered(slate, f"no document {'by' if works else 'called'} “{question.subject}” is known")
        if works:
            return _answered(slate, _listing(question, found), found)
        if len(found) > MOST_NAMED:
            return _unanswered(
                slate, f"“{question.subject}” may be any of {len(found)} documents; name one by its path"
            )
        reading, verb, field = _READINGS[question.asked]
        told = [(each, value) for each in found if (value := reading(each.info, each.chunks)) is not None]
        if not told:
            where = ", ".join(address(each.info) for each in found)
            return _unanswered(slate, f"the metadata of {where} has no {field}")
        lines = (f"{_called(each.info, question)} {verb} {value.value} ({value.origin})." for each, value in told)
        return _answered(slate, "\n".join(lines), [each for each, _ in told])

    def _named(self, question: MetadataQuestion, where: Filter) -> list[_Known]:
        if question.subject.lower() == question.kind or question.subject.lower() in ("it", "document", "paper"):
            return self._passing(_filtered_documents(self.store, where), where)
        infos = list(self.documents())
        full = named(question.subject, infos, self.tokenizer)
        # "the retry paper": the kind is part of a title or path, or it is not.
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


@dataclass(frozen=True)
class CiteEvidence:
    """The documents that answer a metadata question come first, each with its best or else its first chunk."""

    store: StoreReader
    name: str = "evidence"

    def __call__(self, slate: Slate, /) -> Slate:
        if not slate.evidence:
            return slate
        top = max([1.0, *(hit.value for hit in slate.hits)])
        cited: list[Hit] = []
        for document_id in slate.evidence:
            hit = self._hit(document_id, slate)
            if hit is not None:
                score = Score(self.name, top, len(cited) + 1, "its metadata answers the question")
                cited.append(hit.changed(value=top, scores=(*hit.scores, score)))
        first = {hit.chunk.id for hit in cited}
        return slate.changed(hits=(*cited, *(hit for hit in slate.hits if hit.chunk.id not in first)))

    def _hit(self, document_id: str, slate: Slate) -> Hit | None:
        found = next((hit for hit in slate.hits if hit.chunk.document_id == document_id), None)
        if found is not None:
            return found
        known = _known(self.store, document_id, slate.query.where)
        return None if known is None else Hit(known.passing[0], 0.0)


def _known(store: StoreReader, document_id: str, where: Filter) -> _Known | None:
    """The document as this moment of the store has it; None when it is gone or no chunk of it passes."""
    info = store.document(document_id)
    if info is None:
        return None
    chunks = store.document_chunks(document_id)
    searchable = [chunk for chunk in chunks if chunk.level == "chunk"]
    mask = store.passing(np.array([id_number(chunk.id) for chunk in searchable], np.uint64), where)
    passing = [chunk for chunk, passes in zip(searchable, mask, strict=True) if passes]
    return _Known(info, chunks, passing) if passing else None


def _filtered_documents(store: StoreReader, where: Filter) -> list[DocumentInfo]:
    """Those that the request's own filter names: then "the paper" is clear."""
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


def _answered(slate: Slate, text: str, found: list[_Known]) -> Slate:
    return slate.changed(metadata_answer=text, evidence=tuple(each.info.id for each in found))


def _unanswered(slate: Slate, reason: str) -> Slate:
    note = Degradation(STAGE, f"not answered from metadata: {reason}; these are the hits of a search")
    return slate.changed(degraded=(*slate.degraded, note))
