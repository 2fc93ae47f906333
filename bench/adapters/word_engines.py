"""Word engines over the same terms.

rank_bm25, bm25s, tantivy raw and SQLite FTS5, chosen by the first argument.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from typing import Any

import numpy as np
from json_server import each_timed, read, rows, serve, size_mb, versions

FIELDS = ("tenth", "part")


class RankBm25:
    """rank_bm25: scores every chunk in Python at every query; a filter is applied to all scores."""

    def build(self, corpus: str, vectors: str, folder: str) -> dict[str, Any]:
        from rank_bm25 import BM25Okapi

        found = list(rows(corpus))
        self._columns = {name: np.array([row[name] for row in found]) for name in FIELDS}
        started = time.process_time()
        self._index = BM25Okapi([row["prose"].split() for row in found])
        return {"words_cpu_s": time.process_time() - started, "disk_mb": 0.0}

    def words(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        def ask(question: Any) -> list[int]:
            scores = self._index.get_scores(question["prose"])
            if where:
                name, value = where.split(" = ")
                scores = np.where(self._columns[name] == value.strip("'"), scores, -1.0)
            return [int(each) for each in np.argsort(scores)[::-1][:k]]

        return each_timed(ask, read(queries)[first : first + count])

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("rank-bm25", "numpy")}


class Bm25s:
    """bm25s: computes scores at build time and adds them at query time; a filter is a weight mask."""

    def build(self, corpus: str, vectors: str, folder: str) -> dict[str, Any]:
        import bm25s

        found = list(rows(corpus))
        self._masks = {name: np.array([row[name] for row in found]) for name in FIELDS}
        started = time.process_time()
        self._index = bm25s.BM25(k1=1.2, b=0.75)
        self._index.index([row["prose"].split() for row in found], show_progress=False)
        spent = time.process_time() - started
        self._index.save(folder)
        return {"words_cpu_s": spent, "disk_mb": size_mb(folder)}

    def words(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        def ask(question: Any) -> list[int]:
            mask = None
            if where:
                name, value = where.split(" = ")
                mask = (self._masks[name] == value.strip("'")).astype(np.float32)
            if not question["prose"]:
                return []
            found, _ = self._index.retrieve(
                [question["prose"]], k=k, show_progress=False, weight_mask=mask, n_threads=0
            )
            return [int(each) for each in found[0]]

        return each_timed(ask, read(queries)[first : first + count])

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("bm25s", "numpy")}


class Tantivy:
    """tantivy-py: a boolean query over one field; stored ids are fetched."""

    def build(self, corpus: str, vectors: str, folder: str) -> dict[str, Any]:
        import tantivy

        self._tantivy = tantivy
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("prose", tokenizer_name="whitespace", index_option="freq")
        for name in FIELDS:
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
        builder.add_unsigned_field("row", fast=True)
        self._schema = builder.build()
        os.makedirs(folder, exist_ok=True)
        started = time.process_time()
        index = tantivy.Index(self._schema, path=folder)
        writer = index.writer(200_000_000, 1)
        for number, row in enumerate(rows(corpus)):
            document = tantivy.Document()
            document.add_text("prose", row["prose"])
            for name in FIELDS:
                document.add_text(name, row[name])
            document.add_unsigned("row", number)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher = index.searcher()
        return {"words_cpu_s": time.process_time() - started, "disk_mb": size_mb(folder)}

    def words(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        query_of, occur = self._tantivy.Query, self._tantivy.Occur

        def ask(question: Any) -> list[int]:
            terms = [
                (occur.Should, query_of.term_query(self._schema, "prose", term, "freq")) for term in question["prose"]
            ]
            query = query_of.boolean_query(terms)
            if where:
                name, value = where.split(" = ")
                only = query_of.const_score_query(
                    query_of.term_query(self._schema, name, value.strip("'"), "basic"), 0.0
                )
                query = query_of.boolean_query([(occur.Must, query), (occur.Must, only)])
            hits = self._searcher.search(query, limit=k, count=False).hits
            return list(self._searcher.fast_field_values("row", [address for _, address in hits]))

        return each_timed(ask, read(queries)[first : first + count])

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("tantivy")}


class Fts5:
    """Full-text index of SQLite, ordered by its bm25 function."""

    def build(self, corpus: str, vectors: str, folder: str) -> dict[str, Any]:
        os.makedirs(folder, exist_ok=True)
        started = time.process_time()
        self._connection = sqlite3.connect(os.path.join(folder, "fts5.db"))
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5(prose, content='', tokenize='unicode61')")
        self._connection.execute("CREATE TABLE fields (row INTEGER PRIMARY KEY, tenth TEXT, part TEXT)")
        with self._connection:
            for number, row in enumerate(rows(corpus)):
                self._connection.execute("INSERT INTO words(rowid, prose) VALUES (?, ?)", (number, row["prose"]))
                self._connection.execute("INSERT INTO fields VALUES (?, ?, ?)", (number, row["tenth"], row["part"]))
            for name in FIELDS:
                self._connection.execute(f"CREATE INDEX by_{name} ON fields({name})")
        return {"words_cpu_s": time.process_time() - started, "disk_mb": size_mb(folder)}

    def words(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        only = f"AND +rowid IN (SELECT row FROM fields WHERE {where})" if where else ""
        sql = f"SELECT rowid FROM words WHERE words MATCH ? {only} ORDER BY bm25(words) LIMIT ?"

        def ask(question: Any) -> list[int]:
            terms = " OR ".join('"' + term.replace('"', "") + '"' for term in question["prose"])
            return [row[0] for row in self._connection.execute(sql, (terms, k))] if terms else []

        return each_timed(ask, read(queries)[first : first + count])

    def facts(self) -> dict[str, Any]:
        return {"versions": {"sqlite": sqlite3.sqlite_version}}


ENGINES = {"rank_bm25": RankBm25, "bm25s": Bm25s, "tantivy": Tantivy, "fts5": Fts5}

if __name__ == "__main__":
    serve(ENGINES[sys.argv[1]]())
