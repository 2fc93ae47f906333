"""A document of code goes in; what it says of the services it uses and offers comes out as facts.

Only what a client is made of counts: an address given to an HTTP client, a gRPC stub, the name of a variable that
holds an address. A link in a comment or a text is no call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dowse.ingest.privacy.looks import looks_for, may_hold
from dowse.ingest.services.addresses import addresses
from dowse.types import Chunk, CorpusType, Document, ServiceFact

_TESTS = re.compile(r"(?:^|[/_.-])(?:tests?|spec|specs|e2e|mocks?|fixtures?|examples?|testdata|__tests__)(?:[/_.-]|$)")
_VARIABLE = re.compile(
    r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:URL|URI|URLS|ADDR|ADDRS|ADDRESS|ENDPOINT|DSN|SERVERS?|BROKERS?|HOSTS?|HOSTNAME)\b"
)
_ENDINGS = ("_UR", "_ADDR", "_ENDPOINT", "_DSN", "_SERVER", "_BROKER", "_HOST")  # what those hold, in short
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
_LOOKS = looks_for((*_ENDINGS, "://", *_STUB_MARKS, *_OFFER_MARKS))  # without any of these, there is no fact
_CODE = (CorpusType.CODE_LOGIC.value, CorpusType.CODE_CONFIG.value)


def with_facts(document: Document) -> Document:
    """With the facts of its code. Tests and examples call many things that the service never will."""
    chunks = [chunk for chunk in document.chunks if chunk.level == "chunk"]
    if not chunks or chunks[0].corpus_type not in _CODE or _TESTS.search(document.path.lower()):
        return document
    # All chunks are looked through at once, and by themselves for what is there: a third of the time.
    together = "\n".join([chunk.text for chunk in chunks])
    held = [mark for mark in may_hold(together, _LOOKS) if mark in together]
    facts = [
        replace(fact, service=chunk.service_name or "", chunk_id=chunk.id, place=_place(chunk), repo=document.source)
        for chunk in chunks
        if _holds(chunk.text, held)
        for fact in dict.fromkeys(_facts(chunk))
    ]
    return replace(document, facts=(*document.facts, *facts)) if facts else document


def _place(chunk: Chunk) -> str:
    return f"{chunk.file_path}:{chunk.start_line}"


def _facts(chunk: Chunk) -> Iterator[ServiceFact]:
    text = chunk.text
    language = (chunk.language or "") if chunk.corpus_type == CorpusType.CODE_LOGIC else ""
    if _holds(text, _ENDINGS):  # far faster than a pattern, and most texts hold none
        for found in _VARIABLE.findall(text):
            yield ServiceFact("reads", name=found, language=language)
    if "://" in text:
        yield from _literals(text, language)
    if _holds(text, _STUB_MARKS):
        for name in _named(_STUB, text):
            yield ServiceFact("stub", name=name, type="grpc", language=language)
    if _holds(text, _OFFER_MARKS):
        for name in _named(_OFFER, text):
            yield ServiceFact("offers", name=name, type="grpc", language=language)


def _holds(text: str, marks: Iterable[str]) -> bool:
    return any([mark in text for mark in marks])  # a list: fewer steps than a generator's, though it looks for all


def _literals(text: str, language: str) -> Iterator[ServiceFact]:
    """Addresses in strings: `calls` where the same line makes a client, `names` elsewhere."""
    for found in _LITERAL.finditer(text):
        start = text.rfind("\n", 0, found.start()) + 1
        stop = text.find("\n", found.end())
        line = text[start : min(stop if stop >= 0 else len(text), start + 400)]
        if line.lstrip().startswith(("//", "#", "*", "/*", "--", "import ", "from ", "package ")):
            continue
        kind = "calls" if _HTTP_CLIENT.search(line) else "names"
        for address in addresses(found["address"]):
            value = address.host if address.port is None else f"{address.host}:{address.port}"
            yield ServiceFact(kind, name=address.host, value=value, type=address.type, language=language)


def _named(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for found in pattern.finditer(text):
        name = next((each for each in found.groups() if each), "")
        if len(name) > 2:
            yield name.removesuffix("Service")
