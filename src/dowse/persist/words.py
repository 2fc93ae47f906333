"""tantivy: terms go in once and are never deleted; candidates of a word leg come out.

Chunks that died are left out by the caller's mask, so that a searcher, however new, agrees with the mapped arrays of
the moment it serves. tantivy rounds chunk lengths, so its scores choose candidates and are not reported: the forward
index gives the exact ones (rescoring the top 100 restores the exact top 10 in every query, shared/lab/words.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import msgspec
import numpy as np
import tantivy
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError, StorageError
from dowse.text import STOP_MARK, Terms
from dowse.types import Leg

_FIELDS: dict[Leg, str] = {"bm25_code": "code", "bm25_nlp": "prose"}
_HEAP_BYTES = 64_000_000  # chosen: a commit of a few thousand chunks fits in memory, so it is one segment
_FOOTER_MAGIC = 1337


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name, option in (("code", "freq"), ("prose", "freq"), ("stops", "freq"), ("tags", "basic")):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option=option)
    builder.add_unsigned_field("slot", fast=True)
    return builder.build()


@contextmanager
def _errors(folder: Path) -> Iterator[None]:
    """The border to tantivy, which says everything with ValueError."""
    try:
        yield
    except (ValueError, OSError, SystemError) as err:
        text = str(err)
        # A worker that died says no more than that; it writes segments, and only the disk can refuse those.
        if "No space left" in text or "os error 28" in text or "Worker thread failed" in text:
            raise StorageError(
                f"no space left for {folder}; free some and run the command again, nothing is lost"
            ) from err
        if "Permission denied" in text or "Read-only file system" in text:
            raise StorageError(f"cannot write {folder}: {text}") from err
        raise CorruptIndexError(f"{folder} cannot be read ({text}); run `dowse rebuild`") from err


def _open(folder: Path) -> tantivy.Index:
    if os.access(folder, os.W_OK):
        index = tantivy.Index.open(str(folder))
        index.reload()
        return index
    # tantivy takes a lock file even to read. Where none can be made, links to the files are opened in a place where
    # one can; once open, they are mapped and the place may go. tantivy may put a lock file back while it goes.
    with TemporaryDirectory(prefix="dowse-", ignore_cleanup_errors=True) as links:
        for path in folder.iterdir():
            if path.suffix != ".lock":
                (Path(links) / path.name).symlink_to(path.absolute())
        index = tantivy.Index.open(links)
        index.reload()
        return index


def _field(leg: Leg, term: str) -> str:
    return "stops" if term.startswith(STOP_MARK) else _FIELDS[leg]


class WordsWriter:
    """Adds chunks; what `commit` returns from is searchable."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        with _errors(folder):
            self._index = tantivy.Index(_schema(), path=str(folder))

    @cached_property
    def _writer(self) -> tantivy.IndexWriter:
        """Made at the first append: it starts threads, which a run that changes nothing does not need."""
        return self._index.writer(_HEAP_BYTES, 1)

    def rows(self) -> int:
        """How many chunks are committed."""
        with _errors(self.folder):
            self._index.reload()
            return self._index.searcher().num_docs

    def append(self, first_slot: int, rows: Sequence[Terms], tags: Sequence[Sequence[str]]) -> None:
        with _errors(self.folder):
            for slot, (terms, own) in enumerate(zip(rows, tags, strict=True), start=first_slot):
                document = tantivy.Document()
                document.add_text("code", " ".join(terms.code))
                document.add_text("prose", " ".join(terms.prose))
                document.add_text("stops", " ".join(terms.stops))
                document.add_text("tags", " ".join(own))
                document.add_unsigned("slot", slot)
                self._writer.add_document(document)

    def commit(self) -> None:
        with _errors(self.folder):
            self._writer.commit()

    def abandon(self) -> None:
        """Forget what was not committed. A writer whose disk was full cannot be waited for."""
        self.__dict__.pop("_writer", None)

    def close(self) -> None:
        """Let merges end. The next append, if any, makes a new writer."""
        writer = self.__dict__.pop("_writer", None)
        if writer is not None:
            with _errors(self.folder):
                writer.wait_merging_threads()


class WordsReader:
    """Candidates at one moment."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "meta.json").exists():
            raise CorruptIndexError(f"{folder} is missing; run `dowse rebuild`")
        self.folder = folder
        with _errors(folder):
            self._index = _open(folder)
            self._searcher = self._index.searcher()
            # tantivy opens a field's files when it is first asked for; asked now, a lost one is noticed on open.
            for field in (*_FIELDS.values(), "stops", "tags"):
                self._searcher.doc_freq(field, STOP_MARK)
        self._schema = self._index.schema

    @property
    def rows(self) -> int:
        return self._searcher.num_docs

    def frequency(self, leg: Leg, term: str) -> int:
        """How many chunks, dead ones included, hold a term."""
        return self._searcher.doc_freq(_field(leg, term), term)

    def candidates(
        self, leg: Leg, terms: Mapping[str, int], limit: int, tags: Sequence[Sequence[str]]
    ) -> NDArray[np.int64]:
        """Slots, best first. `terms`: how often the query says each. `tags`: a chunk must have one of each group."""
        with _errors(self.folder):
            found = tantivy.Query.boolean_query(
                [(tantivy.Occur.Should, self._term(leg, term, times)) for term, times in terms.items()]
            )
            if tags:
                found = tantivy.Query.boolean_query([(tantivy.Occur.Must, found), *map(self._any_of, tags)])
            hits = self._searcher.search(found, limit=limit, count=False).hits
            slots = self._searcher.fast_field_values("slot", [address for _, address in hits])
        return np.array(slots, np.int64)

    def _term(self, leg: Leg, term: str, times: int) -> tantivy.Query:
        found = tantivy.Query.term_query(self._schema, _field(leg, term), term, "freq")
        return found if times == 1 else tantivy.Query.boost_query(found, float(times))

    def _any_of(self, tags: Sequence[str]) -> tuple[tantivy.Occur, tantivy.Query]:
        terms = [(tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "tags", each, "basic")) for each in tags]
        return tantivy.Occur.Must, tantivy.Query.const_score_query(tantivy.Query.boolean_query(terms), 0.0)

    def damaged(self) -> Iterator[str]:
        """Names of segment files whose bytes are not those that were written.

        tantivy ends each file with a JSON footer (the CRC-32 of what stands before), its length and a magic number.
        Files that no segment claims are the rest of a killed writer or the work of a living one.
        """
        meta = msgspec.json.decode((self.folder / "meta.json").read_bytes())
        segments = {each["segment_id"].replace("-", "") for each in meta["segments"]}
        for path in sorted(self.folder.iterdir()):
            if path.name.split(".")[0] not in segments:
                continue
            data = path.read_bytes()
            size, magic = np.frombuffer(data[-8:], "<u4") if len(data) >= 8 else (0, 0)
            try:
                footer = msgspec.json.decode(data[-8 - int(size) : -8])
            except msgspec.DecodeError:
                footer = {}
            if magic != _FOOTER_MAGIC or footer.get("crc") != crc32(data[: -8 - int(size)]):
                yield f"words/{path.name}"
