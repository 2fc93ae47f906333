"""Separated values, JSON and notebooks: what the readers of data with structure make of it."""

import csv
import json
from contextlib import suppress
from io import StringIO
from itertools import pairwise
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.ingest.chunking.pack import CODE, PROSE
from dowse.ingest.readers.notebook import MOST_OUTPUT_LINES
from dowse.ports import Reader, SourceFile
from dowse.types import Chunk, Document
from readers_by_name import reader_of


def read(reader: Reader, text: str, path: str) -> Document:
    return reader.read(SourceFile("app", path, text.encode(), 7))


def table(text: str) -> tuple[Chunk, ...]:
    return read(reader_of("csv"), text, "data/a.csv").chunks


def members(text: str) -> tuple[Chunk, ...]:
    return read(reader_of("json"), text, "a.json").chunks


def lines_of(chunk: Chunk) -> tuple[int, int]:
    return chunk.start_line or 0, chunk.end_line or 0


# --- separated values ------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_each_value_is_labelled_with_its_column(separator: str) -> None:
    text = "code,city,closes\nTLW,Wrenfold,22:30\nNRG,,22:00\n".replace(",", separator)
    (chunk,) = table(text)
    assert chunk.text == "code: TLW | city: Wrenfold | closes: 22:30\ncode: NRG | closes: 22:00"
    assert lines_of(chunk) == (2, 3)


def test_rows_stay_whole_and_keep_their_lines() -> None:
    text = "id,note\n" + "".join(f'{at},"first line {at}\nsecond line of {at}"\n' for at in range(100))
    chunks = table(text)
    assert len(chunks) > 2
    assert [line.split(" | ")[0] for chunk in chunks for line in chunk.text.split("\n")] == [
        f"id: {at}" for at in range(100)
    ]
    assert lines_of(chunks[0])[0] == 2
    for before, after in pairwise(chunks):
        assert (after.start_line or 0) == (before.end_line or 0) + 1
    # Two lines a row, after the header's.
    assert lines_of(chunks[-1])[1] == 1 + 2 * 100


def test_a_table_without_names_of_columns_has_no_labels() -> None:
    assert table("1,2\n3,4\n")[0].text == "1 | 2\n3 | 4"


def test_the_document_knows_its_columns() -> None:
    assert read(reader_of("csv"), "a,b\n1,2\n3,4\n", "x.csv").meta == (("columns", "a, b"), ("rows", "2"))


def test_what_is_no_table_is_read_as_text() -> None:
    assert table("just one line of prose without any separators at all\n")[0].text.startswith("just one line")
    assert table('a,b\n"' + "x" * 200_000)[0].text.startswith("a,b")


@given(st.lists(st.lists(st.text(alphabet='ab,"\n; ', max_size=12), min_size=2, max_size=4), min_size=2, max_size=30))
def test_no_cell_is_lost(rows: list[list[str]]) -> None:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows([["first", "second"], *rows])
    text = "\n".join(chunk.text for chunk in table(out.getvalue()))
    for row in rows:
        for cell in row:
            assert " ".join(cell.split()) in text


@given(st.text(alphabet='ab,;|\t"\n1', max_size=300))
def test_any_text_is_read_as_a_table_and_lines_are_those_of_the_file(text: str) -> None:
    for chunk in table(text):
        first, last = lines_of(chunk)
        assert 1 <= first <= last <= text.count("\n") + 1
        assert len(chunk.text) <= PROSE.limit_chars


# --- JSON ------------------------------------------------------------------------------------------


def test_a_file_that_fits_is_one_chunk_as_written() -> None:
    text = '{\n  "port": 8080\n}\n'
    (chunk,) = members(text)
    assert (chunk.text, chunk.section_path, lines_of(chunk)) == (text.strip(), None, (1, 3))


def test_a_chunk_is_led_by_the_dotted_path_of_what_encloses_it() -> None:
    pool = {f"limit{at}": "x" * 40 for at in range(60)}
    text = json.dumps({"name": "app", "server": {"db.main": {"pool": pool}}, "last": 1}, indent=2)
    chunks = members(text)
    deep = [chunk for chunk in chunks if '"limit30"' in chunk.text]
    assert [(chunk.section_path, chunk.context_prefix) for chunk in deep] == [('server."db.main".pool',) * 2]
    assert chunks[0].section_path is None


def test_records_stay_whole() -> None:
    records = [json.dumps({"id": at, "text": "words " * 30}) for at in range(60)]
    for text in ("[" + ",\n".join(records) + "]", "\n".join(records)):
        chunks = members(text)
        assert len(chunks) > 60 // 6
        assert all(sum(record in chunk.text for chunk in chunks) == 1 for record in records)


def test_a_long_record_is_led_by_its_place() -> None:
    text = json.dumps([{"a": 1}, {"lines": ["words " * 30] * 20}, {"b": 2}])
    assert {chunk.section_path for chunk in members(text)} >= {"[1].lines"}


def test_comments_and_brackets_in_texts_are_no_structure() -> None:
    noise = '  // a "comment } with brackets [\n  /* { */\n  "text": "} ] { [ \\" }",\n'
    text = '{\n"outer": {\n' + noise + "".join(f'  "key{at}": "{"v" * 60}",\n' for at in range(50)) + "},\n}\n"
    assert {chunk.section_path for chunk in members(text)} <= {None, "outer"}


@pytest.mark.parametrize(
    "text",
    ["[" * 1_000_000, '{"a":' * 200_000, '"' * 1_000_001, "/*" * 500_000, "[1," * 300_000, "[" * 10**6 + "]" * 10**6],
)
def test_broken_or_bottomless_json_is_still_read_at_once(text: str) -> None:
    started = process_time()
    assert "".join(chunk.text for chunk in members(text)) == text
    assert process_time() - started < 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=10), inner, max_size=8),
    max_leaves=60,
)


@settings(max_examples=settings.default.max_examples // 2)
@given(VALUES, st.sampled_from([None, 2]))
def test_nothing_of_a_json_file_is_lost_and_lines_are_right(value: Any, indent: int | None) -> None:
    text = json.dumps([value, "tail " * 400, value], indent=indent)
    lines = text.split("\n")
    chunks = members(text)
    for chunk in chunks:
        first, last = lines_of(chunk)
        assert chunk.text in "\n".join(lines[first - 1 : last])
        assert len(chunk.text) <= CODE.limit_chars
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(text.split())


@given(st.text(alphabet='{}[]",:/*\\a\n', max_size=300))
def test_any_text_is_read_as_json(text: str) -> None:
    chunks = members(text * 20)
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join((text * 20).split())


# --- notebooks -------------------------------------------------------------------------------------


def cell(kind: str, source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True), **more}


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}, indent=1)


PRINTED = {"output_type": "stream", "name": "stdout", "text": [f"row {at}\n" for at in range(50)]}
PICTURE = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=" * 50}}
FAILED = {"output_type": "error", "ename": "ValueError", "evalue": "no such depot", "traceback": ["long"]}
LOAD = "import polars\n\nframe = polars.read_csv('depots.csv')\nframe.head()"


def test_cells_are_read_in_order_under_their_headings() -> None:
    text = notebook(
        cell("markdown", "# Depots\n\nWhat we know of them."),
        cell("code", LOAD, outputs=[PRINTED, PICTURE]),
        cell("markdown", "## Bikes\n\n" + "How many there are of them. " * 4),
        cell("code", "frame['bikes'].sum()", outputs=[FAILED]),
    )
    document = read(reader_of("notebook"), text, "a.ipynb")
    first, second = document.chunks
    assert (document.title, first.section_path, second.section_path) == ("Depots", None, "## Bikes")
    assert f"```python\n{LOAD}\n```" in first.text
    assert second.text.endswith("Out:\nValueError: no such depot")
    assert (first.corpus_type, first.language) == ("CODE_LOGIC", "jupyter")


def test_outputs_are_trimmed_and_pictures_left_out() -> None:
    (chunk,) = read(reader_of("notebook"), notebook(cell("code", LOAD, outputs=[PRINTED, PICTURE])), "a.ipynb").chunks
    assert [line for line in chunk.text.split("\n") if line.startswith("row")] == [
        f"row {at}" for at in range(MOST_OUTPUT_LINES)
    ]
    assert "iVBOR" not in chunk.text


def test_lines_of_a_notebook_are_those_of_the_file() -> None:
    text = notebook(cell("markdown", '# One\n\nSaid "so" – twice.'), cell("code", LOAD, outputs=[PICTURE]))
    (chunk,) = read(reader_of("notebook"), text, "a.ipynb").chunks
    lines = text.split("\n")
    assert '"# One\\n"' in lines[lines_of(chunk)[0] - 1]
    assert '"frame.head()"' in lines[lines_of(chunk)[1] - 1]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"cells": 3}', "[" * 200_000, "not json at all"])
def test_what_is_no_notebook_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(BadRequestError, match="not a notebook"):
        read(reader_of("notebook"), text, "a.ipynb")


@settings(max_examples=settings.default.max_examples // 3)
@given(st.dictionaries(st.sampled_from(["cell_type", "source", "outputs", "input"]), VALUES, max_size=4))
def test_odd_cells_are_read_or_passed_over(odd: dict[str, Any]) -> None:
    with suppress(BadRequestError):
        for chunk in read(reader_of("notebook"), json.dumps({"cells": [odd, odd]}), "a.ipynb").chunks:
            assert chunk.text
