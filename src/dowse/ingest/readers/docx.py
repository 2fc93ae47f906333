"""Reader of Word files: a chunk for each section, under its path of headings.

It is a zip of XML from who knows where: sizes are limited while it is unpacked, XML that declares a document type is
refused, and the parser only ever holds one paragraph. A Word file has no lines: Word breaks them for each screen.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from lzma import LZMAError
from typing import NoReturn
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError  # noqa: N812 (an exception, whatever its name)

from msgspec import structs

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import no_lines
from dowse.ingest.chunking.page import SectionedText, document_of
from dowse.ingest.chunking.sections import CutPoint, sections_of
from dowse.ports import SourceFile
from dowse.types import Document

MOST_UNPACKED_BYTES = 64 * 1024**2  # a part; chosen: the XML of a book of a thousand pages has a tenth of it
_BLOCK_BYTES = 64 * 1024
_OLD_WORD = b"\xd0\xcf\x11\xe0"  # how files of Word 97 begin, and encrypted ones of any age
_MAIN = re.compile(r"/?word/document\d*\.xml")
_HEADING = re.compile(r"heading\s*([1-9])", re.IGNORECASE)
_LEFT_OUT = frozenset(("Fallback", "del", "moveFrom", "instrText"))  # said twice, struck out, or a command
_PROPERTIES = {"title": "title", "creator": "author", "created": "date", "keywords": "keywords", "subject": "subject"}

_Start = Callable[[str, dict[str, str]], None]
_Text = Callable[[str], None]
_End = Callable[[str], None]


def read_docx(file: SourceFile) -> Document:
    """Read headings, paragraphs, lists and tables in order, then footnotes; no pictures and comments."""
    if file.data.startswith(_OLD_WORD):
        raise BadRequestError("an encrypted or very old Word file; save it as .docx without a password")
    with _zip_errors():
        archive = ZipFile(BytesIO(file.data))
    try:
        writer, meta = _read(archive)
    except expat.ExpatError as err:
        raise BadRequestError(f"damaged Word file: {err}; open and save it again") from err
    text = "".join(writer.parts)
    headed = any(mark.level == 1 for mark in writer.marks)
    title = None if headed else dict(meta).get("title")
    return document_of(file, SectionedText(text, sections_of(writer.marks, 0, len(text)), title, meta), no_lines)


def _read(archive: ZipFile) -> tuple[_Writer, tuple[tuple[str, str], ...]]:
    members = {info.filename.lstrip("/"): info for info in archive.infolist()}
    main = next((name for name in sorted(members) if _MAIN.fullmatch(name)), None)
    if main is None:
        raise BadRequestError("not a Word file: it has no word/document.xml")
    styles = _Styles()
    if "word/styles.xml" in members:
        _parse(archive, members["word/styles.xml"], styles.start)
    writer = _Writer(styles.levels)
    for name in (main, "word/footnotes.xml", "word/endnotes.xml"):
        if name in members:
            _parse(archive, members[name], writer.start, writer.text, writer.end)
    properties = _Properties()
    if "docProps/core.xml" in members:
        _parse(archive, members["docProps/core.xml"], properties.start, properties.text)
    pairs = ((key, " ".join("".join(properties.found.get(name, ())).split())) for name, key in _PROPERTIES.items())
    return writer, tuple((key, value) for key, value in pairs if value)


def _parse(
    archive: ZipFile, member: ZipInfo, start: _Start, text: _Text | None = None, end: _End | None = None
) -> None:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = lambda name, given: start(_local(name), {_local(key): v for key, v in given.items()})
    if text is not None:
        parser.CharacterDataHandler = text
    if end is not None:
        parser.EndElementHandler = lambda name: end(_local(name))
    for block in _unpacked(archive, member):
        parser.Parse(block, False)
    parser.Parse(b"", True)


def _unpacked(archive: ZipFile, member: ZipInfo) -> Iterator[bytes]:
    if member.flag_bits & 1:
        raise BadRequestError(f"{member.filename} is encrypted; save the file without a password")
    size = 0
    with _zip_errors(), archive.open(member) as part:
        while block := part.read(_BLOCK_BYTES):
            size += len(block)
            if size > MOST_UNPACKED_BYTES:
                raise BadRequestError(f"{member.filename} unpacks to more than {MOST_UNPACKED_BYTES:,} bytes")
            yield block


@contextmanager
def _zip_errors() -> Iterator[None]:
    """What the standard library raises for a zip that is none, or no longer; found by fuzzing."""
    try:
        yield
    except (BadZipFile, ZlibError, LZMAError, struct.error, EOFError, OSError, RuntimeError, ValueError) as err:
        raise BadRequestError(f"not a Word file: {err}; open and save it again, or ignore it") from err


def _refuse(*_: object) -> NoReturn:
    raise BadRequestError("its XML declares a document type, which Word never does; open and save it again")


def _local(name: str) -> str:
    return name.rsplit(" ", 1)[-1]


@dataclass
class _Styles:
    """Which style is which level of heading: by its name, which stays English, or its outline level."""

    levels: dict[str, int] = field(default_factory=dict)
    style: str = ""

    def start(self, name: str, given: dict[str, str]) -> None:
        value = given.get("val", "")
        if name == "style":
            self.style = given.get("styleId", "")
        elif name == "name" and value.lower() == "title":
            self.levels[self.style] = 1
        elif name == "name" and (found := _HEADING.fullmatch(value)):
            self.levels[self.style] = int(found[1])
        elif name == "outlineLvl" and value.isdecimal() and int(value) < 9:
            self.levels.setdefault(self.style, int(value) + 1)


@dataclass
class _Properties:
    """The text of each element of docProps/core.xml."""

    found: dict[str, list[str]] = field(default_factory=dict)
    name: str = ""

    def start(self, name: str, _: dict[str, str]) -> None:
        self.name = name

    def text(self, text: str) -> None:
        self.found.setdefault(self.name, []).append(text)


@dataclass
class _Writer:
    """The text so far, and where it may be cut."""

    levels: dict[str, int]
    parts: list[str] = field(default_factory=list)
    marks: list[CutPoint] = field(default_factory=list)
    length: int = 0
    left_out: int = 0  # elements deep
    table: int = 0
    row: list[str] = field(default_factory=list)
    header: str = ""
    words: list[str] = field(default_factory=list)  # of the paragraph
    in_text: bool = False
    level: int = 0
    item: bool = False

    def start(self, name: str, given: dict[str, str]) -> None:
        if self.left_out or name in _LEFT_OUT:
            self.left_out += 1
        elif name == "t":
            self.in_text = True
        elif name in ("tab", "br", "cr"):
            self.words.append(" " if self.table else "\t" if name == "tab" else "\n")
        elif name == "pStyle":
            self.level = self.levels.get(given.get("val", ""), 0)
        elif name == "outlineLvl":
            with suppress(ValueError):
                self.level = self.level or (int(given.get("val", "9")) + 1) % 10
        elif name == "numPr":
            self.item = True
        elif name == "tbl":
            self.table += 1
            self.header = ""
        elif name == "tr" and self.table == 1:
            self.row = []

    def text(self, text: str) -> None:
        if self.in_text and not self.left_out:
            self.words.append(text)

    def end(self, name: str) -> None:
        if self.left_out:
            self.left_out -= 1
        elif name == "t":
            self.in_text = False
        elif name == "p" and self.table:
            self.words.append(" ")
        elif name == "p":
            self._paragraph("".join(self.words).strip())
        elif name == "tc" and self.table == 1:
            self.row.append(" ".join("".join(self.words).split()))
            self.words = []
        elif name == "tr" and self.table == 1:
            self._write(" | ".join(self.row), "\n" if self.header else "\n\n", CutPoint(0, lead=" | ".join(self.row)))
        elif name == "tbl":
            self.table -= 1

    def _paragraph(self, text: str) -> None:
        level, item = min(self.level, 6), self.item
        self.words, self.level, self.item = [], 0, False
        if not text:
            return
        if level:
            self._write(text, "\n\n", CutPoint(0, level, text))
        else:
            self._write(f"- {text}" if item else text, "\n" if item else "\n\n", CutPoint(0))

    def _write(self, text: str, blank: str, mark: CutPoint) -> None:
        if not text.strip(" |"):
            return
        blank = blank if self.parts else ""
        self.length += len(blank)
        if not (self.table and self.header):
            self.marks.append(structs.replace(mark, start=self.length))
        if self.table:
            self.header = self.header or text
        self.parts += (blank, text)
        self.length += len(text)
