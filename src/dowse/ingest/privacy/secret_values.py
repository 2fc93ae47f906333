"""Values that a text gives to the name of a secret: `password = …`, in any language.

A value in quotes must be more than a word, one without quotes must not look like a variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dowse.ingest.privacy.secret_forms import literal_prefilters, possible_literals
from dowse.ingest.privacy.secret_lines import KINDS_OF_KEY, Span

SHORTEST_SECRET_CHARS = 6  # chosen: a shorter value is a word
SHORTEST_BARE_CHARS = 8  # chosen: without quotes, a short value is a name
LINE_CHARS = 200

# Endings of names of secrets, and the words that must precede a bare `key`. Found by plain search, because one
# pattern over everything reads only 2.8 MB/s.
_ENDINGS = literal_prefilters(
    (
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pass",
        "secret",
        "token",
        "credential",
        "creds",
        "key",
        "authorization",
        "securestring",
        "identified by",
    )
)
_KINDS_OF_KEY = tuple(kind + joint for kind in KINDS_OF_KEY for joint in ("", "_", "-"))
_GIVEN = re.compile(
    r"(?:(?<=credential)s)?[0-9]{0,2}(?P<close>\\?[\"']?\]?)"
    r"(?:[ \t]{0,4}:[ \t]{0,4}[&A-Za-z_][\w.\[\]| ?&']{0,40}?(?=[ \t]{0,4}=)"
    r"|[ \t]{1,4}[A-Za-z_][\w.*]{2,20}(?=[ \t]{1,4}=))?"
    r"(?P<sep>[ \t]{0,16}(?::=|=>|[:=])[ \t]{0,16})(?:&\w{1,40}[ \t]+)?(?:\([ \t]{0,8}\n?[ \t]{0,40})?"
    r"(?:[fbruFBRUL@$]{1,2}(?=[\"'`]))?"
    r"(?:(?P<quote>\\[\"'])(?P<escaped>[^\"'`\n\\]{0,512})(?P=quote)"
    r"|(?P<plain>\"\"\"|\'\'\'|[\"'`])\n?(?P<quoted>(?:\\.|(?!(?P=plain))[^\\\n]){0,512})\n?(?P=plain)"
    r"|[|>][+-]?[ \t]*\n[ \t]{1,40}(?P<block>\S{6,512})$"
    r"|(?P<bare>[^\s\"'`,;(){}<>\[\]|&\\]{1,512}))",
    re.MULTILINE,
)
# Other ways to give a value to a name: strings on the same line; in a table, an element or a sentence; lines below.
_DIGIT = re.compile("[0-9]")
_STRING = re.compile(r"[\"'`](?P<secret>[^\"'`\s\\]{7,128})[\"'`]")
_TOLD = re.compile(
    r"[\w.-]{0,20}[\"'`\])>*}]{0,4}(?:\s{0,8}[|>]\s{0,8}|</\w{1,40}>\s{0,8}<\w{1,20}>|[^>\n]{0,60}>"
    r"|\s{1,4}(?:is|=|=>|:)?\s{0,4}|[:=]{1,2}\s{0,4})(?:<!\[cdata\[)?(?P<secret>[^\s\"'`<>|,;(){}\[\]=]{7,128})",
    re.IGNORECASE,
)
_PAIRED = re.compile(r"\n\s{0,40}(?:- |[\"'<])?(?:value|default|content|string)", re.IGNORECASE)
_BELOW = re.compile(
    r"[^\n]{0,80}\n(?:[ \t]{1,40}[^\n]{0,60}\n){0,2}?[ \t]{0,40}(?:-[ \t])?[\"'<]?"
    r"(?:value|default|content|string)\w{0,10}[\"'>]?[ \t]{0,16}[:=]?[ \t]{0,8}[\"']?(?P<secret>[^\s\"'`<>]{7,128})"
    r"|[^\n]{0,8}[:=(\[\\][ \t]{0,4}\n[ \t]{0,40}(?:-[ \t])?[\"'](?P<item>[^\s\"'`<>]{7,128})[\"']",
    re.IGNORECASE,
)
# Names of methods, which are no passwords.
_METHOD = re.compile(
    r"(?:pbkdf|argon|scrypt|bcrypt|sha|md|hmac|base|utf|oauth|x509|http|pkcs|p12|aes|rsa|rfc|ed25519|python|v)[\w-]*[0-9]",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"[A-Za-z]+(?:_[A-Za-z0-9]+)+|[a-z]{1,5}[0-9]{1,2}|[A-Z][a-z]+[0-9]{0,2}")
# Values that are not secrets: a reference, a placeholder, a type, an ellipsis.
REFERENCE = re.compile(
    r"[$%{<*#&!\[(]|.*(?:\$\{|\$\(|\{\{|\}\}|%\(|\.\.\.|…|://)|(?:vault|arn|ref|env|file|secretsmanager|op):"
    r"|(?:your|my|the|some|insert|replace|change|enter|add)[-_ ]?"
    r"(?:own|me|this|it|here|your|the|api|token|password|secret|key)"
    r"|(?:none|null|nil|true|false|undefined|todo|string|required|optional|redacted|hidden|removed|masked)\b",
    re.IGNORECASE,
)
OWN_WORD = re.compile(r"[a-z_.\-/ ]*(?:passw|passphrase|pwd|secret|token|credential|key)[a-z_.\-/ ]*", re.IGNORECASE)
_PLACEHOLDERS = frozenset(("pass", "password", "passwd", "pwd", "secret", "token", "user", "key"))
_PASSWORD = re.compile(r"pass|pwd", re.IGNORECASE)


def given_values(text: str, lowered: str) -> Iterator[Span]:
    """Yield the values that are given to a name such as `password`."""
    for ending in possible_literals(lowered, _ENDINGS):
        at, seen = lowered.find(ending), 0  # a long line is looked at once, not for each name in it
        while at >= 0:
            end = at + len(ending)
            if not _is_name(text, at, end, ending):
                at = lowered.find(ending, end)
                continue
            if found := _GIVEN.match(text, end):
                word = text[at:end]
                group = next(name for name in ("escaped", "quoted", "block", "bare") if found[name] is not None)
                if _is_bare_secret(text, word, found) if group == "bare" else _is_secret(found[group], word):
                    yield found.span(group)
            yield from _near(text, at, end, seen)
            seen = end + LINE_CHARS // 2
            at = lowered.find(ending, end)


def _near(text: str, at: int, end: int, seen: int) -> Iterator[Span]:
    """Yield values that look chosen, on the line of a name and below it."""
    begin, stop = max(text.rfind("\n", 0, at) + 1, at - LINE_CHARS), text.find("\n", end)
    stop = min(len(text) if stop < 0 else stop, end + LINE_CHARS)
    if not _DIGIT.search(text, begin, stop + LINE_CHARS):
        return
    for found in _STRING.finditer(text, max(begin, seen if at - begin == LINE_CHARS else 0), stop):
        if not found.start() < at < found.end() and _is_chosen(found["secret"], quoted=True):
            yield found.span("secret")
    if (told := _TOLD.match(text, end)) and _is_chosen(told["secret"], quoted=False):
        yield told.span("secret")
    below = None
    if stop - end <= 80 and (text[stop - 1 : stop] in tuple(":=([\\") or _PAIRED.search(text, stop, stop + LINE_CHARS)):
        below = _BELOW.match(text, end)
    if below:
        group = "secret" if below["secret"] else "item"
        if _is_chosen(below[group], quoted=True):
            yield below.span(group)


def _is_name(text: str, at: int, end: int, ending: str) -> bool:
    """Test whether `pass` is a word of its own, as in `DB_PASS` and `userPass`, and a key one of a kind of secret."""
    if ending == "key":
        return text[max(0, at - 14) : at].lower().endswith(_KINDS_OF_KEY)
    if ending != "pass" or text[end - 11 : end] == "requirepass":
        return True
    return not text[end : end + 1].islower() and not (text[at].islower() and text[at - 1 : at].isalpha())


def _is_chosen(value: str, *, quoted: bool) -> bool:
    """Test whether a person may have chosen this value as a password: letters and digits, not a known word."""
    digits = sum(map(str.isdigit, value))
    if not digits or digits > len(value) - 2 or stands_for(value) or OWN_WORD.fullmatch(value) or _METHOD.match(value):
        return False
    if any(char in "./:\\" for char in value) or (not quoted and value[0] in "-+=@"):
        return False
    return quoted or not _VARIABLE.fullmatch(value)


def _is_secret(value: str, word: str) -> bool:
    """Test whether a quoted value is more than a word: with a digit, a password, or long and mixed."""
    if len(value) < SHORTEST_SECRET_CHARS or " " in value.strip() or stands_for(value) or OWN_WORD.fullmatch(value):
        return False
    if any(char.isdigit() for char in value) or _PASSWORD.search(word):
        return True
    return len(value) >= 20 and value != value.lower() and value != value.upper()


def _is_bare_secret(text: str, word: str, found: re.Match[str]) -> bool:
    """Test a value without quotes: in code it must not look like a variable."""
    value, end = found["bare"], found.end("bare")
    if len(value) < SHORTEST_BARE_CHARS or stands_for(value) or text[end : end + 1] in ("(", "[", "{", "<"):
        return False
    setting = found["sep"] == "=" and not found["close"]  # NAME=value, as a shell or a properties file writes it
    if setting and (word.isupper() or text[end : end + 1] in ("", "\n")):
        return _is_secret(value, word)
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return (
        mixed
        and "." not in value
        and text[end : end + 1] in ("", "\n", " ", "\r", ";", "&", '"', "'", ",", "}")
        and _is_secret(value, "token")
    )


def stands_for(value: str) -> bool:
    return bool(REFERENCE.match(value)) or len(set(value)) <= 2 or value.lower() in _PLACEHOLDERS
