"""What the readers make of files."""

from datetime import UTC, datetime
from importlib.metadata import EntryPoint, EntryPoints
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dowse.errors import MissingExtraError
from dowse.identity import chunk_id, document_id, embedded_text, text_hash
from dowse.ingest.chunking.pack import CODE, PROSE
from dowse.ingest.chunking.page import moment
from dowse.ingest.readers import markdown as read_markdown
from dowse.ingest.readers import registry as readers
from dowse.ingest.readers.markdown import markdown_parser, markdown_sections, parse
from dowse.ingest.readers.slack import SlackReader
from dowse.ports import Reader, SourceFile
from dowse.types import Chunk, Document
from readers_by_name import reader_of

LINES = st.text(alphabet="ab #-`>|{}:=\n\r\t é", max_size=600)


def read(reader: Reader, text: str, path: str) -> Document:
    return reader.read(SourceFile("app", path, text.encode(), 7))


def markdown(text: str, path: str = "docs/page.md") -> tuple[Chunk, ...]:
    return read(reader_of("markdown"), text, path).chunks


def code(text: str, path: str = "src/a.py") -> tuple[Chunk, ...]:
    """Those that are searched."""
    return tuple(chunk for chunk in read(reader_of("code"), text, path).chunks if chunk.level == "chunk")


def body(name: str, lines: int = 8) -> str:
    """A function of about 40 characters a line."""
    return f"def {name}(value):\n" + "".join(
        f"    value = value + {at:04d}  # {name} {at:08d}\n" for at in range(lines)
    )


# --- all of them -----------------------------------------------------------------------------------


def test_a_document_knows_its_file() -> None:
    document = read(reader_of("text"), "hello\n", "notes/a.txt")
    chunk = document.chunks[0]
    assert (document.id, document.size_bytes, document.modified_ns) == (document_id("app", "notes/a.txt"), 6, 7)
    assert (chunk.source_uri, chunk.file_path, chunk.repo_name) == ("app/notes/a.txt", "notes/a.txt", "app")
    assert (chunk.document_id, chunk.document_source, chunk.document_title) == (document.id, "app", "a.txt")
    assert (chunk.corpus_type, chunk.timestamp, chunk.parent_id) == ("DOC_PAGE", None, None)


def test_equal_texts_of_one_file_get_different_ids() -> None:
    repeated = [chunk for chunk in read(reader_of("text"), "x" * 5000, "a.txt").chunks if chunk.text == "x" * 1024]
    assert [chunk.id for chunk in repeated] == [
        chunk_id("app/a.txt", "chunk", "x" * 1024, occurrence) for occurrence in range(len(repeated))
    ]
    assert len(repeated) > 1


@pytest.mark.parametrize("path", ["a.md", "a.py", "a.c", "a.yaml", "a.txt"])
@given(text=LINES)
def test_chunks_are_lines_of_the_file_within_the_limit_and_none_is_lost(path: str, text: str) -> None:
    text = text * 6
    reader: Reader = reader_of("code")
    if path in ("a.md", "a.txt"):
        reader = reader_of("markdown") if path == "a.md" else reader_of("text")
    chunks = [chunk for chunk in read(reader, text, path).chunks if chunk.level == "chunk"]
    lines = text.replace("\r\n", "\n").split("\n")
    covered: set[int] = set()
    for chunk in chunks:
        assert chunk.start_line is not None
        assert chunk.end_line is not None
        assert chunk.text.strip()
        assert chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert len(chunk.text) <= (PROSE if path in ("a.md", "a.txt") else CODE).limit_chars
        assert chunk.content_hash == text_hash(embedded_text(chunk))
        covered |= set(range(chunk.start_line, chunk.end_line + 1))
    front = parse("\n".join(lines)).body_start if path == "a.md" else 0
    first = "\n".join(lines)[:front].count("\n")
    missing = {at for at, line in enumerate(lines, 1) if line.strip() and at > first} - covered
    assert not missing
    assert len({chunk.id for chunk in chunks}) == len(chunks)


@pytest.mark.parametrize("reader", [reader_of("code"), reader_of("markdown"), reader_of("text")])
@pytest.mark.parametrize("text", ["", "\n\n \n", "\ufeff"])
def test_a_file_without_text_has_no_chunks(reader: Reader, text: str) -> None:
    assert read(reader, text, "a.x").chunks == ()


# --- text ------------------------------------------------------------------------------------------


def test_windows_of_prose_overlap_by_up_to_a_tenth() -> None:
    text = " ".join(f"word{at:05d}" for at in range(1000))
    first, second, *_ = read(reader_of("text"), text, "a.txt").chunks
    shared = set(first.text.split()) & set(second.text.split())
    assert 0 < len(" ".join(sorted(shared))) <= PROSE.target_chars // 10


# --- Markdown --------------------------------------------------------------------------------------

PAGE = """# Payments

How we take money, and how we give it back when something went wrong on the way to the bank, in a few words.

## Deploy

Deploying is done by the pipeline after each merge to the main branch; nobody deploys by hand any longer, ever.

### Rollback

Run the previous tag again. Wait until every pod is ready, then look at the error rate for another ten minutes.

## Owners

The payments team, in the channel of the same name, during office hours; on call at any other time of the day.
"""


def test_each_section_is_a_chunk_under_its_path_of_headings() -> None:
    chunks = markdown(PAGE)
    assert [(chunk.section_path, chunk.start_line, chunk.end_line) for chunk in chunks] == [
        (None, 1, 3),
        ("## Deploy", 5, 7),
        ("## Deploy > ### Rollback", 9, 11),
        ("## Owners", 13, 15),
    ]
    assert chunks[2].context_prefix == "Payments > ## Deploy > ### Rollback"
    assert {chunk.document_title for chunk in chunks} == {"Payments"}


def test_the_prefix_never_names_the_path() -> None:
    assert [chunk.content_hash for chunk in markdown(PAGE, "a.md")] == [
        chunk.content_hash for chunk in markdown(PAGE, "other/b.md")
    ]


def test_a_heading_without_text_joins_its_first_child() -> None:
    chunks = markdown("# Title\n\n## Setup\n\n" + "word " * 60)
    assert [(chunk.start_line, chunk.section_path) for chunk in chunks] == [(1, "## Setup")]


def test_tiny_sections_join_the_next_sibling() -> None:
    chunks = markdown("# Log\n\n" + "intro " * 40 + "\n\n## 1.1\n\nfix a\n\n## 1.0\n\n" + "text " * 50)
    assert [(chunk.section_path, chunk.start_line) for chunk in chunks] == [(None, 1), ("## 1.0", 5)]


def test_a_tiny_section_does_not_join_one_above_it() -> None:
    chunks = markdown("## A\n\n" + "a " * 200 + "\n\n### Last\n\ntiny\n\n## B\n\n" + "b " * 200)
    assert [chunk.section_path for chunk in chunks] == ["## A", "## A > ### Last", "## B"]


def test_a_heading_inside_a_fence_is_no_heading() -> None:
    chunks = markdown("# T\n\n```sh\n# not a heading\n" + "echo 1\n" * 20 + "```\n")
    assert len(chunks) == 1


def test_a_long_section_is_cut_between_paragraphs_and_fences_stay_whole() -> None:
    fence = "```\n" + "x = 1\n" * 100 + "```"
    text = "## S\n\n" + "para one. " * 60 + "\n\n" + fence + "\n\n" + "para two. " * 60 + "\n"
    chunks = markdown(text)
    assert [chunk.section_path for chunk in chunks] == ["## S"] * len(chunks)
    assert any(fence in chunk.text for chunk in chunks)
    assert len(chunks) == 3


def test_a_long_list_is_cut_between_items() -> None:
    chunks = markdown("## S\n\n" + "".join(f"- item {at} " + "word " * 30 + "\n" for at in range(40)))
    assert len(chunks) > 1
    assert all(chunk.text.startswith(("## S", "- item")) for chunk in chunks)


def test_front_matter_gives_title_author_date_and_meta() -> None:
    front = "title: 'Rolling back'\nauthor: Ada\ndate: 2025-03-01T10:00:00+02:00\ntags:\n  - ops\n  - k8s\n"
    text = f"---\n{front}---\nRun it.\n"
    document = read(reader_of("markdown"), text, "a.md")
    chunk = document.chunks[0]
    assert (document.title, chunk.author, chunk.start_line) == ("Rolling back", "Ada", 9)
    assert chunk.timestamp == datetime(2025, 3, 1, 8, tzinfo=UTC)
    assert dict(document.meta)["tags"] == "ops, k8s"
    assert chunk.meta == document.meta
    assert chunk.context_prefix == "Rolling back > Ada"  # the author is found by words
    assert "author" not in chunk.text


def test_a_rule_line_at_the_top_is_no_front_matter() -> None:
    assert markdown("---\nkey: value\n\nNo end.\n")[0].start_line == 1


def test_moments_are_aware_and_nonsense_is_none() -> None:
    assert moment("2025-01-01") == datetime(2025, 1, 1, tzinfo=UTC)
    assert moment("2025-01-01T10:00:00Z") == datetime(2025, 1, 1, 10, tzinfo=UTC)
    assert moment("1705312200.0001") == datetime.fromtimestamp(1705312200.0001, UTC)
    assert moment("last tuesday") is None


# --- code ------------------------------------------------------------------------------------------


def test_a_file_that_fits_is_one_chunk() -> None:
    assert [(chunk.start_line, chunk.end_line, chunk.language) for chunk in code("\n\nx = 1\n")] == [(3, 3, "python")]


def test_functions_are_not_torn_apart() -> None:
    text = "import os\n\n\n" + "\n\n".join(body(f"f{at}") for at in range(12))
    chunks = code(text)
    assert len(chunks) > 3
    for at in range(12):
        assert sum(body(f"f{at}").rstrip() in chunk.text for chunk in chunks) == 1


def test_code_never_overlaps() -> None:
    text = "\n".join(body(f"f{at}", 30) for at in range(6))
    chunks = code(text)
    assert sum(chunk.text.count("# f3 00000010") for chunk in chunks) == 1
    assert all((a.end_line or 0) < (b.start_line or 0) for a, b in pairwise(chunks))


def test_methods_know_their_class_and_cut_bodies_their_function() -> None:
    methods = "\n".join("    " + body(f"m{at}", 12).replace("\n", "\n    ").rstrip(" ") for at in range(8))
    text = f"class Store(Base):\n    '''Keeps.'''\n\n{methods}\n\n{body('long', 60)}"
    chunks = code(text)
    inside = [chunk for chunk in chunks if chunk.text.startswith("    def m")]
    assert len(inside) > 2
    assert {chunk.context_prefix for chunk in inside} == {"class Store(Base)"}
    rest = [chunk for chunk in chunks if "# long 00000059" in chunk.text]
    assert [chunk.context_prefix for chunk in rest] == ["def long(value)"]


def test_what_stands_above_at_the_same_depth_does_not_enclose() -> None:
    table = "TABLE = [\n" + "".join(f'    "row {at:040d}",\n' for at in range(80)) + "]\n"
    assert {chunk.context_prefix for chunk in code(body("f") + "\n\n" + table)} == {""}


@pytest.mark.parametrize(
    ("path", "head", "line", "prefix"),
    [
        ("a.c", "int main(int argc)\n{\n", "    call(%d, 1000000);\n", ""),
        ("a.go", "func (s *Server) Serve(ctx context.Context) error {\n", "\tcall(%d, 1000000)\n", "func (s *Server)"),
        ("a.js", "export const run = async (x) => {\n", "  call(%d, 1000000);\n", "export const run"),
        ("a.java", "public final class Worker {\n", "  int field%d = 1000000;\n", "public final class Worker"),
        ("a.yaml", "spec:\n", "  key%d: 1000000 1000000\n", "spec"),
    ],
)
def test_the_first_line_of_a_long_block_leads_its_later_chunks(path: str, head: str, line: str, prefix: str) -> None:
    text = head + "".join(line % at for at in range(100)) + "}\n"
    assert code(text, path)[-1].context_prefix.startswith(prefix)


# --- which there are -------------------------------------------------------------------------------


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        [
            EntryPoint("ini", "dowse.ingest.readers.slack:SlackReader", readers.GROUP),
            EntryPoint("broken", "dowse.ingest.no_such_module:Reader", readers.GROUP),
        ]
    )
    monkeypatch.setattr(readers, "entry_points", lambda group: points.select(group=group))


@pytest.mark.usefixtures("installed")
def test_installed_readers_stand_beside_ours() -> None:
    found = readers.find_readers()
    assert set(found) >= {"code", "markdown", "text", "ini", "broken"}
    assert isinstance(found["ini"](), SlackReader)
    with pytest.raises(MissingExtraError, match="broken"):
        found["broken"]()


def test_every_reader_is_found_by_the_name_it_says() -> None:
    assert all(factory().name == name for name, factory in readers.find_readers().items())


PARTS = (
    "- a word",
    "- é",
    "* c",
    "- 1. x",
    "- # h",
    "text",
    "",
    "# head",
    "```",
    "  - in",
    "> q",
    "<pre>",
    "-->",
    "---",
    "$$",
)
RUNS = st.lists(st.tuples(st.sampled_from(PARTS), st.integers(1, 7)), max_size=7)


@given(RUNS)
@example([("```", 1), ("- a word", 5), ("```", 1), ("- a word", 5)])  # no items, and items
def test_a_long_list_is_cut_as_if_every_item_had_been_parsed(runs: list[tuple[str, int]]) -> None:
    text = "\n".join(line for line, times in runs for _ in range(times))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_markdown, "LONG_LIST", len(text) + 1)
        plain = markdown_sections(text)
        patch.setattr(read_markdown, "LONG_LIST", 2)
        assert markdown_sections(text) == plain


def test_most_items_of_a_long_list_are_not_parsed() -> None:
    text = "- item\n" * 1000
    parsed: list[str] = []
    parser = markdown_parser()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "parse", lambda body: (parsed.append(body), type(parser).parse(parser, body))[1])
        (section,) = markdown_sections(text)
    assert parsed == ["- item\n- item\n"]
    assert len(section.blocks) == 1000
