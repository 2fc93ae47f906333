"""Nothing goes in; the readers at hand come out, by name: ours, and those that installed packages offer.

A package offers one by an entry point of the group `dowse.readers`: its name is the name of a reader or, simpler, the
extension of the files it takes (`pdf`); its value is a callable without arguments that gives a `dowse.ports.Reader`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from dowse.errors import MissingExtraError
from dowse.ingest.code.reader import CodeReader
from dowse.ingest.readers.markdown import markdown_reader
from dowse.ingest.readers.text import TextReader
from dowse.ports import Reader

GROUP = "dowse.readers"

ReaderFactory = Callable[[], Reader]


def find_readers() -> dict[str, ReaderFactory]:
    """An installed reader takes the place of ours with the same name: who installs one wants it used."""
    ours: dict[str, ReaderFactory] = {
        "code": CodeReader,
        "markdown": markdown_reader,
        "text": TextReader,
        "slack": _slack,
        "transcript": _transcript,
        "mail": _mail,
        "rst": _rst,
        "html": _html,
        "docx": _docx,
        "pdf": _pdf,
        "csv": _csv,
        "json": _json,
        "notebook": _notebook,
        "yaml": _yaml,
        "dockerfile": _dockerfile,
        "hcl": _hcl,
        "proto": _proto,
        "env": _env,
    }
    return ours | {point.name: _installed(point) for point in entry_points(group=GROUP)}


def _slack() -> Reader:
    from dowse.ingest.readers.slack import SlackReader

    return SlackReader(otherwise=_json)


def _transcript() -> Reader:
    from dowse.ingest.readers.transcript import TranscriptReader

    return TranscriptReader(otherwise=TextReader)


def _mail() -> Reader:
    from dowse.ingest.readers.mail import MailReader

    return MailReader()


def _rst() -> Reader:
    from dowse.ingest.readers.rst import RstReader

    return RstReader()


def _html() -> Reader:
    from dowse.ingest.readers.read_html import HtmlReader

    return HtmlReader()


def _docx() -> Reader:
    from dowse.ingest.readers.docx import DocxReader

    return DocxReader()


def _pdf() -> Reader:
    from dowse.ingest.pdf.reader import PdfReader

    return PdfReader()


def _csv() -> Reader:
    from dowse.ingest.readers.csv import CsvReader

    return CsvReader()


def _json() -> Reader:
    from dowse.ingest.readers.json import JsonReader

    return JsonReader()


def _notebook() -> Reader:
    from dowse.ingest.readers.notebook import notebook_reader

    return notebook_reader()


def _yaml() -> Reader:
    from dowse.ingest.manifests.yaml import YamlReader

    return YamlReader()


def _dockerfile() -> Reader:
    from dowse.ingest.manifests.dockerfile import DockerReader

    return DockerReader()


def _hcl() -> Reader:
    from dowse.ingest.manifests.terraform import HclReader

    return HclReader()


def _proto() -> Reader:
    from dowse.ingest.manifests.proto import ProtoReader

    return ProtoReader()


def _env() -> Reader:
    from dowse.ingest.manifests.env import EnvReader

    return EnvReader()


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
