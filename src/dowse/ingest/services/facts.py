"""Facts about services in code and settings: the services that a document uses and offers.

Only evidence of a client counts: an address passed to an HTTP client, a gRPC stub, the name of a variable that holds an
address. A link in a comment or a text is not a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from dowse.ingest.privacy.secret_forms import literal_prefilters, possible_literals
from dowse.ingest.services.addresses import (
    PORTS,
    Address,
    addresses,
    bare_addresses,
    digest,
    host_alone,
    short,
)
from dowse.types import Chunk, CorpusType, Document, ServiceFact

_TESTS = re.compile(r"(?:^|[/_.-])(?:tests?|spec|specs|e2e|mocks?|fixtures?|examples?|testdata|__tests__)(?:[/_.-]|$)")
_VARIABLE = re.compile(
    r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:URL|URI|URLS|ADDR|ADDRS|ADDRESS|ENDPOINT|DSN|SERVERS?|BROKERS?|HOSTS?|HOSTNAME)\b"
)
_ENDINGS = ("_UR", "_ADDR", "_ENDPOINT", "_DSN", "_SERVER", "_BROKER", "_HOST")  # parts of the names above
# A string that begins with an address.
_LITERAL = re.compile(r"[\"'`](?P<address>[a-z][a-z0-9+.:-]{1,24}://[^\s\"'`]{3,300})")
_HTTP_CLIENT = re.compile(
    r"\b(?:fetch|axios|got|ky|superagent|requests|httpx|aiohttp|urlopen|urllib3?|session|client|http\.(?:Get|Post|Head"
    r"|NewRequest\w*)|resty|reqwest|HttpClient|HttpRequest|RestTemplate|RestClient|WebClient|OkHttp\w*|Faraday|HTTParty"
    r"|Net::HTTP|Guzzle\w*|curl\w*|base_?url|baseURL|BaseAddress)\b",
    re.IGNORECASE,
)
# Stubs and servers of gRPC, as the generators of the common languages name them.
_STUB = re.compile(
    r"\b(?:\w+\.)?(?P<python>[A-Z]\w*?)Stub\(\s*\w|\bNew(?P<go>[A-Z]\w*?)Client\((?=[^)]*(?:conn|cc|client|channel))"
    r"|\b(?P<java>[A-Z]\w*?)Grpc\.new(?:Blocking|Future|Reactor)?\w*Stub\(|\bnew\s+[\w.]*\.(?P<js>[A-Z]\w*)\("
    r"(?=[^;]{0,120}credentials)|\b(?P<rust>[A-Z]\w*?)Client::connect\("
)
_OFFER = re.compile(
    r"\bRegister(?P<go>[A-Z]\w*?)Server\(|\badd_(?P<python>[A-Z]\w*?)Servicer_to_server\("
    r"|\bextends\s+(?P<java>[A-Z]\w*?)Grpc\.\w+ImplBase|\.addService\(\s*[\w.]*?(?P<js>[A-Z]\w*?)(?:\.service|Service\b)"
    r"|\b(?P<rust>[A-Z]\w*?)Server::new\("
)
_STUB_MARKS = ("Stub", "Client", "credentials")
_OFFER_MARKS = ("Server", "ImplBase", "addService")
_PREFILTERS = literal_prefilters((*_ENDINGS, "://", *_STUB_MARKS, *_OFFER_MARKS))  # each fact contains one
_CODE = (CorpusType.CODE_LOGIC.value, CorpusType.CODE_CONFIG.value)


def with_facts(document: Document) -> Document:
    """Add the facts of code, except tests and examples, which call services the program does not use."""
    chunks = [chunk for chunk in document.chunks if chunk.level == "chunk"]
    if not chunks or chunks[0].corpus_type not in _CODE or _TESTS.search(document.path.lower()):
        return document
    # All chunks are searched at once first, which takes a third of the time.
    text = "\n".join([chunk.text for chunk in chunks])
    held = [mark for mark in possible_literals(text, _PREFILTERS) if mark in text]
    facts = [
        replace(
            fact,
            service=chunk.service_name or "",
            chunk_id=chunk.id,
            place=f"{chunk.file_path}:{(chunk.start_line or 1) + int(fact.place)}",
            repo=chunk.repo_name or document.source,
        )
        for chunk in chunks
        if _holds(chunk.text, held)
        for fact in _first_lines(_facts(chunk))
    ]
    return replace(document, facts=(*document.facts, *facts)) if facts else document


def _first_lines(facts: Iterable[ServiceFact]) -> Iterable[ServiceFact]:
    """Return each fact once, on the first line that shows it."""
    return {replace(fact, place=""): fact for fact in sorted(facts, key=lambda each: -int(each.place))}.values()


def _facts(chunk: Chunk) -> Iterator[ServiceFact]:
    """Yield facts with their lines, counted from 0 at the start of the chunk."""
    text = chunk.text
    language = (chunk.language or "") if chunk.corpus_type == CorpusType.CODE_LOGIC else ""
    if _holds(text, _ENDINGS):  # far faster than the pattern, and false for most texts
        for found in _VARIABLE.finditer(text):
            yield ServiceFact("reads", name=found[0], language=language, place=_line(text, found))
    if "://" in text:
        yield from _literals(text, language)
    for kind, marks, pattern in (("stub", _STUB_MARKS, _STUB), ("offers", _OFFER_MARKS, _OFFER)):
        for found in pattern.finditer(text) if _holds(text, marks) else ():
            name = found[found.lastgroup or 0]
            if len(name) > 2:
                name, line = name.removesuffix("Service"), _line(text, found)
                yield ServiceFact(kind, name=name, type="grpc", language=language, place=line)


def _line(text: str, found: re.Match[str]) -> str:
    return str(text.count("\n", 0, found.start()))


def _holds(text: str, marks: Iterable[str]) -> bool:
    return any([mark in text for mark in marks])  # a list is faster than a generator here


def _literals(text: str, language: str) -> Iterator[ServiceFact]:
    """Yield addresses in strings: `calls` if the line creates a client, else `names`."""
    for found in _LITERAL.finditer(text):
        start = text.rfind("\n", 0, found.start()) + 1
        stop = text.find("\n", found.end())
        line = text[start : min(stop if stop >= 0 else len(text), start + 400)]
        if line.lstrip().startswith(("//", "#", "*", "/*", "--", "import ", "from ", "package ")):
            continue
        kind = "calls" if _HTTP_CLIENT.search(line) else "names"
        for address in addresses(found["address"]):
            yield ServiceFact(
                kind, "", address.host, str(address), address.type, "", _line(text, found), "", "", language
            )


# Last word of settings that hold an address; `_NAME`, `_PATH` and the like do not.
_ENDS = (
    "URL|URI|URLS|ADDR|ADDRS|ADDRESS|ADDRESSES|ENDPOINT|ENDPOINTS|DSN|SERVER|SERVERS|BROKER|BROKERS|TARGET|UPSTREAM"
    "|BASE|HOST|HOSTS|HOSTNAME|SERVICE"
)
HOLDS_ADDRESS = re.compile(rf"(?:.*[_.-])?(?:{_ENDS})", re.IGNORECASE)
_HOLDS_HOST = re.compile(r"(?:.*[_.-])?(?:HOST|HOSTS|HOSTNAME|SERVER|ADDR|ADDRESS)", re.IGNORECASE)


class Setting(NamedTuple):
    """Variable that a manifest sets."""

    name: str
    value: str
    line: int  # of the file, from 0
    hidden: bool = False  # the value is from an environment file and must not be stored


def environment_facts(service: str, settings: Iterable[Setting]) -> tuple[ServiceFact, ...]:
    """Make facts of variables that a manifest sets for a service: it connects to every address in them."""
    return tuple(_fact("sets", service, each, address) for each in settings for address in _pointed_at(each))


def config_facts(service: str, settings: Iterable[Setting]) -> tuple[ServiceFact, ...]:
    """Make facts of a settings file; its addresses may be mere links, which the graph decides."""
    return tuple(_fact("names", service, each, address) for each in settings for address in addresses(each.value))


def hosts(facts: Iterable[ServiceFact]) -> tuple[str, ...]:
    """Return the hosts in settings, each once, for `calls_out` of the chunk."""
    shown = (each.value for each in facts if each.kind == "sets" and not each.value.startswith("#"))
    return tuple(dict.fromkeys(short(value.partition(":")[0]) for value in shown))


def _pointed_at(setting: Setting) -> tuple[Address, ...]:
    if found := addresses(setting.value):
        return found
    holds_address = HOLDS_ADDRESS.fullmatch(setting.name)
    if holds_address and (bare := bare_addresses(setting.value)):
        return bare
    # A hidden host counts only if it is a known service, so more names may hold one.
    pattern = holds_address if setting.hidden else _HOLDS_HOST.fullmatch(setting.name)
    return host_alone(setting.value) if pattern else ()


def _fact(kind: str, service: str, setting: Setting, address: Address) -> ServiceFact:
    value, type_ = str(address), address.type
    if setting.hidden:
        value, type_ = digest(address.host), type_ or PORTS.get(address.port or 0, "")
    return ServiceFact(kind, service, setting.name, value, type_, place=str(setting.line + 1))
