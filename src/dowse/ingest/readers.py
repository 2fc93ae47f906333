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
    from dowse.ingest.read_slack import SlackReader

    return SlackReader(otherwise=_json)


def _transcript() -> Reader:
    from dowse.ingest.read_transcript import TranscriptReader

    return TranscriptReader(otherwise=TextReader)


def _mail() -> Reader:
    from dowse.ingest.read_mail import MailReader

    return MailReader()


def _rst() -> Reader:
    from dowse.ingest.read_rst import RstReader

    return RstReader()


def _html() -> Reader:
    from dowse.ingest.read_html import HtmlReader

    return HtmlReader()


def _docx() -> Reader:
    from dowse.ingest.read_docx import DocxReader

    return DocxReader()


def _pdf() -> Reader:
    from dowse.ingest.read_pdf import PdfReader

    return PdfReader()


def _csv() -> Reader:
    from dowse.ingest.read_csv import CsvReader

    return CsvReader()


def _json() -> Reader:
    from dowse.ingest.read_json import JsonReader

    return JsonReader()


def _notebook() -> Reader:
    from dowse.ingest.read_notebook import notebook_reader

    return notebook_reader()


def _yaml() -> Reader:
    from dowse.ingest.read_yaml import YamlReader

    return YamlReader()


def _dockerfile() -> Reader:
    from dowse.ingest.read_docker import DockerReader

    return DockerReader()


def _hcl() -> Reader:
    from dowse.ingest.read_hcl import HclReader

    return HclReader()


def _proto() -> Reader:
    from dowse.ingest.read_proto import ProtoReader

    return ProtoReader()


def _env() -> Reader:
    from dowse.ingest.read_env import EnvReader

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
