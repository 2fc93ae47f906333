"""Samples of names that are defined once, and what counts as their definition."""

from __future__ import annotations

from pathlib import Path

from bench.code_lookups import WORDINGS, Definition, definitions, rank_of, reciprocal, sampled

from factories import PLAIN
from values import replace


def test_only_names_that_are_defined_once_are_sampled(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def retry_call():\n    pass\n\n\ndef twice():\n    pass\n")
    (tmp_path / "b.py").write_text("class Pool:\n    def twice(self):\n        pass\n")
    (tmp_path / "c.rs").write_text("mod router;\n\nfn route_to() {}\n")
    found = {(each.name, each.path, each.line) for each in definitions(tmp_path)}
    assert found == {("retry_call", "a.py", 1), ("Pool", "b.py", 1), ("route_to", "c.rs", 3)}


def test_a_sample_takes_languages_in_turn_and_repeats() -> None:
    known = [Definition("r", language, f"name{at}", "a", at) for language in ("go", "java") for at in range(50)]
    first = sampled(known, 10, 7)
    assert first == sampled(known, 10, 7) != sampled(known, 10, 8)
    assert [each.language for each in first] == ["go", "java"] * 5


def test_a_hit_is_right_if_it_has_the_line_of_the_definition() -> None:
    wanted = Definition("r", "python", "retry_call", "src/a.py", 12)
    hits = [replace(PLAIN, file_path=path, start_line=first, end_line=first + 5) for path, first in
            (("src/b.py", 10), ("src/a.py", 1), ("a.py", 10))]  # fmt: skip
    assert rank_of(wanted.at, hits) == 3
    assert (reciprocal(3), reciprocal(None)) == (1 / 3, 0.0)


def test_wordings_of_a_name() -> None:
    assert [of("parseHTTPHeader") for of in WORDINGS.values()] == [
        "parseHTTPHeader", "parse http header", "how does parse http header work"
    ]  # fmt: skip
