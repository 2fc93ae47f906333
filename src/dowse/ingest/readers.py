"""Nothing goes in; the readers at hand come out, by name: ours, and those that installed packages offer.

A package offers one by an entry point of the group `dowse.readers`: its name is the name of a reader or, simpler, the
extension of the files it takes (`pdf`); its value is a callable without arguments that gives a `dowse.ports.Reader`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from dowse.errors import MissingExtraError
from dowse.ingest.read_code import CodeReader
from dowse.ingest.read_markdown import markdown_reader
from dowse.ingest.read_text import TextReader
from dowse.ports import Reader

GROUP = "dowse.readers"

ReaderFactory = Callable[[], Reader]


def find_readers() -> dict[str, ReaderFactory]:
    """An installed reader takes the place of ours with the same name: who installs one wants it used."""
    ours: dict[str, ReaderFactory] = {"code": CodeReader, "markdown": markdown_reader, "text": TextReader}
    return ours | {point.name: _installed(point) for point in entry_points(group=GROUP)}


def _installed(point: EntryPoint) -> ReaderFactory:
    def make() -> Reader:
        try:
            factory = point.load()
        except ImportError as err:
            raise MissingExtraError(
                f"the reader {point.name!r} ({point.value}) cannot be loaded: {err}; install what it needs or remove it"
            ) from err
        reader: Reader = factory()
        return reader

    return make
