"""Secrets by their neighbourhood: random values on a line that names a secret or a service.

Programs, configurations and chats pair a name with a value in more ways than a pattern can list. Here only the line
counts: it has a name such as `password`, and another word of it looks random.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

SHORTEST_RANDOM_CHARS = 10  # chosen: shorter ones look like names with a number
SHORTEST_OF_SERVICE_CHARS = 20  # the shortest tokens of these services
SHORTEST_QUOTED_CHARS = 8
SHORTEST_CELL_CHARS = 6

# Names of secrets, in lower case, and parts of names that need a longer and more random value.
NAMES = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "creds", "bearer",
    "authorization", "identified by", "securestring", "connectionstring", "connection_string", "mnemonic", "cookie",
)  # fmt: skip
KINDS_OF_KEY = tuple(
    kind + joint
    for kind in (
        "access", "account", "admin", "aes", "api", "app", "auth", "cipher", "client", "crypto", "deploy", "encryption",
        "hmac", "host", "jwt", "license", "master", "private", "rsa", "secret", "service", "session", "shared",
        "signing", "ssh", "storage", "subscription", "webhook",
    )
    for joint in ("", "_", "-", " ", ".")
)  # fmt: skip
# Short names are words of their own: `DB_PASS`, `userPass`, `psk`, not `bypass` and `passes`.
_SHORT_NAMES = re.compile(
    r"(?:(?<![A-Za-z])(?:pass|pw|psk|salt|pepper|auth|dsn|Pass|Pw|Psk|Salt|Auth|Dsn|requirepass)"
    r"|(?<=[a-z])(?:Pass|Pw|Psk|Salt|Auth|Dsn)|(?<![a-z])[A-Z]{0,12}(?:PASS|PW|PSK|SALT|PEPPER|AUTH|DSN))(?![a-z])"
)
_SHORT_LITERALS = ("pass", "pw", "psk", "salt", "pepper", "auth", "dsn")
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
_WORD = re.compile(r"[A-Za-z0-9+/_~!@#$%^*?-]{8,512}={0,2}")
_QUOTED = re.compile(r"(?P<q>[\"'`])(?P<secret>(?:\\.|(?!(?P=q))[^\\\n\s]){8,512})(?P=q)")
_RUNS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9_/=-]+")
# Not a secret: an address, a reference, a digest with its name, a name with a number, a date.
_HARMLESS = re.compile(
    r"\$[A-Za-z_{(]|%[A-Za-z_(]|[{<*#&\[(]|.*(?:\$\{|\{\{|\.\.\.|://|\[masked)|sha(?:1|256|384|512)|md5"
    r"|(?:[A-Za-z]+[0-9]{0,4}|[0-9]{1,5})(?:[_.:/ -](?:[A-Za-z]+[0-9]?|[0-9]{1,4}))*[0-9]{0,4}$|[0-9T:.+/-]*$|[0-9]{1,2}-[A-Z][a-z]{2}-|doi:",
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


def secret_words(text: str, lowered: str) -> Iterator[Span]:
    """Yield the spans of random words near names of secrets and services, perhaps twice."""
    done = -1  # end of the last window: lines are looked at once
    for start in sorted(_places(text, lowered)):
        if start < done:
            continue
        begin = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        done = end
        if end - begin > 2000:  # a line of a minified file: only what is near
            begin, end = max(begin, start - 100), min(end, start + 600)
            done = end
        yield from _in_line(text, begin, end, start)
        if _HEADER.fullmatch(lowered, begin, end):
            yield from _in_column(text, lowered[begin:end].split(","), end + 1)
        if _PAIR.search(text, begin, end):
            follow = text.find("\n", end + 1)
            yield from _in_value_line(text, end + 1, len(text) if follow < 0 else follow)
        if begin:
            before = text.rfind("\n", 0, begin - 1) + 1
            if _VALUE_FIRST.match(text, before, begin):
                yield from _in_line(text, before, begin - 1, start)
    for found in _SERVICE.finditer(lowered):
        end = text.find("\n", found.end())
        end = min(len(text) if end < 0 else end, found.end() + 300)
        for word in _WORD.finditer(text, found.end(), end):
            if _looks_foreign(text, word, SHORTEST_OF_SERVICE_CHARS):
                yield word.span()


def _places(text: str, lowered: str) -> Iterator[int]:
    """Yield where a name of a secret is."""
    for name in NAMES:
        at = lowered.find(name)
        while at >= 0:
            yield at
            at = lowered.find(name, at + len(name))
    at = lowered.find("key")
    while at >= 0:
        if lowered.endswith(KINDS_OF_KEY, 0, at):
            yield at
        at = lowered.find("key", at + 3)
    if any(name in lowered for name in _SHORT_LITERALS):
        for found in _SHORT_NAMES.finditer(text):
            yield found.start()


def _in_line(text: str, begin: int, end: int, name: int) -> Iterator[Span]:
    """Yield the random words of a line, but not the one that holds the name itself."""
    for quoted in _QUOTED.finditer(text, begin, end):
        if not quoted.start() <= name < quoted.end() and looks_random(quoted["secret"], SHORTEST_QUOTED_CHARS):
            yield quoted.span("secret")
    for word in _WORD.finditer(text, begin, end):
        if not word.start() <= name < word.end() and _looks_foreign(text, word, SHORTEST_RANDOM_CHARS):
            yield word.span()


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
_HEADER = re.compile(r"[\w\"'][\w\"' -]{0,40}(?:,[\w\"' -]{0,40}){0,30},[\w\"' -]{1,40}\r?")
_HARMLESS_CELL = re.compile(r"\s*[\"']?[$<{(\[]|[\w\" -]*,")


def _in_value_line(text: str, begin: int, end: int) -> Iterator[Span]:
    """Yield a random word that is all of the next line but its key, quotes and punctuation."""
    if end - begin < 600 and (found := _ALONE.match(text, begin, end)) and looks_random(found["secret"]):
        yield found.span("secret")


_ALONE = re.compile(
    r"[\s>?-]*(?:\"?(?:value|default|content|string|data)\w{0,10}\"?\s*[:=]\s*|<\w+>\s*|:\s)?[\"'(\[]*"
    r"(?P<secret>[^\s\"'`<>,;()\[\]{}]{8,512})[\"'\])}>,;]*(?:</\w+>)?\s*$"
)


def _looks_foreign(text: str, word: re.Match[str], least: int) -> bool:
    """Test a word without quotes: not part of an address, a path or an expression."""
    before = text[word.start() - 1 : word.start()]
    return before not in (".", "\\") and looks_random(word[0].strip("-/*=?"), least)
