"""Fuzzed readers: whatever the bytes are, the run goes on, the neighbours are found, and everything can be stored.

DOWSE_THOROUGH=1 draws new inputs, and ten times as many.
"""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.ingest.readers.registry import _OWN, find_readers
from dowse.ingest.reading.read_file import FileReader, Task
from dowse.ingest.sources.kinds import classify
from dowse.ports import FileKind
from dowse.types import CorpusType
from pdf_files import column, pdf

NAMES = {
    "code": "a.py", "markdown": "a.md", "text": "a.txt", "slack": "2024-01-02.json", "transcript": "a.vtt",
    "mail": "a.eml", "rst": "a.rst", "html": "a.html", "docx": "a.docx", "pdf": "a.pdf", "csv": "a.csv",
    "json": "a.json", "notebook": "a.ipynb", "yaml": "a.yaml", "dockerfile": "Dockerfile", "hcl": "a.tf",
    "proto": "a.proto", "env": ".env",
}  # fmt: skip
HALVES = ["\\ud800", "\\udfff x", "&#xd800;", "&#55296;", "\ud800", "\\U0000d800", "\x00", "\ufffe", "\\uDC00\\uD800"]
WORDS = [
    "---\n",
    "- ",
    "a: ",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "`",
    "```\n",
    "<a",
    ">",
    "</",
    "&",
    "*b ",
    "&b ",
    "<<: *b",
    "| ",
    "\n",
    "\n\n",
    "\t",
    "#",
    "# h\n",
    "= ",
    "message A {\n",
    "rpc X(",
    "def f(:\n",
    "class ",
    "import x\n",
    "/*",
    "//",
    "=?utf-8?b?//8=?=",
    "From: a\n",
    "Content-Type: multipart/mixed; boundary=x\n",
    "--x\n",
    "00:00:00.000 --> 99:99:99.999\n",
    "1e999",
    "NaN",
    "-1",
    "9" * 30,
    '{"cells": [{"source": 1}]}',
    '{"ts": "x", "text": []}',
    "kind: Secret\n",
    "data:\n",
    "FROM x\n",
    "RUN <<E\n",
    'resource "a" "b" {\n',
    "password = ",
    ".. code::\n",
    "====\n",
    ",",
    ";;",
    "\\",
    "%",
    "\u202e",
    "\u0130",
    "ß",
]
PIECES = st.one_of(st.sampled_from([*WORDS, *HALVES]), st.text(max_size=12), st.sampled_from(HALVES))
KEYS = ["cells", "source", "cell_type", "metadata", "ts", "user", "text", "messages", "paths", "kind", "\udfff"]
VALUES = st.recursive(
    st.sampled_from([None, 1, -1.5, "x", "\ud800", True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
BYTES = st.one_of(
    st.lists(PIECES, max_size=25).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass")),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
)


def read(reader: FileReader, name: str, data: bytes) -> str:
    kind = FileKind(name, "python" if name == "code" else None, CorpusType.DOC_README)
    result = reader.read(Task("s", NAMES[name], f"/s/{NAMES[name]}", kind, 1 << 22, data=data, explicit=True))
    msgspec.msgpack.encode(result)  # what a worker sends and a store writes
    return result.problem


@pytest.mark.parametrize("name", sorted(_OWN))
def test_no_bytes_make_a_reader_fail(name: str) -> None:
    """A failed reader is caught by FileReader, too; here its name shows that the reader should say more."""
    reader = FileReader(find_readers())

    @settings(max_examples=settings.default.max_examples * 2 if settings.default else 200)
    @given(BYTES)
    def fuzz(data: bytes) -> None:
        assert "reader failed" not in read(reader, name, data)

    fuzz()


@pytest.mark.parametrize("name", sorted(_OWN))
@pytest.mark.parametrize("half", HALVES)
def test_half_a_character_ends_nothing(name: str, half: str) -> None:
    reader = FileReader(find_readers())
    wrapped = {
        "notebook": '{"cells":[{"cell_type":"markdown","metadata":{"%s":1},"source":["%s lone"]}],"nbformat":4}',
        "slack": '[{"type":"message","user":"U%s","ts":"1700000000.000100","text":"%s lone"}]',
        "json": '{"%s": "%s"}', "yaml": 'kind: "%s"\na: "%s"\n', "html": "<title>%s</title><p>%s</p>",
        "mail": "From: %s\nSubject: x\n\n%s\n",
    }.get(name, "# %s\n\n%s text\n")  # fmt: skip
    text = wrapped.replace("%s", half)
    read(reader, name, text.encode("utf-8", "surrogatepass"))


def test_mutated_pdfs_are_problems_at_worst() -> None:
    reader, data = FileReader(find_readers()), bytearray(pdf([column(["Alpha beta."], 50, 700)]))
    for at in range(0, len(data), max(1, len(data) // 60)):
        changed = bytearray(data)
        changed[at] ^= 0x41
        read(reader, "pdf", bytes(changed))


# Each opens something again and again, and never closes it.
OPENINGS = {
    "a.proto": ("message A {\n", "message A { "),
    "a.json": ("[", '{"a":', '["a", '),
    "a.yaml": ("- ", "a: [", "{b: ", "? ", "&a "),
    "a.py": ("(", "a + ", "def f(", "if a:\n", "class A: "),
    "a.md": ("*", "> ", "[", "|a", "- a\n  ", "# a\n", "`"),
    "a.html": ("<div>", "<a b='c' ", "<table><tr><td>", "&lt;"),
    "a.xml": ("<a>", "<a b='"),
    "a.tf": ('a "b" {\n', "a = [", "<<E\n"),
    "a.rst": ("*", "a\n=\n", "..  ", "| "),
    "a.csv": (",", '"', "a,b\n"),
    "a.ipynb": ('{"cells": [', "["),
    "Dockerfile": ("RUN a \\\n", "FROM "),
    ".env": ("A=", "A=b\n", "'"),
    "a.txt": ("password=", "token 1a2b3c4d ", "1a", "password='", "a://b:", "secret,", "-----BEGIN PRIVATE KEY-----"),
}


@pytest.mark.parametrize(("name", "part"), [(name, part) for name, parts in OPENINGS.items() for part in parts])
def test_a_hostile_file_makes_no_more_text_than_its_size_allows(name: str, part: str) -> None:
    """Four times the input makes about four times the text."""
    readers = find_readers()
    reader = FileReader(readers)

    def read(size: int) -> int:
        data = (part * (size // len(part) + 1)).encode()
        document = reader.read(Task("s", name, name, classify(name, readers), 10**9, explicit=True, data=data)).document
        return sum(len(msgspec.msgpack.encode(chunk)) for chunk in document.chunks) if document else 0

    assert read(60_000) <= 8 * read(15_000) + 200_000
