"""Code is cut by its grammar: a chunk a symbol, with its name, place, summary, calls and parents."""

from __future__ import annotations

from itertools import pairwise

import pytest
import tree_sitter
from hypothesis import given, settings
from hypothesis import strategies as st

import sample_truth as truth
from dowse.identity import embedded_text, text_hash
from dowse.ingest.chunking.pack import CODE
from dowse.ingest.code import parse as parse_code
from dowse.ingest.code.grammars import CORE, MORE, grammar_of
from dowse.ingest.code.names import called, imported, name_and_scope, summary_of
from dowse.ports import SourceFile
from dowse.sample import root
from dowse.types import Chunk, Defined, Document
from readers_by_name import reader_of

EXTENSIONS = {
    "python": "py", "go": "go", "java": "java", "javascript": "js", "typescript": "ts", "tsx": "tsx", "c": "c",
    "cpp": "cpp", "csharp": "cs", "rust": "rs", "ruby": "rb", "php": "php", "shell": "sh", "kotlin": "kt",
    "swift": "swift", "scala": "scala", "sql": "sql", "lua": "lua", "terraform": "hcl", "elixir": "ex",
}  # fmt: skip


def read(text: str, path: str = "src/a.py") -> Document:
    return reader_of("code").read(SourceFile("app", path, text.encode(), 7))


def chunks(text: str, path: str = "src/a.py") -> list[Chunk]:
    return [chunk for chunk in read(text, path).chunks if chunk.level == "chunk"]


def defined(text: str, path: str) -> dict[str, Defined]:
    return {each.qualified_name: each for chunk in chunks(text, path) for each in chunk.defines}


def body(name: str, lines: int, indent: str = "") -> str:
    """A function of about 40 characters a line."""
    rows = (f"{indent}    value = value + {at:04d}  # {name} {at:08d}\n" for at in range(lines))
    return f"{indent}def {name}(value):\n" + "".join(rows)


# --- what is found, language by language ------------------------------------------------------------

SNIPPETS: dict[str, tuple[str, str, str, int, str]] = {
    # text, qualified name, kind, line, a call
    "python": ("class A:\n    @property\n    def m(self):\n        return g.h(1)\n", "A.m", "method", 3, "g.h"),
    "go": ("package p\n\ntype S struct{}\n\nfunc (s *S) M() { fmt.Println() }\n", "S.M", "method", 5, "fmt.Println"),
    "java": ("class A {\n  @Override\n  public int m() { return g(); }\n}\n", "A.m", "method", 3, "g"),
    "javascript": ("export const run = async (x) => {\n  await go(x);\n};\n", "run", "function", 1, "go"),
    "typescript": (
        "namespace N {\n  export class A {\n    m(): void { this.g(); }\n  }\n}\n",
        "N.A.m",
        "method",
        3,
        "g",
    ),
    "tsx": ("export function App() {\n  return <p>{hello()}</p>;\n}\n", "App", "function", 1, "hello"),
    "c": ("#include <x.h>\n\nstatic int *\nfind(int a)\n{\n  return look(a);\n}\n", "find", "function", 4, "look"),
    "cpp": ("namespace n {\nint C<T>::m() const { return p->q(); }\n}\n", "n.C.m", "method", 2, "p.q"),
    "csharp": ("namespace N {\n class A {\n  int M() { return this.G(); }\n }\n}\n", "N.A.M", "method", 3, "G"),
    "rust": ("impl<T> Show for S<T> {\n    fn m(&self) { a::b(1) }\n}\n", "S.m", "method", 2, "a.b"),
    "ruby": ("module M\n  class A::B\n    def m(a)\n      g(a)\n    end\n  end\nend\n", "M.A.B.m", "method", 3, "g"),
    "php": ("<?php\nclass A {\n  function m() { return $this->g(); }\n}\n", "A.m", "method", 3, "g"),
    "shell": ("# Does.\nfoo() {\n  bar 1\n}\n", "foo", "function", 2, "bar"),
    "kotlin": ("class A {\n  fun m(): Int { return g() }\n}\n", "A.m", "method", 2, "g"),
    "swift": ("class A {\n  func m() -> Int { return g() }\n}\n", "A.m", "method", 2, "g"),
    "scala": ("object A {\n  def m(x: Int): Int = g(x)\n}\n", "A.m", "method", 2, "g"),
    "sql": ("-- Parcels.\nCREATE TABLE parcels (\n  at timestamp DEFAULT now()\n);\n", "parcels", "table", 2, "now"),
    "lua": ("local M = {}\nfunction M.m(a)\n  return g(a)\nend\n", "M.m", "method", 2, "g"),
    "terraform": ('resource "queue" "jobs" {\n  name = lower("x")\n}\n', "queue.jobs", "resource", 1, "lower"),
    "elixir": ("defmodule A.B do\n  def m(a), do: g(a)\nend\n", "A.B.m", "function", 2, "g"),
}


def test_every_language_of_the_tables_is_tried_here() -> None:
    assert set(SNIPPETS) == set(CORE) | set(MORE) == set(EXTENSIONS)


@pytest.mark.parametrize("language", SNIPPETS)
def test_a_symbol_has_its_qualified_name_kind_and_line(language: str) -> None:
    if grammar_of(language) is None:
        pytest.skip("the extra `langs` is not installed")
    text, name, kind, line, call = SNIPPETS[language]
    path = f"a.{EXTENSIONS[language]}"
    found = defined(text, path)[name]
    assert (found.kind, found.start_line) == (kind, line)
    assert call in {each for chunk in chunks(text, path) for each in chunk.calls_out}


@pytest.mark.parametrize("language", CORE)
def test_the_grammars_of_the_core_are_installed(language: str) -> None:
    assert grammar_of(language) is not None


def test_a_language_without_a_grammar_is_cut_by_its_layout() -> None:
    assert grammar_of("haskell") is None
    found = chunks("module Main where\n\nmain = print 1\n", "a.hs")
    assert [(chunk.symbol_name, chunk.start_line, chunk.end_line) for chunk in found] == [(None, 1, 3)]


@pytest.mark.parametrize(("path", "name", "line"), [each for each in truth.SYMBOLS if not each[0].endswith(".proto")])
def test_the_symbols_of_the_sample_are_found_at_their_lines(path: str, name: str, line: int) -> None:
    found = defined((root() / path).read_text("utf-8"), path)
    assert found[name].start_line == line


def test_a_header_in_cpp_is_read_as_such() -> None:
    found = chunks("namespace n {\nclass A { int m(); };\n}\n", "include/a.h")
    assert {chunk.language for chunk in found} == {"cpp"}
    assert chunks("int f(void);\n", "include/a.h")[0].language == "c"


# --- chunks ------------------------------------------------------------------------------------------

STORE = f'''"""Keeps things."""

import os
from typing import Any

LIMIT = 3


class Store(Base):
    """Holds rows.

    Args: none.
    """

    def __init__(self, path):
        self.path = path

{body("put", 12, "    ")}
    # Gives a row back.
    @cached
{body("get", 12, "    ")}
    def a(self):
        return 1

    def b(self):
        return 2


def main():
    store = Store(os.getcwd())
    helper(store)
    return [store.path for _ in range(LIMIT)], "some more text so that this is not small", "and some more, too"


def helper(store):
    return store.put(1), store.get(2), "some more text so that this is not small", "and some more of it, too"
'''


def test_methods_stand_by_themselves_and_the_head_of_a_class_with_its_constructor() -> None:
    found = [(chunk.qualified_name, chunk.symbol_kind, chunk.start_line) for chunk in chunks(STORE)]
    put, get = STORE[: STORE.index("def put")].count("\n") + 1, STORE[: STORE.index("# Gives")].count("\n") + 1
    assert found[1:4] == [("Store", "class", 9), ("Store.put", "method", put), ("Store.get", "method", get)]


def test_small_neighbours_share_a_chunk_that_knows_all_their_names() -> None:
    shared = next(chunk for chunk in chunks(STORE) if chunk.symbol_name == "a")
    assert [each.qualified_name for each in shared.defines] == ["Store.a", "Store.b"]
    lines = STORE.split("\n")
    assert all(f"def {each.name}(" in lines[each.start_line - 1] for each in shared.defines)


def test_comments_and_decorators_above_belong_to_what_is_below() -> None:
    get = next(chunk for chunk in chunks(STORE) if chunk.symbol_name == "get")
    assert get.text.lstrip().startswith("# Gives a row back.\n    @cached\n    def get(value)")
    assert (get.summary, get.signature, get.context_prefix) == (
        "Gives a row back.", "def get(value)", "class Store(Base)",
    )  # fmt: skip


def test_a_docstring_is_the_summary_up_to_its_first_blank_line() -> None:
    assert next(chunk.summary for chunk in chunks(STORE) if chunk.symbol_name == "Store") == "Holds rows."


def test_constants_are_known_by_the_chunk_of_the_imports() -> None:
    first = chunks(STORE)[0]
    assert (first.symbol_name, first.imports) == (None, ("os", "typing.Any"))
    assert [each.name for each in first.defines] == ["LIMIT"]


def test_a_long_function_is_cut_at_statements_and_says_its_signature_again() -> None:
    text = "class Store(Base):\n" + body("long", 100, "    ")
    found = chunks(text)
    assert len(found) > 3
    assert {chunk.symbol_name for chunk in found} == {"Store", "long"}
    later = found[1:]
    assert [each.name for each in found[0].defines] == ["Store", "long"]
    assert {chunk.context_prefix for chunk in later} == {"class Store(Base) > def long(value)"}
    assert all(chunk.text.startswith("        value = value") for chunk in later)


def test_a_statement_over_many_lines_is_not_torn_where_it_fits() -> None:
    call = "    call(\n" + "".join(f"        argument_{at} = {at:030d},\n" for at in range(12)) + "    )\n"
    found = chunks("def f():\n" + call * 8)
    assert len(found) > 2
    assert all(chunk.text.endswith("    )") for chunk in found)


def test_a_function_full_of_functions_is_opened() -> None:
    inner = "".join(
        f"  function f{at}(x) {{\n" + "    use(x, 'some more text here');\n" * 9 + "  }\n" for at in range(6)
    )
    found = chunks(f"(function outer() {{\n{inner}}})();\n", "a.js")
    assert [chunk.symbol_name for chunk in found] == ["outer", *(f"f{at}" for at in range(1, 6))]
    assert [each.name for each in found[0].defines] == ["outer", "f0"]


# --- parents and edges -------------------------------------------------------------------------------


def test_the_outline_of_a_file_is_above_its_classes_and_functions() -> None:
    document = read(STORE)
    whole, section = document.chunks[:2]
    assert (whole.level, whole.summary, whole.parent_id) == ("document", "Keeps things.", None)
    assert whole.text.split("\n")[:6] == [
        "a.py", "", "Keeps things.", "", "class Store(Base)", "  def __init__(self, path)",
    ]  # fmt: skip
    assert whole.imports == ("os", "typing.Any")
    assert (section.level, section.symbol_name, section.parent_id) == ("section", "Store", whole.id)
    above = {chunk.qualified_name: chunk.parent_id for chunk in document.chunks[2:]}
    assert above["Store.put"] == above["Store.a"] == section.id
    assert above["main"] == above[None] == whole.id


def test_a_long_class_is_told_by_its_signatures() -> None:
    text = 'class A:\n    """Long."""\n' + "".join(body(f"m{at}", 20, "    ") for at in range(8))
    section = next(chunk for chunk in read(text).chunks if chunk.level == "section")
    assert section.text == "\n".join(["class A", "Long.", *(f"  def m{at}(value)" for at in range(8))])


def test_calls_within_a_file_are_edges_where_only_one_can_be_meant() -> None:
    document = read(STORE)
    names = {chunk.id: chunk.qualified_name for chunk in document.chunks}
    edges = {(names[edge.source_id], names[edge.target_id], edge.description) for edge in document.edges}
    assert {edge.relation for edge in document.edges} == {"calls"}
    assert edges == {("main", "Store", "as Store"), ("main", "helper", "as helper")}  # put and get are anybody's


def test_a_method_of_the_own_class_is_meant_first() -> None:
    long = "        # some words, so that it is not small: some words, some words, some words, some words, some words\n"
    one = f"class {{0}}:\n    def go(self):\n{long * 2}        self.step()\n\n    def step(self):\n{long * 3}\n"
    document = read(one.format("A") + one.format("B"))
    names = {chunk.id: chunk.qualified_name for chunk in document.chunks}
    found = {(names[edge.source_id], names[edge.target_id]) for edge in document.edges}
    assert found == {("A", "A.step"), ("B", "B.step")}


def test_ids_survive_lines_that_move_above() -> None:
    before, after = read(STORE), read("# a comment\n\n" + STORE)
    assert [chunk.id for chunk in before.chunks][2:] != []
    assert {chunk.id for chunk in before.chunks if chunk.symbol_name} <= {chunk.id for chunk in after.chunks}


def test_a_moved_file_embeds_nothing_again() -> None:
    hashes = [{chunk.content_hash for chunk in chunks(STORE, path)} for path in ("a.py", "other/place/a.py")]
    assert hashes[0] == hashes[1]


# --- bad input ---------------------------------------------------------------------------------------


def test_broken_syntax_is_cut_by_its_layout_and_still_indexed() -> None:
    text = "}}} ((( <<<< %%%% ]]] @@@ ;;; =====\n" * 80
    found = read(text, "a.java").chunks
    assert len(found) > 1
    assert {chunk.level for chunk in found} == {"chunk"}
    assert sum(chunk.text.count("@@@") for chunk in found) == 80


def test_macros_that_hide_a_brace_leave_the_names_of_a_file() -> None:
    text = "LIB_BEGIN_NAMESPACE\n" + "".join(f"LIB_API int f{at}(int x) {{ return x; }}\n" for at in range(20))
    assert {f"f{at}" for at in range(1, 20)} <= set(defined(f'extern "C" {{\n{text}', "a.cpp"))


def test_one_broken_function_leaves_the_others_their_names() -> None:
    text = "".join(f"int f{at}(int a)\n{{\n  return g(a);\n}}\n\n" for at in range(20))
    assert {f"f{at}" for at in range(20)} - set(defined(text + "int broken( {{{ \n", "a.c")) <= {"f19"}


@pytest.mark.parametrize("unit", ["(", "{", "[", "class A{", "if(x)", "-", "f(", '"'])
@pytest.mark.parametrize("path", ["a.py", "a.js", "a.cpp"])
def test_deep_nesting_ends_and_loses_nothing(path: str, unit: str) -> None:
    text = "\n".join([unit * 10] * 400)
    found = read(text, path).chunks
    assert "".join(chunk.text for chunk in found if chunk.level == "chunk").count(unit) == 4000


def test_a_parse_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_code, "PARSE_S", -1.0)
    assert {chunk.level for chunk in read(STORE).chunks} == {"chunk"}


def test_time_that_passes_after_the_parse_does_not_end_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are read through the parser's callback; one that gives nothing more is asked for ever."""
    now_s = [0.0]

    def later(query: tree_sitter.Query) -> tree_sitter.QueryCursor:
        now_s.append(1e9)
        return cursor(query)

    cursor = tree_sitter.QueryCursor
    monkeypatch.setattr(tree_sitter, "QueryCursor", later)
    monkeypatch.setattr(parse_code, "thread_time", lambda: now_s[-1])
    assert "load" in defined('const fs = require("fs");\nfunction load(name) { return fs.read(name); }\n', "a.js")


TOKENS = """
    class def fn func function interface struct enum impl namespace { } ( ) [ ] < > ; : , . = => -> :: # // /* */ " ' `
    é 漢 @x a b c return if else end do import from use <?php template public static const let 0 -- $ \\
"""
WORDS = st.sampled_from([*TOKENS.split(), "\n", "\n\n", "\t", "\r", "\r\n", "\x0b", "\u2028"])


@pytest.mark.parametrize("language", EXTENSIONS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(tokens=st.lists(WORDS, max_size=300), times=st.integers(1, 8))
def test_any_text_is_cut_into_chunks_that_hold_all_of_it(language: str, tokens: list[str], times: int) -> None:
    text = (" ".join(tokens) + "\n") * times
    document = read(text, f"a.{EXTENSIONS[language]}")
    found = [chunk for chunk in document.chunks if chunk.level == "chunk"]
    lines = text.replace("\r\n", "\n").split("\n")
    ids = {chunk.id for chunk in document.chunks}
    assert len(ids) == len(document.chunks)
    covered: set[int] = set()
    for chunk in found:
        assert chunk.start_line is not None
        assert chunk.end_line is not None
        assert chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert len(chunk.text) <= CODE.limit_chars
        assert chunk.content_hash == text_hash(embedded_text(chunk))
        assert chunk.parent_id is None or chunk.parent_id in ids
        assert all(chunk.start_line <= each.start_line <= chunk.end_line for each in chunk.defines)
        covered |= set(range(chunk.start_line, chunk.end_line + 1))
    assert all((a.end_line or 0) <= (b.start_line or 0) for a, b in pairwise(found))
    assert {at for at, line in enumerate(lines, 1) if line.strip()} <= covered
    assert {edge.source_id for edge in document.edges} | {edge.target_id for edge in document.edges} <= ids
    assert read(text, f"a.{EXTENSIONS[language]}") == document


# --- names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("self.store.put", "store.put"), ("a::b::<T>::c", "a.b.c"), ("p->q", "p.q"), ("x?.y", "x.y"),
        ("f(x).g", "g"), ("$this->h", "h"), ("(0, eval)", None), ("a.b." * 40 + "last", "last"),
    ],
)  # fmt: skip
def test_a_callee_is_written_with_dots(text: str, name: str | None) -> None:
    assert called(text) == name


@pytest.mark.parametrize(
    ("text", "language", "paths"),
    [
        ("from .a import (b as c,  # d\n  e)", "python", [".a.b", ".a.e"]),
        ("from . import a", "python", [".a"]),
        ("import a.b as c, d", "python", ["a.b", "d"]),
        ("a::b::{c, d}", "rust", ["a::b::c", "a::b::d"]),
        ('"./x"', "typescript", ["./x"]),
        ('"x/y.h"', "c", ["./x/y.h"]),
        ("<stdio.h>", "c", ["stdio.h"]),
    ],
)
def test_imports_are_paths(text: str, language: str, paths: list[str]) -> None:
    assert imported(text, language) == paths


def test_a_receiver_or_qualifier_is_the_scope() -> None:
    assert name_and_scope("M", "(s *Server[T])") == ("M", "Server")
    assert name_and_scope("Foo<T>::bar", "") == ("bar", "Foo")
    assert name_and_scope("baz", "Foo.prototype") == ("baz", "Foo")
    assert name_and_scope("run", "module.exports") == ("run", "")


@pytest.mark.parametrize(
    ("lines", "summary"),
    [
        (["#!/bin/sh", "# Does it.", "#", "# More."], "Does it."),
        (["/**", " * Guesses when.", " * @param x of what", " */"], "Guesses when."),
        (["/// <summary>Gets it</summary>"], "Gets it"),
        (["@Override", "// Does so."], "Does so."),
        (["// Copyright 2020 Somebody"], None),
        (["#[derive(Debug)]"], None),
    ],
)
def test_a_summary_is_the_first_paragraph_of_a_comment(lines: list[str], summary: str | None) -> None:
    assert summary_of(lines, 100) == summary
