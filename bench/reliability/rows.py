"""Rows of the campaign: what is tested, how, and the goal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One row: tests that must pass, or a measurement of `bench.reliability.measures`."""

    number: int
    title: str
    goal: str
    tests: tuple[str, ...] = ()  # files, or FILE::NAME; a name ends with * for all that begin so
    measure: str = ""
    long: tuple[tuple[str, str], ...] = ()  # environment of the long form
    slow: bool = False  # only in the long form
    missing: str = ""  # why there is no test yet


_STORE, _SOURCES = "tests/store/", "tests/ingest/sources/"
ROWS = (
    Row(1, "kill -9 while indexing", "0 acknowledged documents lost",
        (f"{_STORE}test_crash.py::test_a_kill_loses_nothing_and_leaves_nothing_half",), long=(("DOWSE_KILLS", "400"),)),
    Row(2, "kill -9 in deletion, compaction, creation", "0 lost, 0 resurrected",
        (f"{_STORE}test_crash.py::test_a_kill_while_an_index_begins_leaves_one_that_opens",
         f"{_STORE}test_crash.py::test_kills_one_after_the_other_without_a_look_between"),
        long=(("DOWSE_KILLS", "400"),)),
    Row(3, "parts agree after every reopening", "0 mismatches", (f"{_STORE}test_crash.py", f"{_STORE}test_parts.py"),
        slow=True),
    Row(4, "fsync calls per acknowledged batch", "≥ 1", measure="fsyncs"),
    Row(5, "power loss", "0 acknowledged documents lost", measure="power_loss"),
    Row(6, "full disk", "0 crashes, 0 lost, searches answer", (f"{_STORE}test_disk.py",)),
    Row(7, "EIO and ENOSPC at random calls", "0 silent losses", missing="needs libfiu"),
    Row(8, "flipped, zeroed and cut files", "0 wrong, 0 crashes", measure="damage"),
    Row(9, "writers and a reader at once", "0 duplicates, 0 reader errors", (f"{_STORE}test_sharing.py",)),
    Row(10, "second writer", "refused with a message", (f"{_STORE}test_sharing.py::test_a_second_writer_*",)),
    Row(11, "clock 400 days back and ahead", "0 lost documents", measure="clock"),
    Row(12, "random operations against an oracle", "0 divergences", (f"{_STORE}test_stateful.py",),
        long=(("DOWSE_THOROUGH", "1"),)),
    Row(13, "memory and embedded store give the same", "0 divergences", (f"{_STORE}test_stores.py",), slow=True),
    Row(14, "language model that hangs or returns garbage", "deadline + 0.5 s",
        ("tests/models/test_llm.py", "tests/query/test_degradation.py")),
    Row(15, "embedding server fails while indexing", "0 lost, 0 duplicates", ("tests/models/test_http.py",)),
    Row(16, "NaN, wrong dimension, short batch", "0 bad vectors stored", ("tests/models/test_checks.py",)),
    Row(17, "zip, tar and docx bombs", "refused", (f"{_SOURCES}test_archives.py",)),
    Row(18, "paths and links out of the source", "0 files read outside", (f"{_SOURCES}test_walk.py",)),
    Row(19, "YAML aliases, broken PDFs, killed readers", "0 runs ended",
        ("tests/ingest/readers/test_yaml.py", "tests/ingest/readers/test_pdf.py", "tests/ingest/reading/test_pool.py"),
        slow=True),
    Row(20, "NUL, bad UTF-8, long lines, random input", "0 runs ended", ("tests/ingest/readers/test_fuzz.py",)),
    Row(21, "filter injection", "0 rows outside", ("tests/core/test_filters.py",)),
    Row(22, "patterns that take long", "≤ 1 s", ("tests/core/test_filters.py::test_no_glob_takes_long",)),
    Row(23, "prompt injection into the reranker", "reported", missing="reported by the query tests only"),
    Row(24, "HTTP: Host, Origin, token", "0 let through", ("tests/serve/http/test_safety.py",)),
    Row(25, "scripts in indexed text", "0 run", ("tests/serve/page/test_page.py",)),
    Row(26, "redirects and keys", "0 keys sent elsewhere",
        ("tests/models/test_http.py::test_a_redirect_*", "tests/models/test_llm.py::test_a_redirect_*",
         "tests/core/test_trust.py")),
    Row(27, "slow clients, large bodies", "bounded", ("tests/serve/http/test_limits.py",)),
    Row(28, "soak of 50,000 requests", "≤ 1 MB per 10,000", measure="soak", slow=True),
    Row(30, "backup and restore, also beside a writer", "same answers", (f"{_STORE}test_backup.py",)),
    Row(31, "model files that were tampered with", "0 used", ("tests/models/test_fetch.py",)),
    Row(32, "kill -9 while the schema is upgraded", "0 lost", measure="upgrade_kills"),
)  # fmt: skip
