"""Dockerfiles, Terraform, .proto and .env files; and what all readers of this kind owe for any input."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dowse
import sample_truth as truth
from dowse.errors import BadRequestError
from dowse.identity import embedded_text, text_hash
from dowse.ingest.chunking.document import decode
from dowse.ingest.manifests.env import without_values
from dowse.ports import Reader, SourceFile
from dowse.types import Chunk, Document
from readers_by_name import reader_of

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"


def read(reader: Reader, path: str, text: str | None = None) -> Document:
    data = (SAMPLE / path).read_bytes() if text is None else text.encode()
    return reader.read(SourceFile("shop", path, data, 0))


def symbols(document: Document) -> list[tuple[str | None, str | None, int | None, int | None]]:
    return [(c.symbol_kind, c.qualified_name, c.start_line, c.end_line) for c in document.chunks if c.symbol_kind]


def test_terraform_gives_a_chunk_for_each_block_by_its_address() -> None:
    assert symbols(read(reader_of("hcl"), "deploy/terraform/main.tf")) == [
        ("terraform", "terraform", 3, 11),
        ("provider", "provider.nimbus", 13, 15),
        ("locals", "locals", 17, 23),
        ("resource", "nimbus_bucket.backups", 25, 34),
        ("resource", "nimbus_dns_record.database", 36, 44),
    ]
    variables = read(reader_of("hcl"), "deploy/terraform/variables.tf").chunks
    assert [c.qualified_name for c in variables] == ["var.region", "var.environment", "var.databases"]
    assert variables[0].summary == "Where everything runs"


def test_proto_gives_a_chunk_for_each_message_and_each_procedure() -> None:
    document = read(reader_of("proto"), "proto/wrenfold/quotes/v1/quotes.proto")
    found = {c.qualified_name: c for c in document.chunks if c.symbol_kind}
    assert {"QuoteService", "QuoteService.GetQuote", "VehicleClass", "GetQuoteRequest"} <= set(found)
    assert found["QuoteService"].signature == "service QuoteService: GetQuote, GetQuotes, GetKilometreRate"
    path, name, line = truth.SYMBOLS[-1]
    assert (path, name) == ("proto/wrenfold/quotes/v1/quotes.proto", "QuoteService.GetQuote")
    call = found[name]
    assert call.start_line is not None
    assert call.start_line <= line <= (call.end_line or 0)
    assert (call.summary or "").startswith("Price one parcel.")


def test_braces_in_comments_and_strings_of_a_proto_do_not_count() -> None:
    text = 'message A {\n  // } not the end {\n  string b = 1 [default = "}"];\n}\nmessage C {}\n'
    assert symbols(read(reader_of("proto"), "a.proto", text)) == [("message", "A", 1, 4), ("message", "C", 5, 5)]


def test_a_short_dockerfile_is_one_chunk_and_a_long_one_has_one_for_each_stage() -> None:
    assert len(read(reader_of("dockerfile"), "services/booking-api/Dockerfile").chunks) == 1
    long = "FROM node:22 AS compile\n" + "RUN echo one two three four\n" * 40 + "FROM alpine\n" + "RUN true\n" * 10
    found = symbols(read(reader_of("dockerfile"), "Dockerfile", long))
    assert {kind for kind, _, _, _ in found} == {"stage"}
    assert found[-1][2:] == (42, 52)


def test_an_env_file_is_kept_without_its_values() -> None:
    text = "# how to log in\nexport A=one\nB = 'two\nthree=four\n'\nC: five\nsix\n"
    assert without_values(text) == "# how to log in\nexport A=\nB=\n\n\nC=\n\n"
    document = read(reader_of("env"), "env.example")
    assert "CARTOGRAPH_TOKEN=" in document.chunks[0].text
    assert "debug" not in document.chunks[0].text


READERS = (reader_of("yaml"), reader_of("dockerfile"), reader_of("hcl"), reader_of("proto"), reader_of("env"))
PARTS = [
    *"abc{}[]:-#'\"\n\n  |>&*=/\t", "apiVersion: v1\n", "kind: Service\n", "metadata:\n  name: x\n", "---\n",
    "services:\n",
    "  web:\n    image: a\n", "jobs:\n", "paths:\n  /a:\n    get: {}\n", "openapi: 3.0.0\n", "{{ x }}", "FROM a AS b\n",
    "EXPOSE 80\n", 'resource "a" "b" {\n', "}\n", "message A {\n", "service B {\n  rpc C(A) returns (A);\n", "&a", "*a",
    "<<: *a\n", "\u2028", "é", "ENV A=http://b:1\n", "    environment:\n      A_URL: http://b\n", "\x00", "\r",
]  # fmt: skip


def read_or_refuse(reader: Reader, file: SourceFile) -> Document | None:
    """None when it was refused with a reason. Any other error is a bug, and surfaces."""
    try:
        return reader.read(file)
    except BadRequestError:
        return None


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.name)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=60))
def test_any_text_gives_chunks_with_right_lines_or_a_reason(reader: Reader, parts: list[str]) -> None:
    file = SourceFile("s", "deploy/templates/x.yaml", "".join(parts).encode(), 0)
    document = read_or_refuse(reader, file)
    if document is None:
        return
    assert reader.read(file) == document
    assert len({chunk.id for chunk in document.chunks}) == len(document.chunks)
    text = decode(file.data) if reader.name != "env" else without_values(decode(file.data))
    for chunk in document.chunks:
        _stands_where_it_says(chunk, text.split("\n"))


def _stands_where_it_says(chunk: Chunk, lines: list[str]) -> None:
    assert chunk.content_hash == text_hash(embedded_text(chunk))
    assert chunk.start_line is not None
    assert chunk.end_line is not None
    assert chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.name)
@given(data=st.binary(max_size=200))
def test_any_bytes_give_chunks_or_a_reason(reader: Reader, data: bytes) -> None:
    document = read_or_refuse(reader, SourceFile("s", "x", data, 0))
    assert document is None or all(chunk.text.strip() for chunk in document.chunks)
