"""What every clause means, and that nothing a person types is syntax unless it is meant to be."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.filters import (
    Clause,
    Eq,
    Glob,
    Gt,
    In,
    Lt,
    Ne,
    Not,
    Or,
    Prefix,
    any_of,
    by_channel,
    by_corpus,
    by_language,
    by_meta,
    by_path,
    by_source,
    check,
    created_after,
    created_before,
    exclude,
    field_value,
    from_request,
    holds,
    matches,
)  # fmt: skip
from dowse.types import CorpusType, QueryRequest
from factories import PLAIN
from values import replace

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("clause", "value", "wanted"),
    [
        (Eq("language", "go"), "go", True),
        (Eq("language", "go"), "Go", False),
        (Eq("language", "go"), None, False),
        (Eq("meta.n", "10"), "10.0", False),  # text against text is exact
        (Eq("meta.n", 10), "10.0", True),  # a number is compared as one
        (Ne("language", "go"), None, True),
        (Ne("language", "go"), "go", False),
        (In("language", ("go", "c")), "c", True),
        (In("language", ()), "c", False),
        (In("language", ("go",)), None, False),
        (Gt("meta.n", 9), "10", True),
        (Gt("meta.n", "9"), "10", True),
        (Gt("meta.n", "a"), "b", True),
        (Gt("meta.n", "10"), "10", False),
        (Lt("meta.n", 9), "10", False),
        (Lt("meta.n", "b"), "a", True),
        (Lt("meta.n", 9), None, False),
        (Eq("meta.n", float("nan")), "5", False),
        (Eq("meta.n", 5.0), "nan", False),
        (Prefix("file_path", "src/"), "src/a.py", True),
        (Prefix("file_path", "s%"), "src/a.py", False),
        (Prefix("file_path", ""), None, False),
    ],
)
def test_a_clause_holds_for_a_value(clause: Clause, value: str | None, wanted: bool) -> None:
    assert holds(clause, value) is wanted


@pytest.mark.parametrize(
    ("pattern", "path", "wanted"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),  # without a slash: the last part, at any depth
        ("*.py", "a.pyc", False),
        ("*.py", "a.py/b.md", False),
        ("a.py", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),  # one star stays inside a folder
        ("src/*.py", "lib/src/a.py", False),  # with a slash: from the top
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/er/a.py", True),
        ("src/**", "src/deep/a.py", True),
        ("src/**", "src", False),
        ("**/test_*.py", "test_a.py", True),
        ("**/test_*.py", "x/y/test_a.py", True),
        ("**", "any/thing", True),
        ("docs/", "docs/a/b.md", True),
        ("docs/", "x/docs/a.md", True),
        ("docs/", "docsy/a.md", False),
        ("/docs/*.md", "docs/a.md", True),
        ("./docs/*.md", "docs/a.md", True),
        ("a?c.txt", "abc.txt", True),
        ("a?c", "a/c", False),
        ("[abc].py", "b.py", True),
        ("[abc].py", "d.py", False),
        ("[a-c].py", "b.py", True),
        ("[c-a].py", "b.py", False),
        ("[!a].py", "b.py", True),
        ("[^a].py", "a.py", False),
        ("x[!a]y", "x/y", False),
        ("[]].py", "].py", True),
        ("[!]].py", "].py", False),
        ("[!]].py", "a.py", True),
        ("[[].py", "[.py", True),
        ("[\\].py", "\\.py", True),
        ("[a-].py", "-.py", True),
        ("[a&&b].py", "&.py", True),
        ("[.py", "[.py", True),  # never closed: itself
        ("[].py", "[].py", True),
        ("[!].py", "[!].py", True),
        ("*.{py,md}", "a.md", True),
        ("*.{py,md}", "a.ts", False),
        ("{src,lib}/*.py", "lib/a.py", True),
        ("{a,b", "{a,b", True),
        ("a.c", "abc", False),
        ("a+(b)|c$", "a+(b)|c$", True),
        ("*", "line\nbreak ☃", True),
        ("r*e", "résumé", False),
        ("A.py", "a.py", False),
    ],
)
def test_globs(pattern: str, path: str, wanted: bool) -> None:
    assert holds(by_path(pattern), path) is wanted


def test_any_of_several_globs_is_enough() -> None:
    assert holds(by_path("*.py", "*.md"), "a.md")
    assert not holds(by_path(), "a.md")


@given(st.text(min_size=1))
def test_any_text_is_a_pattern(text: str) -> None:
    """It matches or it does not; it never breaks."""
    assert check((Glob("file_path", (text,)),))
    assert holds(by_path(text), "src/a.py") in (True, False)


@given(st.text(min_size=1))
def test_text_without_wildcards_matches_itself_only(text: str) -> None:
    plain = re.sub(r"[*?\[{]|^\.?/+|/+$", "x", text)
    assert holds(by_path(plain), plain)
    assert not holds(by_path(plain), plain + "x")


@given(st.lists(st.text("ab-", min_size=1), min_size=1, max_size=4), st.lists(st.text("ab.", min_size=1), min_size=1))
def test_one_star_never_crosses_a_folder(folders: list[str], rest: list[str]) -> None:
    start = "/".join(folders)
    assert holds(by_path(f"{start}/*"), f"{start}/{'/'.join(rest)}") is (len(rest) == 1)
    assert holds(by_path(f"{start}/**"), f"{start}/{'/'.join(rest)}")


@pytest.mark.parametrize(
    "clause",
    [
        Eq("nonsense", "x"),
        Eq("text", "x"),
        Eq("meta", "x"),
        Eq("meta.", "x"),
        Prefix("timestamp", "2026"),
        Glob("timestamp", ("2*",)),
        Gt("timestamp", "yesterday"),
        Gt("timestamp", "nan"),
        In("timestamp", (1.0, float("nan"))),
        by_path(""),
    ],
)
def test_what_cannot_be_asked_is_refused(clause: Clause) -> None:
    with pytest.raises(BadRequestError):
        check((clause,))


def test_an_unknown_field_is_told_the_known_ones() -> None:
    with pytest.raises(BadRequestError, match=r"'lang'.*language.*meta\.<key>"):
        check((Eq("lang", "x"),))


def test_corpus_takes_names_and_families() -> None:
    assert by_corpus("code_logic") == In("corpus_type", ("CODE_LOGIC",))
    assert by_corpus("DOC", "DOC_ADR") == by_corpus("DOC")
    assert by_corpus("CODE", "DOC", "CONVO") == In("corpus_type", tuple(kind.value for kind in CorpusType))
    with pytest.raises(BadRequestError, match="CODES"):
        by_corpus("CODES")


def test_constructors_forgive_a_case_and_a_hash() -> None:
    assert by_language("Python") == In("language", ("python",))
    assert by_channel("#ops", "dev") == In("channel", ("ops", "dev"))


def test_moments_compare_as_moments() -> None:
    chunk = replace(PLAIN, timestamp=NOON)
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5)))
    assert not matches(chunk, (created_after(NOON),))
    assert not matches(chunk, (created_before(elsewhere),))
    assert matches(
        chunk, (created_after(elsewhere - timedelta(seconds=1)), created_before(NOON + timedelta(seconds=1)))
    )
    assert matches(chunk, (created_after(NOON.replace(tzinfo=None) - timedelta(seconds=1)),))  # naive is UTC
    assert not matches(PLAIN, (created_after(NOON),))
    assert not matches(PLAIN, (created_before(NOON),))


def test_fields_are_read_as_they_are_filtered() -> None:
    chunk = replace(PLAIN, timestamp=NOON, meta=(("a.b", "1"), ("a.b", "2")), corpus_type=CorpusType.DOC_ADR)
    assert field_value(chunk, "timestamp") == NOON.timestamp()
    assert field_value(chunk, "corpus_type") == "DOC_ADR"
    assert field_value(chunk, "meta.a.b") == "2"
    assert field_value(chunk, "meta.c") is None
    assert field_value(chunk, "author") is None


def test_a_request_becomes_one_filter() -> None:
    request = QueryRequest(
        "q", corpus_filter=("CODE_LOGIC",), path_filter=("*.py", "*.go"), meta_filter=(("team", "core"),),
        created_after=NOON, created_before=NOON, where=(Ne("author", "bot"),), service_filter=("pay",),
    )  # fmt: skip
    assert from_request(request) == (
        by_corpus("CODE_LOGIC"), In("service_name", ("pay",)), by_path("*.py", "*.go"), by_meta("team", "core"),
        created_after(NOON), created_before(NOON), Ne("author", "bot"),
    )  # fmt: skip
    assert from_request(QueryRequest("q")) == ()
    with pytest.raises(BadRequestError):
        from_request(QueryRequest("q", where=(Eq("nonsense", "x"),)))


def test_every_filter_of_a_request_is_used() -> None:
    """A field that is forgotten here would be a filter that silently does nothing."""
    names = [name for name in QueryRequest.__dataclass_fields__ if name.endswith("_filter") and name != "meta_filter"]
    for name in names:
        value = "CODE_LOGIC" if name == "corpus_filter" else "x"
        request = QueryRequest("q")
        object.__setattr__(request, name, (value,))
        assert len(from_request(request)) == 1, name


# --- globs in linear time ---------------------------------------------------------------------------


def backtracking(glob: str) -> str:
    """The plain translation, exponential for some globs: what every glob means."""
    out, at = "", 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif glob.startswith("**", at):
            out, at = out + ".*", at + 2
        elif char == "{" and (end := glob.find("}", at)) > 0:
            out += "(?:" + "|".join(map(backtracking, glob[at + 1 : end].split(","))) + ")"
            at = end + 1
        else:
            out, at = out + {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)), at + 1
    return out


@settings(max_examples=600)
@given(st.text("ab/**?{,}", min_size=1, max_size=9), st.lists(st.text("ab/", max_size=9), min_size=1, max_size=12))
def test_a_glob_means_the_same_as_its_plain_translation(glob: str, paths: list[str]) -> None:
    body = backtracking(glob.removeprefix("./").removeprefix("/")).rstrip("/")
    start = "" if "/" in glob.rstrip("/") else "(?:.*/)?"
    plain = re.compile(start + body + ("(?:/.*)?" if glob.endswith("/") else ""), re.DOTALL)
    for path in paths:
        assert holds(Glob("file_path", (glob,)), path) == bool(plain.fullmatch(path)), (glob, path)


HOSTILE_GLOBS = [
    "*" * 28 + "q", "**/" * 40 + "q", "*d*" * 25, "*a" * 30 + "q", "**a" * 30 + "q", "a**/" * 5 + "q",
    "**/*a" * 6 + "q", "*?" * 100 + "q", "[a-z]*" * 40 + "q", "{a,b}*" * 5 + "q", "**/a*/" * 30 + "q", "?*" * 300,
]  # fmt: skip


@pytest.mark.parametrize("glob", HOSTILE_GLOBS)
@pytest.mark.parametrize("path", ["a" * 255, "d/" * 500 + "x", "ad" * 100 + "/" + "a" * 250, "a/" * 120 + "a" * 255])
def test_a_path_of_four_times_the_length_takes_no_more_than_eight_times_the_work(glob: str, path: str) -> None:
    """Linear work takes four times as long, quadratic work sixteen times. CPU time, the least of several."""
    where = Glob("file_path", (glob,))

    def least_s(path: str) -> float:
        times = []
        for _ in range(9):
            started = time.thread_time()
            holds(where, path)
            times.append(time.thread_time() - started)
        return min(times)

    assert least_s(path * 4) < 8 * least_s(path) + 1e-4


def test_globs_without_bounds_are_refused() -> None:
    for glob in ("a" * 1_001, "{a,b}" * 7, "a**/" * 7):
        with pytest.raises(BadRequestError):
            check((Glob("file_path", (glob,)),))


NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment", [NEW_YEAR, NEW_YEAR.timestamp(), 1_704_067_200, "2024-01-01", "2024-01-01T00:00:00Z"]
)
def test_a_time_may_be_a_datetime_an_epoch_or_iso_text(moment: datetime | float | str) -> None:
    assert created_after(moment) == Gt("timestamp", NEW_YEAR.timestamp())
    assert from_request(QueryRequest("x", created_before=moment)) == (Lt("timestamp", NEW_YEAR.timestamp()),)


def test_a_text_that_is_no_time_is_refused_with_the_forms_that_are() -> None:
    with pytest.raises(BadRequestError, match="ISO 8601, a datetime or seconds"):
        created_after("yesterday")


def test_a_single_clause_needs_no_tuple() -> None:
    clause = Eq("language", "go")
    assert QueryRequest("x", where=clause).where == (clause,)
    assert check(clause) == (clause,)


def test_a_source_is_its_name_the_path_of_a_document_or_its_url() -> None:
    chunk = replace(PLAIN, document_source="wiki", file_path="ops/a.md", meta=(("url", "https://wiki.example.com/a"),))
    for name in ("wiki", "ops/a.md", "wiki/ops/a.md", "https://wiki.example.com/a"):
        assert matches(chunk, (by_source(name),)), name
        assert matches(chunk, (by_source("other", name),)), name
    for name in ("wik", "ops", "a.md", "other/ops/a.md", "https://wiki.example.com/"):
        assert not matches(chunk, (by_source(name),)), name


def test_filters_join_with_any_of_and_exclude() -> None:
    go, docs = Eq("language", "go"), by_path("docs/**")
    assert any_of(go, (docs, go)) == Or(((go,), (docs, go)))
    assert exclude(go) == exclude([go]) == Not((go,))
    chunk = replace(PLAIN, language="go", file_path="src/a.go")
    assert matches(chunk, (any_of(docs, go),))
    assert not matches(chunk, (exclude(any_of(docs, go)),))
    assert matches(chunk, (exclude((docs, go)),))
    with pytest.raises(BadRequestError, match="'lang'"):
        check(exclude(any_of(go, Eq("lang", "x"))))


def test_what_is_no_clause_is_refused() -> None:
    with pytest.raises(BadRequestError, match="not a filter clause"):
        check("language")  # type: ignore[arg-type]
