"""Filter columns: field values enter as dictionary codes, a filter leaves as a mask over the rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError
from dowse.filters import (
    META,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    Clause,
    Comparison,
    Contains,
    Eq,
    Filter,
    Gt,
    In,
    Lt,
    Ne,
    Not,
    Or,
    field_value,
    holds,
)
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.store.sql.codec import batches, marks
from dowse.store.sql.database import Database
from dowse.types import Chunk

Mask = NDArray[np.bool_]
Codes = NDArray[np.uint32]
_ABSENT = 0  # the code of "no value"
_COLUMN = "column-"
_COMPARE: dict[type, Callable[[Any, float], Any]] = {Gt: operator.gt, Lt: operator.lt, Eq: operator.eq, Ne: operator.ne}
_VALUES, _SUM = "values of ", "sum of "  # facts of a part: how many values a field has, and their checksum
_KEPT_VALUES = 20_000  # values whose codes are remembered, some 3 MB; chosen


@lru_cache(256)
def _file(field: str) -> str:
    """A column's file; the user's own keys are spelled out in hexadecimal, since they may hold anything."""
    own = field.startswith(META)
    return f"{_COLUMN}meta-{field[len(META) :].encode().hex()}" if own else _COLUMN + field


_NUMBERS = frozenset(map(_file, NUMBER_FIELDS))


def _dtype(file: str) -> str:
    return "<f8" if file in _NUMBERS else "<u4"


class ColumnWriter:
    """Writer of the filterable fields of chunks. New values get codes in the database first."""

    def __init__(self, part: PartWriter, database: Database) -> None:
        self._part = part
        self._database = database
        self.facts = {key: each for key, each in part.state.facts.items() if key.startswith((_VALUES, _SUM))}
        self._codes: dict[str, dict[Any, int]] = {}  # by field and value, what was asked for so far

    def append(self, chunks: Sequence[Chunk], rows_before: int) -> None:
        if sum(map(len, self._codes.values())) > _KEPT_VALUES:
            self._codes.clear()
        columns = {field: column for field, column in _columns(chunks).items() if column.count(None) < len(column)}
        new = [each for field, column in columns.items() for each in self._learn(field, column)]
        if new:
            with self._database.transaction() as connection:
                connection.executemany("INSERT INTO dictionary VALUES (?, ?, ?)", new)
        for field, column in columns.items():
            code_of = self._codes[field]
            self._part.pad(_file(field), rows_before * 4)
            self._part.append(_file(field), np.array([code_of[value] for value in column], "<u4"))
        for field in NUMBER_FIELDS:
            numbers_of = [field_value(chunk, field) for chunk in chunks]
            self._part.append(_file(field), np.array([np.nan if v is None else v for v in numbers_of], "<f8"))

    def _learn(self, field: str, column: Sequence[Any]) -> list[tuple[str, str, int]]:
        """Remember the codes of a column's values; return those that the dictionary does not have yet."""
        known = self._codes.setdefault(field, {None: _ABSENT})
        unseen = {value: str(value) for value in column if value not in known}
        if not unseen:
            return []
        stored: dict[str, int] = {}
        # Only these are queried: the paths of a hundred thousand files, for one that changed, would be too many.
        for part in batches(list(unseen.values())):
            sql = f"SELECT value, code FROM dictionary WHERE field = ? AND value IN ({marks(part)})"
            stored.update(self._database.query(sql, [field, *part]))
        last = self._database.query("SELECT ifnull(MAX(code), 0) FROM dictionary WHERE field = ?", [field])[0][0]
        unknown = [text for text in dict.fromkeys(unseen.values()) if text not in stored]
        self._add_sum(field, last, unknown)
        new = [(field, text, code) for code, text in enumerate(unknown, last + 1)]
        stored.update((text, code) for _, text, code in new)
        known.update((value, stored[text]) for value, text in unseen.items())
        return new

    def _add_sum(self, field: str, last: int, new: Sequence[str]) -> None:
        """Continue the checksum of a field's values by code."""
        count, total = self.facts.get(_VALUES + field), int(self.facts.get(_SUM + field, 0))
        if count != last:  # not known, or a writer added values and published nothing
            total = _sum(_by_code(self._database, field))
        self.facts |= {_VALUES + field: last + len(new), _SUM + field: _sum(new, total)}


def _by_code(database: Database, field: str) -> list[str]:
    """Return the values of a field; the first has code 1."""
    return [row[0] for row in database.query("SELECT value FROM dictionary WHERE field = ? ORDER BY code", [field])]


def _sum(values: Sequence[str], before: int = 0) -> int:
    return crc32("".join(f"{value}\0" for value in values).encode("utf-8", "surrogatepass"), before)


_text_fields = operator.attrgetter(*TEXT_FIELDS)


def _columns(chunks: Sequence[Chunk]) -> dict[str, Sequence[Any]]:
    """By field, what the chunks hold in it; of the user's own fields, those that one of them has."""
    rows = map(_text_fields, chunks)
    columns: dict[str, Sequence[Any]] = dict(zip(TEXT_FIELDS, zip(*rows, strict=True), strict=True))
    own = [dict(chunk.meta) for chunk in chunks]
    for key in sorted({key for each in own for key in each}):
        columns[META + key] = [each.get(key) for each in own]
    return columns


class ColumnReader:
    """Filters as masks over the rows of one snapshot."""

    def __init__(self, part: PartReader, database: Database, containing: Callable[[str], Mask]) -> None:
        """`containing` marks the rows whose text has a phrase."""
        self._database = database
        self._containing = containing
        self._rows = part.state.rows
        # Mapped now, not when first asked: a compaction deletes the files, and a lost one must be noticed on open.
        # Checked when first asked: most queries filter by no column.
        self._part = part
        self._mapped = {
            name: part.unchecked(name, _dtype(name)) for name in part.state.files if name.startswith(_COLUMN)
        }
        self._arrays: dict[str, NDArray[Any]] = {}
        self._values: dict[str, list[str]] = {}

    def mask(self, where: Filter) -> Mask:
        mask = np.ones(self._rows, np.bool_)
        for clause in where:
            mask &= self._clause(clause)
        return mask

    def _clause(self, clause: Clause) -> Mask:
        if isinstance(clause, Not):
            return ~self.mask(clause.where)
        if isinstance(clause, Or):
            found = np.zeros(self._rows, np.bool_)
            for each in clause.filters:
                found |= self.mask(each)
            return found
        if isinstance(clause, Contains):
            return self._containing(clause.value)
        column = self._array(clause.field)
        return _compared(clause, column) if clause.field in NUMBER_FIELDS else self._table(clause)[column]

    def _table(self, clause: Comparison) -> Mask:
        """By code, whether the clause holds."""
        values = self.values(clause.field)
        table = np.zeros(len(values) + 1, np.bool_)
        wanted = clause.values if isinstance(clause, In) else (clause.value,) if isinstance(clause, Eq) else ()
        if wanted and all(isinstance(each, str) for each in wanted):  # looked up: `holds` takes longer
            known = set(wanted)
            table[1:] = [value in known for value in values]
        else:
            table[_ABSENT] = holds(clause, None)
            table[1:] = [holds(clause, value) for value in values]
        return table

    def _array(self, field: str) -> NDArray[Any]:
        """A column in full length; rows beyond its file have no value."""
        found = self._arrays.get(field)
        if found is None:
            name = _file(field)
            self._part.check([name])
            found = self._mapped.get(name, np.empty(0, _dtype(name)))
            if len(found) < self._rows:
                absent = np.nan if field in NUMBER_FIELDS else _ABSENT
                found = np.concatenate([found, np.full(self._rows - len(found), absent, found.dtype)])
            self._arrays[field] = found
        return found

    def values(self, field: str) -> list[str]:
        """Values by code − 1, also those of deleted chunks."""
        found = self._values.get(field)
        if found is None:
            found, facts = _by_code(self._database, field), self._part.state.facts
            known = facts.get(_VALUES + field)  # none in an index of an earlier version
            if known is not None and _sum(found[: int(known)]) != facts.get(_SUM + field):
                raise CorruptIndexError(f"the values of {field} in dowse.db are damaged; run `dowse rebuild`")
            self._values[field] = found
        return found


def _compared(clause: Comparison, column: NDArray[np.float64]) -> Mask:
    if isinstance(clause, In):
        return np.isin(column, [float(each) for each in clause.values])
    if not isinstance(clause, Gt | Lt | Eq | Ne):
        raise TypeError(f"{clause} does not apply to a number")
    with np.errstate(invalid="ignore"):
        return np.asarray(_COMPARE[type(clause)](column, float(clause.value)), np.bool_)
