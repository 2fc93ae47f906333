"""Secrets by their neighbourhood: random values on a line that names a secret or a service.

Programs, configurations and chats pair a name with a value in more ways than a pattern can list. Here only the line
counts: it has a name such as `password`, and another word of it looks random. Random words are searched first, because
they are rare: in most of them a letter follows a digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

SHORTEST_RANDOM_CHARS = 10  # chosen: shorter ones look like names with a number
SHORTEST_OF_SERVICE_CHARS = 20  # the shortest tokens of these services
SHORTEST_QUOTED_CHARS = 8
SHORTEST_CELL_CHARS = 6
FAR_CHARS = 400  # in a longer line, a name farther away belongs to something else

# Names of secrets, in lower case, and parts of names that need a longer and more random value.
NAMES = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "creds", "bearer",
    "authorization", "identified by", "securestring", "connectionstring", "connection_string", "mnemonic", "cookie",
)  # fmt: skip
KINDS_OF_KEY = (
    "access", "account", "admin", "aes", "api", "app", "auth", "cipher", "client", "crypto", "deploy", "encryption",
    "hmac", "host", "jwt", "license", "master", "private", "rsa", "secret", "service", "session", "shared",
    "signing", "ssh", "storage", "subscription", "webhook",
)  # fmt: skip
_NAME = re.compile("|".join((*NAMES, f"(?:{'|'.join(KINDS_OF_KEY)})[_. -]?key")))  # in lower case
# Short names are words of their own: `DB_PASS`, `userPass`, `psk`, not `bypass` and `passes`.
_SHORT_NAME = re.compile(
    r"(?:(?<![A-Za-z])(?:pass|pw|psk|salt|pepper|auth|dsn|Pass|Pw|Psk|Salt|Auth|Dsn|requirepass)"
    r"|(?<=[a-z])(?:Pass|Pw|Psk|Salt|Auth|Dsn)|(?<![a-z])[A-Z]{0,12}(?:PASS|PW|PSK|SALT|PEPPER|AUTH|DSN))(?![a-z])"
)
SERVICES = (
    "adafruit", "adobe", "airtable", "algolia", "alibaba", "artifactory", "asana", "atlassian", "beamer", "bitbucket",
    "bittrex", "cloudant", "cloudflare", "codecov", "cohere", "coinbase", "confluence", "confluent", "contentful",
    "datadog", "discord", "drone", "dropbox", "dynatrace", "etsy", "facebook", "fastly", "finicity", "finnhub",
    "flickr", "freshbooks", "gitter", "gocardless", "heroku", "hubspot", "ibm", "intercom", "jfrog", "jira", "kraken",
    "kucoin", "launchdarkly", "linkedin", "looker", "mailchimp", "mailgun", "mapbox", "mattermost", "meraki",
    "messagebird", "netlify", "newrelic", "new_relic", "nytimes", "okta", "pagerduty", "paypal", "plaid", "privateai",
    "rapidapi", "sendbird", "sentry", "snyk", "softlayer", "sonar", "squarespace", "sumo", "telegram", "travis",
    "twilio", "twitch", "twitter", "typeform", "yandex", "zendesk",
)  # fmt: skip
_SERVICE = re.compile("|".join(SERVICES))
# Kind of each byte: digit, letters, a sign inside of words; a blank ends a word.
_KINDS = bytes(
    ord("1" if c.isdigit() else "a" if c.islower() else "A" if c.isupper() else "-" if c in "+/_~!@#$%^*?-" else " ")
    if (c := chr(code)).isascii()
    else ord("?")
    for code in range(256)
)
_RUNS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9_/=-]+")
# Not a secret: an address, a reference, a digest with its name, a name with a number, a date.
_HARMLESS = re.compile(
    r"\$[A-Za-z_{(]|%[A-Za-z_(]|[{<*#&\[(]|.*(?:\$\{|\{\{|\.\.\.|://|\[masked)|sha(?:1|256|384|512)|md5"
    r"|(?:[A-Za-z]+[0-9]{0,4}|[0-9]{1,5})(?:[_.:/ -](?:[A-Za-z]+[0-9]?|[0-9]{1,4}))*[0-9]{0,4}$"
    r"|[0-9T:.+/-]*$"
    r"|[0-9]{1,2}-[A-Z][a-z]{2}-|doi:",
)
_PASSPHRASE = re.compile(r"[A-Za-z]{3,12}(?:([-_. ])[A-Za-z]{3,12})(?:\1[A-Za-z]{3,12}){2,}\1?[0-9]{1,4}")
_NAMED = re.compile("pass|secret|token|key|auth|user|test|example|version", re.IGNORECASE)
_PAIR = re.compile(r"[ :\"'<({\[]")
_VALUE_FIRST = re.compile(r"\s*(?:-\s*|\{\s*)?\"?value\b")


def looks_random(word: str, least: int = SHORTEST_RANDOM_CHARS) -> bool:
    """Test for a word whose letters and digits change so often that nobody chose it as a name."""
    if len(word) < least:
        return False
    digits = sum(map(str.isdigit, word))
    if digits == len(word) or _HARMLESS.match(word):
        return bool(_PASSPHRASE.fullmatch(word)) and not _NAMED.search(word)
    runs = len(_RUNS.findall(word))
    if not digits:
        return len(word) >= 24 and runs >= 0.4 * len(word)
    if word == word.lower() or word == word.upper():
        return digits >= (2 if word.isalnum() and len(word) >= 16 else 3) and runs >= 0.15 * len(word)
    return runs >= 0.34 * len(word)


def random_words(text: str) -> list[Span]:
    """Return the spans of words with a letter after a digit."""
    kinds = text.encode("latin-1", "replace").translate(_KINDS)
    found: dict[int, int] = {}
    for sign in (b"1a", b"1A"):
        at = kinds.find(sign)
        while at >= 0:
            end = kinds.find(b" ", at)
            end = len(kinds) if end < 0 else end
            found[kinds.rfind(b" ", 0, at) + 1] = end
            at = kinds.find(sign, end)
    return sorted((start, end) for start, end in found.items() if end - start >= SHORTEST_QUOTED_CHARS)


def secret_words(text: str, lowered: str, words: list[Span]) -> Iterator[Span]:
    """Yield the spans of those words that a name of a secret or of a service accompanies."""
    for start, end in words:
        word = text[start:end].strip("-/*?@")
        if text[start - 1 : start] in (".", "\\") or not looks_random(word, SHORTEST_QUOTED_CHARS):
            continue
        begin = max(text.rfind("\n", 0, start) + 1, start - FAR_CHARS)
        stop = text.find("\n", end)
        stop = min(len(text) if stop < 0 else stop, end + FAR_CHARS)
        quoted = text[start - 1 : start] in ("'", '"', "`")
        if (
            (quoted or len(word) >= SHORTEST_RANDOM_CHARS)
            and (
                _names_secret(text, lowered, begin, start)
                or _names_secret(text, lowered, end, stop)
                or _beside(text, lowered, begin, stop)
            )
        ) or (len(word) >= SHORTEST_OF_SERVICE_CHARS and _SERVICE.search(lowered, max(begin, start - 100), start)):
            yield start, end


def secret_cells(text: str, lowered: str, begin: int, end: int) -> Iterator[Span]:
    """Yield the cells below names of secrets in comma-separated values."""
    for header in _HEADER.finditer(lowered, begin, end):
        yield from _in_column(text, header[0].split(","), header.end() + 1)


def _names_secret(text: str, lowered: str, begin: int, end: int) -> bool:
    return bool(_NAME.search(lowered, begin, end) or _SHORT_NAME.search(text, begin, end))


def _beside(text: str, lowered: str, begin: int, stop: int) -> bool:
    """Test for a name on the line before or after, if the word has its line for itself, or with `value`."""
    if stop - begin > FAR_CHARS or not begin or not _ALONE.match(text, begin, stop):
        return False
    before = text.rfind("\n", 0, begin - 1) + 1
    if _PAIR.search(text, before, begin - 1) and _names_secret(text, lowered, max(before, begin - FAR_CHARS), begin):
        return True
    after = text.find("\n", stop + 1)
    after = min(len(text) if after < 0 else after, stop + FAR_CHARS)
    return bool(_VALUE_FIRST.match(text, begin, stop)) and _names_secret(text, lowered, stop, after)


def _in_column(text: str, head: list[str], start: int) -> Iterator[Span]:
    """Yield the cells below names of secrets in comma-separated values."""
    columns = [at for at, cell in enumerate(head) if _HEAD.fullmatch(cell)]
    while columns and start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        row = text[start:end].split(",")
        if len(row) != len(head):
            return
        for column in columns:
            begin = start + sum(map(len, row[:column])) + column
            if len(row[column].strip()) >= SHORTEST_CELL_CHARS and not _HARMLESS_CELL.match(row[column]):
                yield begin, begin + len(row[column])
        start = end + 1


_HEAD = re.compile(r"\W*(?:\w*[_ -])?(?:password|passwd|pwd|secret|token|api[ _-]?key|passphrase)\W*")
_HEADER = re.compile(r"^[\w\"'][\w\"' -]{0,40}(?:,[\w\"' -]{0,40}){0,30},[\w\"' -]{1,40}\r?$", re.MULTILINE)
_HARMLESS_CELL = re.compile(r"\s*[\"']?[$<{(\[]|[\w\" -]*,")


_ALONE = re.compile(
    r"[\s>?-]*(?:\"?(?:value|default|content|string|data)\w{0,10}\"?\s*[:=]\s*|<\w+>\s*|:\s)?[\"'(\[]*"
    r"[^\s\"'`<>,;()\[\]{}]{8,512}[\"'\])}>,;]*(?:</\w+>)?\s*$"
)
