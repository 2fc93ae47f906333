"""PDFs: order, headings, tables, what they say of themselves, and what cannot be read."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.identity import embedded_text, text_hash
from dowse.ingest.pdf import runs as pdf_runs
from dowse.ports import SourceFile
from dowse.types import Chunk, Document
from pdf_files import Words, column, pdf
from readers_by_name import reader_of

FILL = "the budget follows what a client sees of its"
LEFT, RIGHT = 54, 320


def read(data: bytes, path: str = "docs/a.pdf") -> Document:
    return reader_of("pdf").read(SourceFile("app", path, data, 7))


def lines(word: str, count: int) -> list[str]:
    return [f"{word} {at:02d} {FILL}" for at in range(count)]


def heading(text: str, x: float, y: float, size: float = 12) -> list[Words]:
    return [Words(x, y, text, size, bold=True)]


def paper(order: str) -> bytes:
    """Two columns below a title; `order` says whether they are drawn one after the other or line by line."""
    top = [
        *heading("Adaptive Retry Budgets for", 120, 740, 18),
        *heading("Small Service Graphs", 150, 718, 18),
        Words(150, 695, "Teun Marchetti*, Yuki Tannahill and Odalys Brandt", 11),
        Words(230, 680, "20 April 2026"),
    ]
    left = heading("Abstract", LEFT, 650, 10) + column([*lines("abstract", 6), "and so it trans-"], LEFT, 636)
    left += column(["ports the load."], LEFT, 636 - 7 * 12)
    left += column(["Keywords: retries, overload, budgets"], LEFT, 520)
    left += heading("1 Introduction", LEFT, 495) + column(lines("intro", 12), LEFT, 478)
    left += heading("2 Method", LEFT, 320) + column(lines("method", 16), LEFT, 302)
    right = column(lines("more", 6), RIGHT, 650) + heading("2.1 The estimate", RIGHT, 560, 10)
    right += column(lines("estimate", 8), RIGHT, 545)
    right += heading("3 Results", RIGHT, 430) + column(lines("result", 3), RIGHT, 412)
    right += column(["Table 1: Rescued requests by policy"], RIGHT, 360)
    cells = [("policy", "rescued", "peak"), ("none", "0 %", "1.00"), ("three fixed", "99.8 %", "2.71")]
    for at, row in enumerate(cells):
        right += [Words(RIGHT + 90 * place, 345 - 12 * at, cell) for place, cell in enumerate(row)]
    right += column(lines("after", 8), RIGHT, 290)
    body = left + right if order == "columns" else sorted(left + right, key=lambda words: (-words.y, words.x))
    entries = [f"[{at}] Author {at}. A title of work {at}. 2025." for at in range(1, 13)]
    last = heading("References", LEFT, 740) + column(entries, LEFT, 720)
    last.append(Words(LEFT, 540, "https://doi.org/10.99999/wrenfold.2026.04."))
    info = {"Title": "Microsoft Word - draft.docx", "CreationDate": "D:20260421103000Z"}
    return pdf([[*top, *body, Words(300, 30, "1")], [*last, Words(300, 30, "2")]], info)


@pytest.fixture(params=["columns", "lines"])
def document(request: pytest.FixtureRequest) -> Document:
    return read(paper(request.param))


def test_a_paper_is_cut_by_its_sections_and_they_know_which_they_are(document: Document) -> None:
    assert [(chunk.section_path, chunk.section_type, chunk.page) for chunk in document.chunks] == [
        (None, "title", 1),
        ("## Abstract", "abstract", 1),
        ("## 1 Introduction", "introduction", 1),
        ("## 2 Method", "methodology", 1),
        ("## 2 Method > ### 2.1 The estimate", "methodology", 1),
        ("## 3 Results", "results", 1),
        *[("## References", "references", 2)] * 3,
    ]
    assert {chunk.corpus_type for chunk in document.chunks} == {"DOC_PAPER"}


def test_two_columns_are_read_one_after_the_other_however_they_were_drawn(document: Document) -> None:
    method = next(chunk for chunk in document.chunks if chunk.section_path == "## 2 Method")
    assert method.text == "\n".join(["2 Method", "", *lines("method", 16), *lines("more", 6)])


def test_a_paper_says_who_wrote_it_when_and_about_what(document: Document) -> None:
    said = dict(document.meta)
    assert document.title == "Adaptive Retry Budgets for Small Service Graphs"
    assert said["authors"] == "Teun Marchetti, Yuki Tannahill, Odalys Brandt"
    assert said["doi"] == "10.99999/wrenfold.2026.04"
    assert said["keywords"] == "retries, overload, budgets"
    assert said["abstract"].startswith("abstract 00 the budget")
    assert (said["pages"], said["references_count"]) == ("2", "12")
    assert document.chunks[0].timestamp == datetime(2026, 4, 20, tzinfo=UTC)
    assert document.chunks[0].author == said["authors"]
    assert "abstract" not in dict(document.chunks[0].meta)


def test_a_table_stays_whole_below_its_caption(document: Document) -> None:
    results = next(chunk for chunk in document.chunks if chunk.section_path == "## 3 Results")
    table = "policy | rescued | peak\nnone | 0 % | 1.00\nthree fixed | 99.8 % | 2.71"
    assert f"Table 1: Rescued requests by policy\n{table}" in results.text


def test_a_word_cut_at_the_end_of_a_line_is_made_whole(document: Document) -> None:
    assert "and so it transports the load." in document.chunks[1].text


def test_references_come_by_five(document: Document) -> None:
    counts = [chunk.text.count("A title of") for chunk in document.chunks if chunk.section_type == "references"]
    assert counts == [5, 5, 12 - 2 * 5]


def test_a_pdf_knows_pages_and_no_lines(document: Document) -> None:
    assert {(chunk.start_line, chunk.end_line) for chunk in document.chunks} == {(None, None)}
    assert all(chunk.content_hash == text_hash(embedded_text(chunk)) for chunk in document.chunks)


def long_lines(word: str, count: int) -> list[str]:
    return [
        f"{word} {at:02d} which goes on to the far end of the line as a single column of text does"
        for at in range(count)
    ]


def test_running_heads_and_page_numbers_are_left_out_but_not_the_title() -> None:
    pages = [
        [
            Words(LEFT, 770, "The Manual", 9),
            *column(long_lines(f"page{at}", 20), LEFT, 700),
            Words(300, 20, f"Page {at} of 4"),
        ]
        for at in range(1, 5)
    ]
    pages[0] = [*heading("The Manual", LEFT, 770, 20), *pages[0][1:]]
    found = read(pdf(pages))
    text = "\n".join(chunk.text for chunk in found.chunks)
    assert found.title == "The Manual"
    assert (text.count("The Manual"), text.count(" of 4")) == (1, 0)
    assert {chunk.page for chunk in found.chunks} == {1, 2, 3, 4}


def test_a_table_of_two_columns_is_no_page_of_two_columns() -> None:
    rows = [(f"key{at}", f"value {at}") for at in range(12)]
    words = [
        Words(x, 600 - 14 * at, cell) for at, row in enumerate(rows) for x, cell in zip((60, 330), row, strict=True)
    ]
    (chunk,) = read(pdf([words])).chunks
    assert chunk.text == "\n".join(f"{key} | {value}" for key, value in rows)


def test_a_file_without_headings_takes_the_title_it_was_given() -> None:
    found = read(pdf([column(long_lines("line", 8), LEFT, 700)], {"Title": "Given title", "Author": "Ada Byron"}))
    assert (found.title, found.chunks[0].author, found.chunks[0].corpus_type) == (
        "Given title",
        "Ada Byron",
        "DOC_PAGE",
    )


def test_pages_without_text_are_told() -> None:
    found = read(pdf([column(long_lines("line", 30), LEFT, 700), [], column(long_lines("more", 30), LEFT, 700)]))
    assert dict(found.meta)["pages_without_text"] == "2"
    assert {chunk.page for chunk in found.chunks} == {1, 3}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf([[], []]), r"no text in its 2 pages, only pictures; a scan needs text recognition"),
        (pdf([column(["secret"], LEFT, 700)], password="open sesame"), "encrypted PDF; save it without a password"),
        (b"%PDF-1.7\nrubbish", "damaged, or not a PDF"),
        (b"", "damaged, or not a PDF"),
        (paper("columns")[:2000], "damaged, or not a PDF"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(BadRequestError, match=reason):
        read(data)


def test_a_pdf_with_an_empty_password_is_open() -> None:
    assert read(pdf([column(long_lines("line", 4), LEFT, 700)], password="")).chunks[0].text.startswith("line 00")


def test_a_file_of_too_many_pages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_runs, "MOST_PAGES", 2)
    with pytest.raises(BadRequestError, match="3 pages, the limit is 2; split the file"):
        read(pdf([[], [], []]))


def sound(chunks: tuple[Chunk, ...]) -> bool:
    return all(chunk.text.strip() and (chunk.page or 0) >= 1 for chunk in chunks)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(0, 12_000), st.binary(min_size=1, max_size=40))
def test_a_damaged_pdf_is_read_or_refused(at: int, noise: bytes) -> None:
    data = bytearray(paper("lines"))
    data[at : at + len(noise)] = noise
    with suppress(BadRequestError):
        assert sound(read(bytes(data)).chunks)


WORDS = st.builds(
    Words,
    st.floats(0, 600),
    st.floats(0, 780),
    st.text(alphabet="ab.-1 A", min_size=1, max_size=30),
    st.sampled_from([6.0, 10.0, 12.0, 20.0]),
    st.booleans(),
)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(st.lists(WORDS, max_size=30), min_size=1, max_size=3))
def test_words_anywhere_on_the_page_are_read(pages: list[list[Words]]) -> None:
    with suppress(BadRequestError):
        assert sound(read(pdf(pages)).chunks)
