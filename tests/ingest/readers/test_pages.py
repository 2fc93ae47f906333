"""Markdown, reStructuredText, HTML and Word: what the readers of pages with headings make of them."""

from contextlib import suppress
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docx_files import docx, paragraph, table
from dowse.errors import BadRequestError
from dowse.identity import embedded_text, text_hash
from dowse.ingest.chunking.pack import PROSE
from dowse.ingest.readers import docx as read_docx
from dowse.ingest.readers.html import DEEPEST
from dowse.ports import Reader, SourceFile
from dowse.types import Chunk, Document
from readers_by_name import reader_of

WORDS = "A sentence about parcels that is long enough to stand alone as a section of its own. "


def read(reader: Reader, data: str | bytes, path: str = "docs/a.x") -> Document:
    return reader.read(SourceFile("app", path, data.encode() if isinstance(data, str) else data, 7))


def html(text: str) -> tuple[Chunk, ...]:
    return read(reader_of("html"), text, "a.html").chunks


def rst(text: str) -> tuple[Chunk, ...]:
    return read(reader_of("rst"), text, "a.rst").chunks


def markdown(text: str, path: str = "docs/a.md") -> Document:
    return read(reader_of("markdown"), text, path)


# --- what a page is for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "corpus_type"),
    [
        ("# Retries\n\n## Status\n\nDone.\n\n## Context\n\nx\n\n## Decision\n\ny\n\n## Consequences\n\nz", "DOC_ADR"),
        ("# ADR-0007: Retries\n\nWe decided.", "DOC_ADR"),
        ("# Queue\n\n## Symptoms\n\nx\n\n## Diagnosis\n\ny\n\n## Mitigation\n\nz", "DOC_RUNBOOK"),
        ("# Runbook: queue backlog\n\nDo it.", "DOC_RUNBOOK"),
        ("---\ntype: runbook\n---\n# Queue\n\nDo it.", "DOC_RUNBOOK"),
        ("# Budgets\n\n## Abstract\n\nx\n\n## 1. Introduction\n\ny\n\n## References\n\n[1] z", "DOC_PAPER"),
        ("# Outage\n\n## Timeline\n\nx\n\n## Diagnosis\n\ny\n\n## Mitigation\n\nz", "DOC_PAGE"),
        ("# Why we read papers\n\nA paper a week.", "DOC_PAGE"),
        ("# Sandra\n\nIs a person.", "DOC_PAGE"),
    ],
)
def test_a_page_in_no_telling_folder_shows_what_it_is_by_its_content(text: str, corpus_type: str) -> None:
    assert {chunk.corpus_type for chunk in markdown(text).chunks} == {corpus_type}


def test_the_path_is_believed_before_the_content() -> None:
    text = "# Queue\n\n## Symptoms\n\nx\n\n## Diagnosis\n\ny\n\n## Escalation\n\nz"
    assert markdown(text, "docs/adr/1.md").chunks[0].corpus_type == "DOC_ADR"


def test_a_rule_of_the_user_is_believed_before_the_content() -> None:
    text = b"# Queue\n\n## Symptoms\n\nx\n\n## Diagnosis\n\ny"
    file = SourceFile("app", "docs/a.md", text, 7, corpus_type="DOC_PAGE")
    assert reader_of("markdown").read(file).chunks[0].corpus_type == "DOC_PAGE"


# --- papers ----------------------------------------------------------------------------------------

PAPER = f"""---
title: On Budgets
authors: [Ada Byron, Grace Murray]
doi: 10.1234/abc.5
---
# On Budgets

Ada Byron, Grace Murray

## Abstract

{WORDS}

## 1. Introduction

{WORDS}

## 2 The proposed method

{WORDS}

### 2.1 Details

{WORDS}

## III. Experimental results

{WORDS}

## Limitations

{WORDS}

## Thanks

{WORDS}

## References

""" + "\n".join(f"[{at}] Author {at}. Title {at}." for at in range(1, 13))


def test_the_parts_of_a_markdown_paper_know_which_they_are() -> None:
    document = markdown(PAPER, "papers/budgets.md")
    types = [(chunk.section_path, chunk.section_type) for chunk in document.chunks]
    assert types == [
        (None, "title"),
        ("## Abstract", "abstract"),
        ("## 1. Introduction", "introduction"),
        ("## 2 The proposed method", "methodology"),
        ("## 2 The proposed method > ### 2.1 Details", "methodology"),
        ("## III. Experimental results", "results"),
        ("## Limitations", "discussion"),
        ("## Thanks", "unknown"),
        *[("## References", "references")] * 3,
    ]
    assert document.chunks[0].author == "Ada Byron, Grace Murray"


def test_references_come_by_five() -> None:
    chunks = [chunk for chunk in markdown(PAPER, "papers/b.md").chunks if chunk.section_type == "references"]
    assert [chunk.text.count("Title") for chunk in chunks] == [5, 5, 12 - 2 * 5]


def test_other_pages_have_no_section_types() -> None:
    assert {chunk.section_type for chunk in markdown(PAPER.replace("## Abstract", "## Gist")).chunks} == {None}


# --- Markdown --------------------------------------------------------------------------------------


def rows(count: int) -> str:
    return "| depot | bikes |\n|---|---|\n" + "".join(f"| depot number {at:03d} | {at} |\n" for at in range(count))


def test_a_table_that_fits_stays_whole() -> None:
    size = len(rows(30))
    assert PROSE.target_chars / 2 < size < PROSE.target_chars
    chunks = markdown(f"## S\n\n{WORDS * 10}\n\n{rows(30)}\n{WORDS * 10}").chunks
    assert sum(rows(30).strip() in chunk.text for chunk in chunks) == 1


def test_a_longer_table_is_cut_between_rows_and_each_part_led_by_its_header() -> None:
    chunks = markdown(f"# T\n\n## S\n\n{WORDS}\n\n{rows(200)}").chunks
    parts = [chunk for chunk in chunks if chunk.text.startswith("| depot number")]
    assert len(parts) >= 200 * 24 // PROSE.limit_chars
    assert {part.context_prefix for part in parts} == {"T > ## S > | depot | bikes |"}
    assert all(line.startswith("| depot") and line.endswith("|") for part in parts for line in part.text.split("\n"))


def test_a_formula_is_not_cut() -> None:
    formula = "$$\n" + "\n\n".join(f"a_{at} = b_{at} + c_{at} \\\\" for at in range(20)) + "\n$$"
    chunks = markdown(f"## S\n\n{WORDS * 9}\n\n{formula}\n\n{WORDS * 9}").chunks
    assert len(chunks) > 1
    assert sum(formula in chunk.text for chunk in chunks) == 1


# --- reStructuredText ------------------------------------------------------------------------------

MANUAL = f"""=======
Manual
=======

:Author: Ada Byron
:Date: 2026-02-03

{WORDS}

Install
=======

{WORDS}

.. code-block:: sh

   pip install it

   and more

From source
-----------

{WORDS}

Run
===

=====  =====
 a      b
=====  =====
 1      2
=====  =====

{WORDS}

----

{WORDS}
"""


def test_underlines_make_headings_and_their_order_the_levels() -> None:
    chunks = rst(MANUAL)
    assert [chunk.section_path for chunk in chunks] == [
        None, "## Install", "## Install > ### From source", "## Run",
    ]  # fmt: skip
    assert [MANUAL.split("\n")[(chunk.start_line or 0) - 1] for chunk in chunks] == [
        "=======", "Install", "From source", "Run",
    ]  # fmt: skip
    assert chunks[1].context_prefix == "Manual > ## Install"
    assert (chunks[0].author, chunks[0].timestamp) == ("Ada Byron", datetime(2026, 2, 3, tzinfo=UTC))


def test_a_directive_keeps_what_is_indented_below_it() -> None:
    block = ".. note::\n\n" + "".join(f"   {WORDS.strip()}\n\n" for _ in range(8))
    chunks = rst(f"Title\n=====\n\n{WORDS * 8}\n\n{block}\n\n{WORDS * 8}")
    assert len(chunks) > 1
    assert sum(block.strip() in chunk.text for chunk in chunks) == 1


@given(st.text(alphabet="ab=-~.: *\n\t+|", max_size=400))
def test_any_text_is_read_as_rst_and_no_line_is_lost(text: str) -> None:
    covered: set[int] = set()
    for chunk in rst(text):
        covered |= set(range(chunk.start_line or 0, (chunk.end_line or 0) + 1))
    assert not {at for at, line in enumerate(text.split("\n"), 1) if line.strip()} - covered


# --- HTML ------------------------------------------------------------------------------------------

SITE = f"""<!doctype html>
<html><head><title>Depots &amp; more</title>
<meta name="author" content="Ada"><meta property="article:published_time" content="2026-02-03">
<style>p {{ color: red }}</style></head>
<body>
<nav><a href="/">Home</a> <a href="/x">All depots</a></nav>
<h1>Depots</h1>
<p>{WORDS}
Second line &amp; entity.</p>
<h2>Opening <em>hours</em></h2>
<p>{WORDS}</p>
<table>
<tr><th>depot</th><th>closes</th></tr>
<tr><td>Tallow</td><td>22:30</td></tr>
</table>
<ul><li>first<li>second</ul>
<pre>
def f():
    return 1
</pre>
<script>var hidden = "<p>hidden</p>";</script>
<h2>&Uuml;ber uns</h2>
<p>{WORDS}</p>
</body></html>
"""


def test_an_html_page_is_read_by_its_headings() -> None:
    document = read(reader_of("html"), SITE, "a.html")
    assert [(chunk.section_path, chunk.start_line, chunk.end_line) for chunk in document.chunks] == [
        (None, 7, 9),
        ("## Opening hours", 10, 19),
        ("## Über uns", 22, 23),
    ]
    assert document.title == "Depots"
    assert (document.chunks[0].author, document.chunks[0].timestamp) == ("Ada", datetime(2026, 2, 3, tzinfo=UTC))


def test_navigation_scripts_and_styles_are_left_out_and_shapes_kept() -> None:
    text = "\n".join(chunk.text for chunk in html(SITE))
    assert not any(word in text for word in ("Home", "hidden", "color"))
    assert "depot | closes\nTallow | 22:30" in text
    assert "first\nsecond" in text
    assert "def f():\n    return 1" in text
    assert "Second line & entity." in text


def test_the_title_of_the_head_serves_where_no_first_heading_is() -> None:
    assert read(reader_of("html"), "<title>Only here</title><p>Text of the page.", "a.html").title == "Only here"


def test_a_page_with_a_main_part_is_read_from_there() -> None:
    found = html(f"<body><div>menu</div><main><p>{WORDS * 4}</p></main><div>more</div></body>")
    assert [chunk.text for chunk in found] == [(WORDS * 4).strip()]


def test_the_character_set_of_a_page_is_its_own_to_say() -> None:
    text = '<meta charset="koi8-r"><p>Привет, мир</p>'
    assert read(reader_of("html"), text.encode("koi8-r"), "a.html").chunks[0].text == "Привет, мир"
    assert read(reader_of("html"), text.encode("utf-16"), "a.html").chunks[0].text == "Привет, мир"
    with pytest.raises(BadRequestError, match="not valid klingon"):
        read(reader_of("html"), text.replace("koi8-r", "klingon").encode("koi8-r"), "a.html")


def test_html_that_is_nested_without_end_is_refused_at_once() -> None:
    started = process_time()
    with pytest.raises(BadRequestError, match=f"deeper than {DEEPEST}"):
        html("<div>" * 200_000)
    assert process_time() - started < 2
    assert html("<div>" * (DEEPEST - 1) + "deep")[0].text == "deep"
    assert len(html("<p>one<p>two" * 1000)) > 1


@given(
    st.text(alphabet="ab<>/&;\"'!-= \n\t", max_size=300),
    st.sampled_from(["", "<table><tr><td>", "<pre>", "<h1>", "<!--"]),
)
def test_any_text_is_read_as_html_and_lines_are_those_of_the_file(text: str, before: str) -> None:
    source = before + text
    count = source.count("\n") + 1
    for chunk in html(source):
        assert chunk.text.strip()
        assert 1 <= (chunk.start_line or 0) <= (chunk.end_line or 0) <= count
        assert chunk.content_hash == text_hash(embedded_text(chunk))


@given(
    st.lists(
        st.sampled_from(["<p>", "</p>", "<h2>", "</h2>", "<li>", "<tr>", "<td>", "<b>", "text one", "\n"]), max_size=40
    )
)
def test_any_tags_in_any_order_lose_no_word(parts: list[str]) -> None:
    found = " ".join(chunk.text for chunk in html("".join(parts)))
    assert found.count("text one") == parts.count("text one") or "text onetext one" in found


# --- Word ------------------------------------------------------------------------------------------

LETTER = (
    paragraph("Depots", "Titel")
    + paragraph(WORDS)
    + paragraph("Opening hours", "berschrift2")
    + paragraph(WORDS)
    + table([("depot", "closes"), ("Tallow & Co", "22:30")])
    + paragraph("first", more="<w:numPr/>")
    + "<w:p><w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del><w:r><w:t>kept</w:t></w:r></w:p>"
)
CORE = "<dc:creator>Ada</dc:creator><dcterms:created>2026-02-03T10:00:00Z</dcterms:created><dc:title>Other</dc:title>"


def test_a_word_file_is_read_by_its_headings() -> None:
    document = read(reader_of("docx"), docx(LETTER, core=CORE, footnotes=paragraph("A note below.")), "a.docx")
    assert [(chunk.section_path, chunk.start_line) for chunk in document.chunks] == [
        (None, None),
        ("## Opening hours", None),
    ]
    text = document.chunks[1].text
    assert "depot | closes\nTallow & Co | 22:30" in text
    assert "- first" in text
    assert ("kept" in text, "gone" in text, "A note below." in text) == (True, False, True)
    chunk = document.chunks[0]
    assert (document.title, chunk.author, chunk.timestamp) == ("Depots", "Ada", datetime(2026, 2, 3, 10, tzinfo=UTC))


def test_the_title_of_the_properties_serves_where_no_first_heading_is() -> None:
    assert read(reader_of("docx"), docx(paragraph(WORDS), core=CORE), "a.docx").title == "Other"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK\x03\x04 rubbish", "not a Word file"),
        (b"", "not a Word file"),
        (b"\xd0\xcf\x11\xe0 old", "encrypted or very old"),
        (docx("<w:p>"), "damaged Word file"),
        (docx(LETTER, prologue='<!DOCTYPE x [<!ENTITY a "aaaa">]>'), "declares a document type"),
        (docx(LETTER)[:400], "not a Word file"),
    ],
)
def test_what_is_no_word_file_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadRequestError, match=reason):
        read(reader_of("docx"), data, "a.docx")


def test_a_word_file_that_unpacks_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_docx, "MOST_UNPACKED_BYTES", 2 * 1024**2)
    bomb = docx(paragraph(" " * 8 * 1024**2))
    assert len(bomb) < 100_000
    with pytest.raises(BadRequestError, match="unpacks to more than 2,097,152 bytes"):
        read(reader_of("docx"), bomb, "a.docx")


def test_a_word_file_nested_deeply_is_read() -> None:
    deep = "<w:sdt>" * 5000 + paragraph("deep") + "</w:sdt>" * 5000
    assert read(reader_of("docx"), docx(deep), "a.docx").chunks[0].text == "deep"


@given(st.binary(max_size=60), st.integers(0, 1200))
def test_a_damaged_word_file_is_read_or_refused(noise: bytes, at: int) -> None:
    data = bytearray(docx(LETTER))
    data[at : at + len(noise)] = noise
    with suppress(BadRequestError):
        assert all(chunk.text for chunk in read(reader_of("docx"), bytes(data), "a.docx").chunks)
