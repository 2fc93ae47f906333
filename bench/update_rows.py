"""Rows for the update benchmark: 20 chunks for each round, with a word that only they contain."""

from __future__ import annotations

COUNT = 20


def fresh_rows(number: int) -> list[dict[str, str]]:
    """Make 20 rows with the same ids in every round and new text of about the length of real chunks."""
    word = f"zebraword{number}"
    body = "the retry budget of a request is set where the connection pool opens its sockets and counts failures " * 6
    return [
        {
            "id": f"fresh-{each}",
            "text": f"part {each} of round {number}: {body}{word}",
            "prose": f"part round {number} {body}{word}",
            "tenth": "t1",
            "part": "p1",
        }
        for each in range(COUNT)
    ]
