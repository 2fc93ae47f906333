"""Corpus of the benchmarks: chunks of real code and docs, the same on every machine.

The text is that of released packages, fetched by name and version from the configured package index as wheels, unpacked
and never installed. Packages take turns, file by file, so that the first 10,000 chunks are as mixed as all of them.
Files are cut by Dowse's own readers of the day; what is in the cache stays as it is. Beyond what the packages hold, a
chunk is an earlier one with its words rotated and a fifth of them left out (`rotated`), which keeps the lengths and the
frequencies of the words.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import msgspec
from msgspec.structs import replace

from bench import cache
from dowse.errors import BadRequestError
from dowse.identity import bytes_hash, chunk_id, document_id, embedded_text, text_hash
from dowse.ingest.readers.registry import find_readers
from dowse.ingest.sources.kinds import classify
from dowse.ports import Reader, SourceFile
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, CorpusType, Document

LAYOUT = 1  # raise it when the chunks change
TEXT_SUFFIXES = (
    ".py", ".pyi", ".md", ".rst", ".txt", ".js", ".ts", ".c", ".h", ".cpp", ".hpp", ".pyx", ".yml", ".yaml", ".toml",
    ".cfg", ".sh", ".html", ".css", ".sql", ".java", ".go", ".rs", ".ps1", ".j2", ".proto",
)  # fmt: skip
LARGEST_BYTES = 200_000  # chosen: above it, files are generated tables
TENTHS, PARTS = 10, 200  # values of the two filter fields: 10 % and 0.5 % of the chunks each, scattered
DOCUMENT_CHUNKS = 8  # of a document in Dowse's index; chosen
SOURCE = "bench"
KEPT_WORDS = 0.8  # of a rotated chunk

PACKAGES = (
    "ansible==12.3.0", "ansible-core==2.19.14", "apache-airflow-core==3.3.2",
    "apache-airflow-providers-amazon==9.39.0", "apache-airflow-providers-google==22.8.0", "astropy==8.0.2",
    "awscli==1.46.2", "celery==5.7.0", "cinder==29.0.0", "dask==2026.8.0", "diffusers==0.42.1", "django==5.2.19",
    "glance==33.0.0", "haystack-ai==3.4.1", "homeassistant==2024.3.3", "jedi==0.20.1", "keystone==30.0.0",
    "langchain-community==0.4.2", "llama-index-core==0.14.25", "matplotlib==3.11.2", "mypy==2.4.1",
    "networkx==3.6.1", "neutron==29.0.0", "nltk==3.10.4", "nova==34.0.0", "pandas==3.1.1", "pylint==4.1.3",
    "scikit-learn==1.9.1", "scipy==1.17.1", "sphinx==9.0.4", "sqlalchemy==2.1.8", "statsmodels==0.15.0",
    "sympy==1.14.0", "transformers==5.22.2", "twisted==26.10.0", "xarray==2026.9.0", "zulip==0.9.1",
)  # fmt: skip


class Line(msgspec.Struct, frozen=True):
    """Chunk as every engine under test gets it."""

    id: str
    text: str
    code: str  # terms of Dowse's two tokenizers, joined by blanks: all word engines index the same terms
    prose: str
    tenth: str
    part: str


def lines(chunks: int) -> Path:
    """Return the corpus as a file of JSON lines, made on first use."""
    place = cache.folder(f"corpus-{LAYOUT}") / f"{chunks}.jsonl"
    if not place.exists():
        partial = place.with_suffix(".partial")
        encode, tokenizer = msgspec.json.Encoder().encode, Tokenizer()
        with partial.open("wb") as out:
            for document in _documents(chunks):
                for chunk in document.chunks:
                    out.write(encode(_line(chunk, tokenizer)) + b"\n")
        partial.rename(place)
    return place


def read_lines(chunks: int) -> Iterator[Line]:
    decode = msgspec.json.Decoder(Line).decode
    with lines(chunks).open("rb") as stream:
        for line in stream:
            yield decode(line)


def documents(chunks: int) -> Iterator[Document]:
    """Yield the corpus as documents of eight chunks, with the text that the peers get."""
    group: list[Line] = []
    for line in read_lines(chunks):
        group.append(line)
        if len(group) == DOCUMENT_CHUNKS:
            yield _document(group)
            group = []
    if group:
        yield _document(group)


def _document(group: list[Line]) -> Document:
    name = document_id(SOURCE, group[0].id)
    chunks = [
        Chunk(
            line.id,
            name,
            line.text,
            CorpusType.CODE_LOGIC,
            f"{SOURCE}/{group[0].id}",
            document_source=SOURCE,
            content_hash=text_hash(line.text),
            meta=(("part", line.part), ("tenth", line.tenth)),
        )
        for line in group
    ]
    return Document(name, SOURCE, group[0].id, group[0].id, text_hash(group[0].text), tuple(chunks))


def _documents(chunks: int) -> Iterator[Document]:
    """Yield real files, then rotations of them, up to exactly that many chunks."""
    left = chunks
    kept: list[Document] = []
    for document in _real():
        cut = _first_chunks(document, left)
        left -= len(cut.chunks)
        kept.append(cut)
        yield cut
        if not left:
            return
    turn = 0
    while left:
        turn += 1
        for document in kept:
            cut = _first_chunks(rotated(document, turn), left)
            left -= len(cut.chunks)
            yield cut
            if not left:
                return


def rotated(document: Document, turn: int) -> Document:
    """Make a document of nearly the same words.

    Lines start at another word, a fifth of the words is dropped.
    """
    path = f"turn{turn}/{document.path}"
    rng = random.Random(f"{turn}:{document.id}")
    chunks = []
    for number, chunk in enumerate(document.chunks):
        words = chunk.text.split()
        at = rng.randrange(len(words)) if words else 0
        text = " ".join(word for word in (*words[at:], *words[:at]) if rng.random() < KEPT_WORDS) or f"empty {number}"
        uri = f"{document.source}/{path}"
        own = replace(chunk, id=chunk_id(uri, "chunk", text, number), text=text, source_uri=uri, file_path=path)
        own = replace(own, document_id=text_hash(uri)[:16], content_hash=text_hash(embedded_text(own)))
        chunks.append(marked(own))
    return replace(document, id=text_hash(f"{document.source}/{path}")[:16], path=path, chunks=tuple(chunks))


def marked(chunk: Chunk) -> Chunk:
    """Add the two fields that the benchmark filters by; they do not depend on the text."""
    number = int(text_hash(chunk.id)[:8], 16)
    return replace(chunk, meta=(("part", f"p{number % PARTS}"), ("tenth", f"t{number // PARTS % TENTHS}")))


def _line(chunk: Chunk, tokenizer: Tokenizer) -> Line:
    terms = tokenizer(embedded_text(chunk))
    fields = dict(chunk.meta)
    return Line(
        chunk.id, embedded_text(chunk), " ".join(terms.code), " ".join(terms.prose), fields["tenth"], fields["part"]
    )


def _first_chunks(document: Document, count: int) -> Document:
    """Keep the searched chunks, at most as many as wanted."""
    return replace(document, chunks=tuple(chunk for chunk in document.chunks if chunk.level == "chunk")[:count])


def _real() -> Iterator[Document]:
    """Yield documents of all packages in turn, without duplicate chunk texts."""
    factories = find_readers()
    readers: dict[str, Reader] = {}
    seen: set[str] = set()
    for file in files():
        kind = classify(file.path, factories)
        if kind.reader not in readers:
            readers[kind.reader] = factories[kind.reader]()
        try:
            document = readers[kind.reader].read(file)
        except BadRequestError:
            continue  # not UTF-8: some packages contain such test files
        new = tuple(marked(chunk) for chunk in document.chunks if chunk.content_hash not in seen)
        seen.update(chunk.content_hash for chunk in new)
        if new:
            yield replace(document, chunks=new, edges=())


def files() -> Iterator[SourceFile]:
    """Yield text files of all packages, one of each in turn, without duplicates."""
    turns = [_unpacked(path) for path in _wheels()]
    seen: set[str] = set()
    while turns:
        for turn in list(turns):
            file = next(turn, None)
            if file is None:
                turns.remove(turn)
            elif (digest := bytes_hash(file.data)) not in seen:
                seen.add(digest)
                yield file


def _unpacked(wheel: Path) -> Iterator[SourceFile]:
    source = wheel.name.split("-")[0].lower()
    with ZipFile(wheel) as archive:
        members = [each for each in archive.infolist() if _is_text(each)]
        random.Random(source).shuffle(members)
        for member in members:
            yield SourceFile(source, member.filename, archive.read(member), 0)


def _is_text(member: ZipInfo) -> bool:
    return member.filename.lower().endswith(TEXT_SUFFIXES) and 0 < member.file_size <= LARGEST_BYTES


def _wheels() -> list[Path]:
    """Return the wheels of the packages in the order of the list; fetch them if needed."""
    place = cache.folder("wheels")
    found = []
    for wanted in PACKAGES:
        name, version = wanted.split("==")
        pattern = f"{name.replace('-', '_').replace('.', '_')}-{version}-*.whl"
        if not any(place.glob(pattern)):
            _fetch(wanted, place)
        found.append(next(place.glob(pattern)))
    return found


def _fetch(wanted: str, place: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--only-binary", ":all:", "--dest", str(place), wanted], check=True)
