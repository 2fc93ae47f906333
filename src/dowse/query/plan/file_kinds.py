"""Kinds of files in a repository that rank behind others unless the query asks for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

import msgspec

from dowse.types import Chunk

ASIDE = 0.3  # factor of tests, examples and the like; 0.1 to 0.5 differ by less than 0.002 nDCG
MOSTLY = 0.6  # share of code among the candidates of a repository; chosen: a team's index has less
BEHIND = 0.5  # factor of docs and configs when code is asked for; 0.3 to 0.7 likewise


class AsideKind(msgspec.Struct, frozen=True):
    """Files of one kind: a pattern over `/path`, and words that ask for them, as stems."""

    name: str
    pattern: re.Pattern[str]
    words: frozenset[str]


_KINDS = (
    (
        "test",
        r"/(?:tests?|__tests__|specs?|testdata|test-data|fixtures|mocks?|__mocks__|testing|e2e)/"
        r"|/(?:test_|conftest\.)[^/]*$|[._-](?:test|tests|spec)\.\w+$|[a-z](?:Tests?|Spec|Suite)\.\w+$",
        "test tests testing spec specs fixtur fixtures mock mocks assert suit suite case cases",
    ),
    (
        "example",
        r"^/(?:[^/]+/)?(?:examples?|samples?|demos?|tutorials?)/",
        "exampl example examples sampl sample samples demo demos tutori tutorial",
    ),
    ("benchmark", r"/(?:bench|benches|benchmarks?)/|_bench\.\w+$", "bench benchmark benchmarks perform speed"),
    ("vendored", r"/(?:vendor|third[_-]party|node_modules|extern|external)/", "vendor vendored third party"),
    (
        "generated",
        r"/generated/|\.pb\.\w+$|_pb2(?:_grpc)?\.pyi?$|\.g\.dart$|\.min\.(?:js|css)$|\.gen\.\w+$|\.lock$|lock\.json$",
        "generat generated proto protobuf stub stubs lock",
    ),
    ("migration", r"/migrations?/|/migrate/", "migrat migration migrations schema"),
    (
        "boilerplate",
        r"/(?:package-info\.java|module-info\.java|LICEN[CS]E[^/]*|NOTICE[^/]*|CODE_OF_CONDUCT\.\w+)$",
        "licens license notic notice conduct packag modul",
    ),
)
KINDS = tuple(AsideKind(name, re.compile(rule), frozenset(words.split())) for name, rule, words in _KINDS)
_DOC_LIST = """
    doc docs document readm readme guid guide changelog runbook adr page tutori instal install releas config configur
    yaml toml json set deploy helm manifest compos docker slack discuss decid decis thread
"""
_DOC_WORDS = frozenset(_DOC_LIST.split())
_WHERE = re.compile(
    r"\bwhere\b.*\b(?:calls?|called|defin\w+|implement\w*|handle[ds]?|used?|uses|raised?|sets?|declared?|created?|"
    r"computed?|parsed?|sent|sends?|read|reads|written|writes?|validat\w+|check\w*|is|are|do|does)\b"
    r"|\b(?:function|method|class|module|implementation|source code)\b",
    re.IGNORECASE,
)
_CALLER = re.compile(
    r"\bwhere\s+(?:does|do|did)\s+(?:the\s+)?(.+?)\s+"
    r"(?:calls?|uses?|invokes?|requests?|contacts?|asks?|quer(?:y|ies)|connects?\s+to|talks?\s+to|sends?|publish(?:es)?)\b",
    re.IGNORECASE,
)


class KindRule:
    """Factor of a chunk by the kind of its file, for one query; a path is classified once."""

    def __init__(self, aside: tuple[AsideKind, ...], *, code: bool, caller: str = "") -> None:
        """`aside`: kinds that the query does not ask for. `code`: it asks for code, of `caller` if that is known."""
        self.code = code
        self._aside = aside
        self._caller = caller
        self._kinds: dict[str | None, str] = {None: ""}

    def __call__(self, chunk: Chunk) -> tuple[float, str]:
        """Return the factor and the kind; 1 and nothing for most files."""
        path = chunk.file_path
        if path not in self._kinds:
            found = (kind.name for kind in self._aside if kind.pattern.search(f"/{path}"))
            self._kinds[path] = next(found, "")
        if kind := self._kinds[path]:
            return ASIDE, kind
        if self.code and not chunk.corpus_type.startswith(("CODE_LOGIC", "CONVO_")):
            return BEHIND, "config" if chunk.corpus_type.startswith("CODE_") else "doc"
        if self._caller and not _inside(path or "", self._caller):
            return BEHIND, "outside the caller"
        return 1.0, ""


def _inside(path: str, name: str) -> bool:
    """Return whether a file or a folder above it has this name, with or without "service"."""
    return name in (_bare(part) for part in path.partition(".")[0].split("/"))


@lru_cache(maxsize=4096)  # names of folders come again with every candidate
def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower().removesuffix("service")


def kind_rule(text: str, words: Collection[str], chunks: Sequence[Chunk], *, named: bool = False) -> KindRule:
    """Return the rule for a query, its words as stems and its best candidates.

    Code is asked for if the query asks where or for a function, or if nearly all candidates are code; not if it names
    docs or settings, or spells a name, which a setting may have as well. "Where does checkout call payment" asks for
    files of checkout.
    """
    asked = frozenset(words)
    aside = tuple(kind for kind in KINDS if not kind.words & asked)
    code = sum(chunk.corpus_type == "CODE_LOGIC" for chunk in chunks)
    wanted = code and not named and not asked & _DOC_WORDS
    wanted = wanted and (code >= MOSTLY * len(chunks) or _WHERE.search(text) is not None)
    asks = _CALLER.search(text)
    caller = _bare(asks[1]) if asks else ""
    inside = caller and any(_inside(chunk.file_path or "", caller) for chunk in chunks)
    return KindRule(aside, code=bool(wanted), caller=caller if inside else "")
