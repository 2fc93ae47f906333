"""Bytes that do not say what they are written in go in; their encoding comes out, where there is no doubt about it.

Text that is read wrongly is worse than text that is not read: it is found by nobody and blamed on the search. So
only two guesses are made, and only where every sign agrees: UTF-16 without a mark, and Windows-1252 (with it
Latin-1) in a file that is mostly ASCII.
"""

from __future__ import annotations

import re

WIDE_SHARE = 0.4  # chosen: of two bytes one is NUL in UTF-16 of a Latin script; names in other scripts leave room
STRAY_SHARE = 0.01  # chosen: of the other bytes nearly none is
NARROW_SHARE = 0.15  # of all bytes; chosen: French has 4 %, Shift-JIS above 40 %
LONGEST_RUN = 2  # bytes above ASCII in a row; chosen: Cyrillic and Chinese have whole words of them
_SAMPLE_BYTES = 8192

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_WELL_FORMED = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_OWN_WORD = re.compile(r"(?<![A-Za-z])[^\x00-\x7f]{2,}(?![A-Za-z])")
_INSIDE_WORD = re.compile(r"(?<=[A-Za-z])[^\x00-\x7f]+(?=[A-Za-z])")


def guess(data: bytes) -> str | None:
    """For bytes that are no UTF-8 and have no byte order mark; None when nothing is sure."""
    return wide(data) or _narrow(data)


def wide(data: bytes) -> str | None:
    """UTF-16 by where its NUL bytes stand."""
    sample = data[: _SAMPLE_BYTES & ~1]
    half = len(sample) // 2
    if not half or (len(data) <= _SAMPLE_BYTES and len(data) % 2):
        return None
    even, odd = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if odd >= WIDE_SHARE and even <= STRAY_SHARE and not _CONTROL.search(sample[0::2]):
        return "utf-16-le"
    return "utf-16-be" if even >= WIDE_SHARE and odd <= STRAY_SHARE and not _CONTROL.search(sample[1::2]) else None


def _narrow(data: bytes) -> str | None:
    """Windows-1252, when what it would make of the bytes looks like words of a western language."""
    runs = _HIGH_RUN.findall(data)
    if _CONTROL.search(data) or _WELL_FORMED.search(data) or max(map(len, runs), default=0) > LONGEST_RUN:
        return None
    high = sum(map(len, runs))
    if high > max(NARROW_SHARE * len(data), LONGEST_RUN):
        return None
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    # Polish or Czech in its own code page would have signs in the middle of words here; noise has words of its own.
    odd = any(not char.isalpha() and char not in "’´·" for run in _INSIDE_WORD.findall(text) for char in run)
    alone = any(run.isalpha() for run in _OWN_WORD.findall(text))
    return None if odd or alone else "cp1252"
