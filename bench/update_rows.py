"""A round's number goes in; the 20 chunks that it adds or replaces come out, with a word that only they have."""

from __future__ import annotations

COUNT = 20


def fresh_rows(number: int) -> list[dict[str, str]]:
    """The same 20 ids in every round, with new text of about the length of real chunks."""
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
