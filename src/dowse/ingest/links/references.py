"""A chunk goes in; what it speaks of comes out: calls, imports, links, names, paths, codes, services."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from dowse.link_names import CODE, CODE_PATTERN, FILE, MODULE, SERVICE, SYMBOL, THREAD, name_parts, thread_name
from dowse.types import Chunk

MOST_REFERENCES = 64  # a chunk; chosen: a table of everything ties everything to everything
SHORTEST_PLAIN = 4  # letters of a name that stands alone; chosen: shorter ones are words
MEMORY_LIMIT = 100_000  # words; chosen: those of a large tree, in some 30 MB
LONGEST_KEPT_CHARS = 200  # of a remembered word; chosen: longer ones are data
LONGEST_TEXT_CHARS = 20_000  # chosen: ten times a long chunk
WEIGHTS = {
    # chosen, in the order of how sure we are that one end explains the other
    "calls": 0.8, "documents": 0.9, "replies_to": 0.9, "deploys": 0.8, "references": 0.7, "imports": 0.6,
    "mentions": 0.6,
}  # fmt: skip
SERVICE_WEIGHT = 0.4  # of a mention: a service is a big place


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Called everywhere and defined by everyone: a name alone does not tell whose is meant.
COMMON_NAMES = _words(
    "add all any append apply args assert begin bind build bytes call cancel catch check clear clone close code "
    "compare config connect contains copy count create data debug decode default delete describe dispatch encode end "
    "equals error exec execute exists exit expect extend fail fetch fill filter find first flush foreach format from "
    "get getattr group handle has hash head hello index info init insert int invoke items iter join keys last length "
    "list load lock log main make map match max merge min name new next none now open order parse path peek pop post "
    "print process push put query range read ready reduce refresh register reject release remove render replace "
    "request require reset resolve response rest result return reverse run save search send service set setup shift "
    "show size sleep slice sort split start state status stop store str string sub submit sum super sync tag test text "
    "then throw time title token tostring trim type unlock update upper use user value values version view wait warn "
    "watch with wrap write zip"
)
_TICKED = re.compile(r"`{1,2}([^`\n]{2,120})`{1,2}")
_BARE = re.compile(
    r"(?<![\w$/.@-])(?:"
    r"[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*\(\)"  # call()
    r"|[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w+)+"  # dotted.name
    r"|[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+"  # snake_case
    r"|[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z]+[a-z0-9]+[A-Z]\w*"  # camelCase, PascalCase
    r")(?![\w$/-])"
)
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$][\w$]*)*(?:\(.{0,60}\))?")
_PATH = re.compile(r"(?<![\w/.:@-])(?:\.{0,2}/)?(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z]\w{0,9}(?::(\d{1,6}))?(?![\w/])")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]{1,300})")
_RST = re.compile(r":(?:doc|ref|download):`(?:[^`<\n]*<)?([^`<>\n]{1,200})>?`|`[^`<\n]{1,200}<([^`<>\s]{1,300})>`_")
_HREF = re.compile(r"\bhref\s*=\s*[\"']([^\"'\s]{1,300})", re.IGNORECASE)
_ADR = re.compile(r"\bADR[ -]?0*(\d{1,5})\b")
_HEADING = re.compile(r"#{1,6} +(.+)")
_IMPORTED = re.compile(r"[\"'<]([^\"'<>\s]{1,200})[\"'>]")
_WORD = re.compile(r"[\w.$/:@*\\-]+")
_WORKLOADS = _words("Deployment StatefulSet DaemonSet ReplicaSet Pod Job CronJob Chart service")
_IMPORT_WORDS = _words("import from use using require include static type as package export pub mod extern")


class Reference(NamedTuple):
    """Something a chunk speaks of. A tuple, because there are very many."""

    relation: str
    kind: str  # as in `names`
    name: str  # what to look up
    spelled: str  # as written: path, qualified name, import
    line: int | None = None  # of the file that is meant
    anchor: str = ""
    exact: bool = True  # False: the name may be a word like any other


Said = tuple[str, Reference]  # as written, and what it means
_T = TypeVar("_T")


class Speech:
    """Tells what chunks speak of. Words, calls and imports come again and again: what each means is found out once."""

    def __init__(self) -> None:
        self._words = _Memory(_said)
        self._calls = _Memory(_called)
        self._imports = _Memory(_imported)

    def references_of(self, chunk: Chunk) -> list[Reference]:
        """Each once, in order of how sure they are; bounded."""
        if chunk.level != "chunk":
            return []
        found = self._code(chunk) if chunk.corpus_type.startswith("CODE") else list(self._prose(chunk))
        if chunk.thread_id:
            found.append(Reference("replies_to", THREAD, thread_name(chunk), chunk.thread_id))
        return list(dict.fromkeys(found))[:MOST_REFERENCES] if len(found) > 1 else found

    def _code(self, chunk: Chunk) -> list[Reference]:
        found = [reference for spelled in chunk.calls_out for reference in self._calls[spelled]]
        if chunk.imports:
            found += [reference for spelled in chunk.imports for reference in self._imports[spelled]]
        if chunk.corpus_type == "CODE_DEPLOY" and chunk.service_name and _runs(chunk):
            found.append(Reference("deploys", SERVICE, chunk.service_name, chunk.service_name))
        return found

    def _prose(self, chunk: Chunk) -> Iterator[Reference]:
        text = chunk.text[:LONGEST_TEXT_CHARS]
        yield from self._headings(chunk, text)
        links = list(_links(text))
        yield from links
        if "ADR" in text:
            for match in _ADR.finditer(text):
                yield Reference("mentions", CODE, f"ADR-{match[1]}", match[0])
        said = self._said(text)
        yield from (each for _, each in said if each.kind == CODE)
        taken = {link.spelled for link in links}
        for path, each in said:
            if each.kind == FILE and (each.line is not None or path not in taken):
                taken.add(path)
                yield each
        if "`" in text:
            for match in _TICKED.finditer(text):
                spelled = match[1].strip()
                if spelled not in taken and _SYMBOL.fullmatch(spelled):
                    yield from _symbol("mentions", spelled)
        yield from (each for written, each in said if each.kind == SYMBOL and written not in taken)

    def _said(self, text: str) -> list[Said]:
        """Codes, paths and names that stand alone. None holds a blank, and a blank ends one as the text's end does."""
        return [each for found in map(self._words.__getitem__, text.split()) for each in found]

    def _headings(self, chunk: Chunk, text: str) -> Iterator[Reference]:
        """Symbols that the heading of a section names: the section is about them."""
        if not chunk.corpus_type.startswith("DOC"):
            return
        first = _HEADING.match(text)
        line = first[1] if first else (chunk.section_path or "").rpartition(" > ")[2]
        if "`" in line:
            for match in _TICKED.finditer(line):
                if _SYMBOL.fullmatch(match[1].strip()):
                    yield from _symbol("documents", match[1].strip())
        for _, each in self._said(line):
            if each.kind == SYMBOL:
                yield each._replace(relation="documents")


class _Memory(dict[str, tuple[_T, ...]]):
    """Computes what it misses, and is emptied when full."""

    def __init__(self, compute: Callable[[str], Iterable[_T]]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: str) -> tuple[_T, ...]:
        value = tuple(self._compute(key))
        if len(key) <= LONGEST_KEPT_CHARS:
            if len(self) >= MEMORY_LIMIT:
                self.clear()
            self[key] = value
        return value


def _said(word: str) -> Iterator[Said]:
    if word.isalpha() and word.islower():
        return
    for match in CODE_PATTERN.finditer(word):
        yield match[0], Reference("mentions", CODE, match[0], match[0])
    for match in _PATH.finditer(word):
        path = match[0].partition(":")[0]
        line = int(match[1]) if match[1] else None
        yield path, Reference("mentions", FILE, path.rpartition("/")[2], path, line=line)
    for match in _BARE.finditer(word):
        for each in _symbol("mentions", match[0]):
            yield match[0], each


def _called(spelled: str) -> list[Reference]:
    parts = [part for part in name_parts(spelled.partition("(")[0]) if part]
    if not parts or (len(parts) == 1 and common(parts[-1])):
        return []
    return [Reference("calls", SYMBOL, parts[-1], ".".join(parts), exact=len(parts) > 1)]


def _imported(spelled: str) -> Iterator[Reference]:
    for path in import_paths(spelled):
        yield Reference("imports", MODULE, path.rstrip("/").rpartition("/")[2], path)


def _runs(chunk: Chunk) -> bool:
    """Whether it starts a program, and does not merely lead to one or bound it."""
    return chunk.symbol_kind in _WORKLOADS or (chunk.symbol_kind is None and chunk.language == "dockerfile")


def import_paths(spelled: str) -> Iterator[str]:
    """What an import statement, or the module it names, leads to, as paths without extension; relative ones as such."""
    quoted = _IMPORTED.findall(spelled)
    words = quoted or [word.strip(",;") for word in _WORD.findall(spelled)]
    names = [word for word in words if word and word not in _IMPORT_WORDS]
    if "from" in words and "import" in words and not quoted and len(names) > 1:
        names = [
            names[0],
            *(f"{names[0]}.{each}" if not names[0].endswith(".") else names[0] + each for each in names[1:]),
        ]
    for name in names:
        if name.startswith(("./", "../", "/")) or "/" in name:
            yield re.sub(r"\.(?:[cm]?[jt]sx?|py|h|hpp|vue|svelte)$", "", name)
        elif name.startswith("."):  # Python: one dot is this folder, each further one leads up
            bare = name.lstrip(".")
            yield "./" + "../" * (len(name) - len(bare) - 1) + bare.replace(".", "/")
        elif cleaned := name.replace("::", "/").replace("\\", "/").replace(".", "/").strip("/*"):
            yield cleaned.removeprefix("crate/").removeprefix("self/")


def _symbol(relation: str, spelled: str) -> Iterator[Reference]:
    parts = [part for part in name_parts(spelled.partition("(")[0]) if part]
    if parts and (len(parts) > 1 or (len(parts[0]) >= SHORTEST_PLAIN and not common(parts[0]))):
        yield Reference(relation, SYMBOL, parts[-1], ".".join(parts))


def _links(text: str) -> Iterator[Reference]:
    found = [match[1] for match in _LINK.finditer(text)]
    if "`" in text:
        found += [match[1] or match[2] for match in _RST.finditer(text)]
    if "href" in text.lower():
        found += [match[1] for match in _HREF.finditer(text)]
    for address in found:
        path, _, anchor = unquote(address).partition("#")
        if path and ":" not in path and not path.startswith("//"):
            name = path.rstrip("/").rpartition("/")[2]
            yield Reference("references", FILE, name, path, anchor=anchor)


def common(name: str) -> bool:
    return len(name) < 3 or name.lower() in COMMON_NAMES


def joined_path(folder: str, path: str) -> str | None:
    """A path as written in a file of this folder, inside the source; None when it leads out of it."""
    joined = posixpath.normpath(posixpath.join(folder, path)) if not path.startswith("/") else path.lstrip("/")
    return None if joined.startswith("..") else joined.removeprefix("./")
