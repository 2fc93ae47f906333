"""Text goes in; the same text without its secrets comes out, line for line, and how many were taken out.

Secrets are never stored: not in a chunk, not in a summary, not in a hash of either. What only names a secret, as
`${DB_PASSWORD}` or a variable, stays. Private keys, passwords in addresses and tokens are known by their form, other
secrets by the name they are given to.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from dowse.ingest.privacy.looks import looks_for, may_hold
from dowse.ingest.sources.content import SNIFF_BYTES
from dowse.ports import SourceFile

MASK = "[masked]"
LONGEST_KEY_CHARS = 20_000  # chosen: a private key of 16,384 bits has 13,000
LONGEST_SECRET_CHARS = 512  # chosen
SHORTEST_SECRET_CHARS = 6  # chosen: what is shorter is a word
SHORTEST_BARE_CHARS = 8  # chosen: without quotes, a short value is a name


@dataclass(frozen=True)
class _Form:
    """A secret that is known by its form: what it begins with, and what follows."""

    starts: tuple[str, ...]
    rest: re.Pattern[str]  # what follows a start; the group `secret`, or all of it with the start, is masked


def _form(starts: str, rest: str) -> _Form:
    return _Form(tuple(starts.split()), re.compile(rest))


_FORMS = (
    _form("AKIA ASIA", r"[0-9A-Z]{16}\b"),
    _form("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,255}"),
    _form("github_pat_", r"[A-Za-z0-9_]{30,255}"),
    _form("glpat-", r"[A-Za-z0-9_-]{16,64}"),
    _form("xox", r"[abeoprs]-[A-Za-z0-9-]{10,255}"),
    _form("hooks.slack.com/", r"(?:services|workflows)/(?P<secret>[A-Za-z0-9_/+-]{16,128})"),
    _form("sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,255}"),
    _form("sk-", r"(?=[A-Za-z0-9_-]{0,64}[0-9])[A-Za-z0-9_-]{20,255}"),
    _form("AIza", r"[A-Za-z0-9_-]{35}"),
    _form("ya29.", r"[A-Za-z0-9_-]{20,512}"),
    _form("eyJ", r"[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,2048}"),
    _form("npm_", r"[A-Za-z0-9]{36}\b"),
    _form("SG.", r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    _form("hf_", r"(?=[A-Za-z]{0,32}[0-9])[A-Za-z0-9]{30,64}\b"),
    _form("dop_v1_", r"[a-f0-9]{64}\b"),
    _form("AccountKey SharedAccessKey", r"=(?P<secret>[A-Za-z0-9+/]{32,128}={0,2})"),
    _form("Bearer bearer BEARER", r"\s{1,4}(?P<secret>(?=\S{0,64}[0-9])[A-Za-z0-9._~+/-]{16,2048}=*)"),
    _form("Basic basic BASIC", r"\s{1,4}(?P<secret>(?=\S{0,64}[0-9])[A-Za-z0-9+/]{12,512}={0,2})(?![\w-])"),
)
_STARTS = looks_for(start for form in _FORMS for start in form.starts)
# A password in an address; the user's name before it may be empty.
_ADDRESS = re.compile(r"://(?P<user>[^\s/:@\"'<>`]{0,128}):(?P<secret>[^\s/@\"'<>`]{1,256})@")

# What a name of a secret ends with, and for the bare `key` what must stand before it. Found by plain search,
# too: one pattern over everything read 2.8 MB a second.
_ENDINGS = looks_for(("password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "key"))
_KINDS_OF_KEY = tuple(kind + joint for kind in ("api", "access", "private", "secret") for joint in ("", "_", "-"))
_GIVEN = re.compile(
    r"(?:(?<=credential)s)?[0-9]{0,2}(?P<close>\\?[\"']?\]?)(?P<sep>[ \t]{0,16}(?::=|=>|[:=])[ \t]{0,16})"
    r"(?:(?P<quote>\\?[\"'`])(?P<quoted>[^\"'`\n\\]{0,512})(?P=quote)|(?P<bare>[^\s\"'`,;(){}<>\[\]|&\\]{1,512}))"
)
_FLAG = re.compile(
    r"--(?:password|passwd|token|secret|api-key|access-key)(?:=| (?=\S{0,64}[0-9]))(?P<secret>[^\s\"'`$<{(\[]{6,512})"
)
# What stands for a secret without being one: a reference, a placeholder, a type, an ellipsis.
_REFERENCE = re.compile(
    r"[$%{<*#&!\[(]|.*(?:\$\{|\$\(|\{\{|\}\}|%\(|\.\.\.|…|://)|(?:vault|arn|ref|env|file|secretsmanager|op):"
    r"|(?:your|my|the|some|insert|replace|change|enter|add)[-_ ]?"
    r"(?:own|me|this|it|here|your|the|api|token|password|secret|key)"
    r"|(?:none|null|nil|true|false|undefined|todo|string|required|optional|redacted|hidden|removed|masked)\b",
    re.IGNORECASE,
)
_OWN_WORD = re.compile(r"[a-z_.\-/ ]*(?:passw|passphrase|pwd|secret|token|credential|key)[a-z_.\-/ ]*", re.IGNORECASE)
_PLACEHOLDERS = frozenset(("pass", "password", "passwd", "pwd", "secret", "token", "user", "key"))
_PASSWORD = re.compile(r"pass|pwd", re.IGNORECASE)
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{24}")  # without it, the text speaks of keys and holds none
_KEY_RUN = re.compile(r"^[A-Za-z0-9+/=]{40,80}(?:\n[A-Za-z0-9+/=]{4,80})+$", re.MULTILINE)
_KEY_LINES = re.compile(r"(?:\s*[A-Za-z0-9+/=]{16,}\s*(?:\\n)?)*")
_SECRET_KIND = re.compile(r"^kind:[ \t]*[\"']?Secret\b", re.MULTILINE)
_SECRET_DATA = re.compile(r"(?:data|stringData):[ \t]*(?:#.*)?$")
_SECRET_VALUE = re.compile(r"(?P<key>[ \t]+[\w.\"'/-]+:[ \t]+)(?P<value>\S.*)$")


def mask(text: str) -> tuple[str, int]:
    """The text without its secrets, and how many there were. Lines stay where they are."""
    count = 0
    if "PRIVATE KEY" in text:
        text, count = _without_keys(text)
    if "Secret" in text and _SECRET_KIND.search(text):
        text, more = _without_secret_data(text)
        count += more
    if "://" in text and "@" in text:
        text, more = _replaced(text, _ADDRESS)
        count += more
    # Looked for once: where something is masked, none of them comes to be.
    if starts := frozenset(may_hold(text, _STARTS)):
        for form in _FORMS:
            if spans := _of_form(text, form, starts):
                text, more = _spliced(text, sorted(spans))
                count += more
    text, more = _without_given(text)
    if "--" in text:
        text, flags = _replaced(text, _FLAG)
        more += flags
    return text, count + more


def mask_key_lines(text: str) -> tuple[str, int]:
    """Lines of base64 that follow each other: what a private key is when its BEGIN stands in another chunk."""
    return _spliced(text, (found.span() for found in _KEY_RUN.finditer(text)))


def masked_file(file: SourceFile) -> tuple[SourceFile, int]:
    """The file as a reader may see it. One that is no plain text comes out as it is: its text is masked once read.

    Latin-1 gives every byte a character and back, so that no byte but those of a secret changes in any encoding
    that keeps ASCII.
    """
    if b"\0" in file.data[:SNIFF_BYTES]:
        return file, 0
    text, count = mask(file.data.decode("latin-1"))
    return (replace(file, data=text.encode("latin-1")), count) if count else (file, 0)


def _replaced(text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    return _spliced(text, (m.span("secret") for m in pattern.finditer(text) if not _stands_for(m["secret"])))


def _of_form(text: str, form: _Form, possible: Container[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start in form.starts:
        at = text.find(start) if start in possible else -1
        while at >= 0:
            end = at + len(start)
            # Inside a longer word it is a part of that word: `task-…`, `risk-…`.
            if not text[at - 1 : at].isalnum() and (found := form.rest.match(text, end)):
                named = "secret" in form.rest.groupindex
                spans.append(found.span("secret") if named else (at, found.end()))
                end = found.end()
            at = text.find(start, end)
    return spans


def _spliced(text: str, spans: Iterable[tuple[int, int]]) -> tuple[str, int]:
    """With a mask in the place of each span, as many lines long as the span."""
    parts: list[str] = []
    done = count = 0
    for start, stop in spans:
        parts += [text[done:start], MASK, "\n" * text.count("\n", start, stop)]
        done = stop
        count += 1
    return ("".join((*parts, text[done:])), count) if count else (text, 0)


def _stands_for(value: str) -> bool:
    return bool(_REFERENCE.match(value)) or len(set(value)) <= 2 or value.lower() in _PLACEHOLDERS


def _without_keys(text: str) -> tuple[str, int]:
    """Between BEGIN and END of a private key; without an END, the lines that look like one."""
    spans: list[tuple[int, int]] = []
    for begin in _BEGIN.finditer(text):
        if spans and begin.start() < spans[-1][1]:
            continue
        stop = text.find("-----END", begin.end(), begin.end() + LONGEST_KEY_CHARS)
        if stop < 0:
            found = _KEY_LINES.match(text, begin.end(), begin.end() + LONGEST_KEY_CHARS)
            stop = found.end() if found else begin.end()
        if _KEY_BODY.search(text, begin.end(), stop):
            spans.append((begin.end(), stop))
    return _spliced(text, spans)


def _without_given(text: str) -> tuple[str, int]:
    """Values that are given to a name such as `password`."""
    spans: list[tuple[int, int]] = []
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters have a longer lower case
        lowered = "".join(char.lower() if char.isascii() else char for char in text)
    for ending in may_hold(lowered, _ENDINGS):
        at = lowered.find(ending)
        while at >= 0:
            end = at + len(ending)
            if (found := _GIVEN.match(text, end)) and (ending != "key" or lowered.endswith(_KINDS_OF_KEY, 0, at)):
                spans += _secret_span(text, text[at:end], found)
            at = lowered.find(ending, end)
    return _spliced(text, sorted(spans))


def _secret_span(text: str, word: str, found: re.Match[str]) -> list[tuple[int, int]]:
    """Where the value is, if it is a secret."""
    if found["quoted"] is not None:
        return [found.span("quoted")] if _is_secret(found["quoted"], word) else []
    return [found.span("bare")] if _is_bare_secret(text, word, found) else []


def _is_secret(value: str, word: str) -> bool:
    """Whether a quoted value is more than a word: it has a digit, or it is a password, or it is long and mixed."""
    if len(value) < SHORTEST_SECRET_CHARS or " " in value.strip() or _stands_for(value) or _OWN_WORD.fullmatch(value):
        return False
    if any(char.isdigit() for char in value):
        return True
    if _PASSWORD.search(word):
        return True
    return len(value) >= 20 and value != value.lower() and value != value.upper()


def _is_bare_secret(text: str, word: str, found: re.Match[str]) -> bool:
    """A value without quotes. In code that is a variable, so it must look like no name, or the line like a setting."""
    value, end = found["bare"], found.end("bare")
    if len(value) < SHORTEST_BARE_CHARS or _stands_for(value) or text[end : end + 1] in ("(", "[", "{", "<"):
        return False
    setting = found["sep"] == "=" and not found["close"]  # NAME=value, as a shell or a properties file writes it
    if setting and (word.isupper() or text[end : end + 1] in ("", "\n")):
        return _is_secret(value, word)
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return mixed and "." not in value and text[end : end + 1] in ("", "\n", " ", "\r") and _is_secret(value, "token")


def _without_secret_data(text: str) -> tuple[str, int]:
    """Every value below `data` and `stringData` of a Kubernetes Secret, by its lines: a template need not be YAML."""
    lines = text.split("\n")
    count = 0
    first = 0
    for at in [*(i for i, line in enumerate(lines) if line.startswith("---")), len(lines)]:
        if any(_SECRET_KIND.match(line) for line in lines[first:at]):
            count += _mask_data(lines, first, at)
        first = at
    return "\n".join(lines), count


def _mask_data(lines: list[str], first: int, stop: int) -> int:
    """Changes the lines of one resource; the number of values that went."""
    count = 0
    inside = False
    block = -1  # the indentation of a key whose value is a block of lines
    for at in range(first, stop):
        line = lines[at]
        if not line[:1].isspace() and line.strip():
            inside = bool(_SECRET_DATA.match(line))
            block = -1
            continue
        if not inside or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if 0 <= block < indent:
            lines[at] = " " * indent + MASK
            continue
        found = _SECRET_VALUE.match(line)
        block = indent if found and found["value"][0] in "|>" else -1
        if found and not _REFERENCE.match(found["value"].strip("\"'")):
            lines[at] = found["key"] + (found["value"] if block >= 0 else MASK)
            count += 1
    return count
