"""The best line of a chunk: which line of a hit terminal, pipe, page and MCP show."""

from __future__ import annotations

import time

import pytest

from dowse.serve.best_line import Marker
from dowse.tokenizer import Tokenizer

TOKENIZER = Tokenizer()
LICENCE = "# Copyright 2018 Google LLC\n#\n# Licensed under the Apache License, Version 2.0\n\n"
URL_FOR = '''def url_for(
    endpoint: str,
) -> str:
    """Generate a URL to the given endpoint.

    See :func:`url_for` of the app, and url_for in templates.
    """
    return current_app.url_for(endpoint)
'''


def best(query: str, text: str, symbol: str | None = None) -> str:
    texts = text.split("\n")
    return texts[Marker(query, TOKENIZER).best(texts, symbol)]


def test_a_licence_gives_way_to_the_line_with_the_words_of_the_query() -> None:
    manifest = LICENCE + "kind: Deployment\nmetadata:\n  name: cartservice\n  readinessProbe:\n    port: 7070\n"
    assert best("readiness probe of cartservice", manifest) == "  readinessProbe:"


def test_a_licence_gives_way_to_the_first_line_of_content_when_no_word_matches() -> None:
    assert best("undo a rollout", LICENCE + "kind: Deployment\n") == "kind: Deployment"


@pytest.mark.parametrize("opening", ['"""', "/**", "---", "{"])
def test_a_line_without_words_is_not_the_best(opening: str) -> None:
    assert best("zeta", f"{opening}\n Charge a card.\n") == " Charge a card."


def test_the_definition_comes_before_other_lines_with_the_name() -> None:
    assert best("url_for", URL_FOR, "url_for") == "def url_for("


def test_a_line_with_one_more_word_comes_before_the_definition() -> None:
    assert "Generate a URL" in best("generate endpoint url", URL_FOR, "url_for")


def test_the_same_spelling_comes_before_a_part_of_a_name() -> None:
    assert best("retry", "retry_policy = 1\nx = retry(call)\n") == "x = retry(call)"


def test_a_word_of_few_lines_outweighs_one_of_many() -> None:
    assert best("payment timeout", "payment a\npayment b\ntimeout c\npayment d\n") == "timeout c"


def test_the_column_counts_bytes_of_the_line_in_the_file() -> None:
    line = Marker("retry", TOKENIZER).line('\tprint("é", retry)', 7, None)
    assert (line.number, line.column) == (7, len('\tprint("é", '.encode()) + 1)


def test_a_snippet_goes_on_from_a_comment_to_the_code_below_it() -> None:
    text = "a()\n# send to kafka only if it is there\n# (see the docs)\nif kafka:\n    send()\n"
    lines = Marker("send to kafka", TOKENIZER).snippet(text, 1, None, 1)
    assert [line.text for line in lines][-1] == "if kafka:"


def test_the_time_grows_with_the_text_alone() -> None:
    marker = Marker("retry payment timeout", TOKENIZER)

    def spent(lines: int) -> float:
        texts = ["retry the payment = timeout + 1"] * lines
        start = time.process_time()
        marker.best(texts)
        return time.process_time() - start

    spent(1_000)
    assert spent(40_000) < 40 * max(spent(4_000), 0.001)


def test_filters_and_excluded_words_are_not_marked() -> None:
    marker = Marker('retry -queue lang:go "dead letter"', TOKENIZER)
    line = "go queue: retry the dead letter"
    assert [line[start:stop] for start, stop in marker.marks(line)] == ["retry", "dead", "letter"]
