"""TargetReference extraction: calls, imports, links, names, paths and codes that a chunk mentions."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from dowse.link_names import CODE, CODE_PATTERN, FILE, MODULE, SERVICE, SYMBOL, THREAD, name_parts, thread_name
from dowse.types import Chunk

MOST_REFERENCES = 64  # a chunk; chosen: a longer table would link everything to everything
SHORTEST_PLAIN = 4  # letters of an unqualified name; chosen: shorter ones are words
MEMO_WORDS = 100_000  # chosen: those of a large tree, in some 30 MB
LONGEST_MEMO_CHARS = 200  # of a cached word; chosen: longer ones are data
LONGEST_TEXT_CHARS = 20_000  # chosen: ten times a long chunk
WEIGHTS = {
    # chosen: the surer that one end explains the other, the higher
    "calls": 0.8, "documents": 0.9, "replies_to": 0.9, "deploys": 0.8, "references": 0.7, "imports": 0.6,
    "mentions": 0.6,
}  # fmt: skip
SERVICE_WEIGHT = 0.4  # of a mention; lower, because a service is large


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names that many files define and call: the name alone does not identify the target.
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


class TargetReference(NamedTuple):
    """Mention of a target in a chunk. A tuple, because there are very many."""

    relation: str
    kind: str  # as in `link_names`
    name: str  # to look up
    spelled: str  # as written: path, qualified name, import
    line: int | None = None  # of the target file
    anchor: str = ""
    exact: bool = True  # False: the name may be a common word


Mention = tuple[str, TargetReference]  # as written, and its meaning


class ReferenceExtractor:
    """Extracts the references of chunks. Words, calls and imports repeat, so each is analysed once."""

    def __init__(self) -> None:
        self._words = lru_cache(MEMO_WORDS)(_mentions)
        self._calls = lru_cache(MEMO_WORDS)(_called)
        self._imports = lru_cache(MEMO_WORDS)(_imported)

    def references_of(self, chunk: Chunk) -> list[TargetReference]:
        """Return each reference once, the surest first, at most MOST_REFERENCES."""
        if chunk.level != "chunk":
            return []
        found = self._code(chunk) if chunk.corpus_type.startswith("CODE") else list(self._prose(chunk))
        if chunk.thread_id:
            found.append(TargetReference("replies_to", THREAD, thread_name(chunk), chunk.thread_id))
        return list(dict.fromkeys(found))[:MOST_REFERENCES] if len(found) > 1 else found

    def _code(self, chunk: Chunk) -> list[TargetReference]:
        found = [reference for spelled in chunk.calls_out for reference in self._calls(spelled)]
        found += [reference for spelled in chunk.imports for reference in self._imports(spelled)]
        # A workload or an image starts a program; other resources only lead to one.
        runs = chunk.symbol_kind in _WORKLOADS or (chunk.symbol_kind is None and chunk.language == "dockerfile")
        if chunk.corpus_type == "CODE_DEPLOY" and chunk.service_name and runs:
            found.append(TargetReference("deploys", SERVICE, chunk.service_name, chunk.service_name))
        return found

    def _prose(self, chunk: Chunk) -> Iterator[TargetReference]:
        text = chunk.text[:LONGEST_TEXT_CHARS]
        if chunk.corpus_type.startswith("DOC"):  # symbols in the heading of a section: it documents them
            first = _HEADING.match(text)
            line = first[1] if first else (chunk.section_path or "").rpartition(" > ")[2]
            yield from _ticked("documents", line, ())
            yield from (each._replace(relation="documents") for _, each in self._mentions(line) if each.kind == SYMBOL)
        links = list(_links(text))
        yield from links
        if "ADR" in text:
            for match in _ADR.finditer(text):
                yield TargetReference("mentions", CODE, f"ADR-{match[1]}", match[0])
        mentions = self._mentions(text)
        yield from (each for _, each in mentions if each.kind == CODE)
        taken = {link.spelled for link in links}
        for path, each in mentions:
            if each.kind == FILE and (each.line is not None or path not in taken):
                taken.add(path)
                yield each
        yield from _ticked("mentions", text, taken)
        yield from (each for written, each in mentions if each.kind == SYMBOL and written not in taken)

    def _mentions(self, text: str) -> list[Mention]:
        """Return codes, paths and names of a text, word by word: none contains a blank."""
        words = text.split()
        return [
            each
            for word in words
            for each in (self._words(word) if len(word) <= LONGEST_MEMO_CHARS else _mentions(word))
        ]


def _mentions(word: str) -> list[Mention]:
    if word.isalpha() and word.islower():
        return []
    codes = CODE_PATTERN.findall(word)
    found = [(code, TargetReference("mentions", CODE, code, code)) for code in codes]
    for match in _PATH.finditer(word):
        path = match[0].partition(":")[0]
        line = int(match[1]) if match[1] else None
        found.append((path, TargetReference("mentions", FILE, path.rpartition("/")[2], path, line=line)))
    return found + [(name, each) for name in _BARE.findall(word) for each in _symbol("mentions", name)]


def _called(spelled: str) -> list[TargetReference]:
    parts = [part for part in name_parts(spelled.partition("(")[0]) if part]
    if not parts or (len(parts) == 1 and common(parts[-1])):
        return []
    return [TargetReference("calls", SYMBOL, parts[-1], ".".join(parts), exact=len(parts) > 1)]


def _imported(spelled: str) -> list[TargetReference]:
    paths = import_paths(spelled)
    return [TargetReference("imports", MODULE, path.rstrip("/").rpartition("/")[2], path) for path in paths]


def import_paths(spelled: str) -> Iterator[str]:
    """Yield the paths of an import statement or a module name, without extension."""
    quoted = _IMPORTED.findall(spelled)
    words = quoted or [word.strip(",;") for word in _WORD.findall(spelled)]
    names = [word for word in words if word and word not in _IMPORT_WORDS]
    if "from" in words and "import" in words and not quoted and len(names) > 1:
        package = names[0] if names[0].endswith(".") else f"{names[0]}."
        names = [names[0], *(package + each for each in names[1:])]
    for name in names:
        if name.startswith(("./", "../", "/")) or "/" in name:
            yield re.sub(r"\.(?:[cm]?[jt]sx?|py|h|hpp|vue|svelte)$", "", name)
        elif name.startswith("."):  # Python: one dot is this folder, each further one a folder up
            bare = name.lstrip(".")
            yield "./" + "../" * (len(name) - len(bare) - 1) + bare.replace(".", "/")
        elif cleaned := name.replace("::", "/").replace("\\", "/").replace(".", "/").strip("/*"):
            yield cleaned.removeprefix("crate/").removeprefix("self/")


def _symbol(relation: str, spelled: str) -> Iterator[TargetReference]:
    parts = [part for part in name_parts(spelled.partition("(")[0]) if part]
    if parts and (len(parts) > 1 or (len(parts[0]) >= SHORTEST_PLAIN and not common(parts[0]))):
        yield TargetReference(relation, SYMBOL, parts[-1], ".".join(parts))


def _ticked(relation: str, text: str, taken: Collection[str]) -> Iterator[TargetReference]:
    """Yield symbols in backticks."""
    for match in _TICKED.finditer(text):
        spelled = match[1].strip()
        if spelled not in taken and _SYMBOL.fullmatch(spelled):
            yield from _symbol(relation, spelled)


def _links(text: str) -> Iterator[TargetReference]:
    found = [match[1] for match in _LINK.finditer(text)]
    if "`" in text:
        found += [match[1] or match[2] for match in _RST.finditer(text)]
    if "href" in text.lower():
        found += [match[1] for match in _HREF.finditer(text)]
    for address in found:
        path, _, anchor = unquote(address).partition("#")
        if path and ":" not in path and not path.startswith("//"):
            name = path.rstrip("/").rpartition("/")[2]
            yield TargetReference("references", FILE, name, path, anchor=anchor)


def common(name: str) -> bool:
    return len(name) < 3 or name.lower() in COMMON_NAMES


def joined_path(folder: str, path: str) -> str | None:
    """Join a path written in a file of this folder; None if it leads out of the source."""
    joined = posixpath.normpath(posixpath.join(folder, path)) if not path.startswith("/") else path.lstrip("/")
    return None if joined.startswith("..") else joined.removeprefix("./")
