"""Reader of mail: mailboxes and single messages become a chunk for each message, under its thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parseaddr, parsedate_to_datetime
from itertools import chain, pairwise

from msgspec.structs import replace

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import Heading, file_name
from dowse.ingest.readers.conversation import REPLY_WEIGHT, Thread, Turn, build_threads
from dowse.ports import SourceFile
from dowse.types import Chunk, CorpusType, Document, Edge

MOST_PARTS = 200  # of one message; chosen: more is an attack
MOST_NESTED = 50  # of `multipart/` in one message; the parser recurses for each
LONGEST_HEADER_CHARS = 2_000
LONGEST_BODY_CHARS = 400_000  # chosen: a long report; beyond it stands data
_FROM = re.compile(rb"^From [^\n]*\n", re.MULTILINE)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_ID = re.compile(r"<[^<>\s]{1,400}>")
_REPLY_MARKS = re.compile(r"^(?:\s*(?:re|aw|sv|fwd?|wg|tr)\s*(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)
_ATTRIBUTION = re.compile(r"(?:On|Am|Le|El|Op|Il)\b.{5,300}(?:wrote|schrieb|écrit|escribió|schreef|scritto)\s*:\s*")


@dataclass(frozen=True)
class Mail:
    """One message as it was written, without what it quotes."""

    id: str
    parents: tuple[str, ...]  # ids of what it answers, oldest first
    subject: str
    author: str
    moment: datetime | None
    body: str
    lists: str | None  # the mailing list it went to
    lines: tuple[int, int]


def read_mail(file: SourceFile) -> Document:
    """Read mbox, in all its variants, and .eml. Only messages that cannot be parsed are left out."""
    mails = [mail for raw, lines in _messages(file.data) if (mail := _mail(raw, lines))]
    if not mails:
        raise BadRequestError("not a mailbox: no message can be read; convert it to mbox or add it to .dowseignore")
    known = {mail.id: mail for mail in reversed(mails)}
    groups: dict[str, list[Mail]] = {}
    roots = {mail.id: _root(mail, known) for mail in mails}
    for mail in mails:
        groups.setdefault(roots[mail.id], []).append(mail)
    heading = Heading(mails[0].subject if len(mails) == 1 else file_name(file))
    threads = [_thread(mail, root, group[0]) for root, group in groups.items() for mail in group]
    document = build_threads(file, CorpusType.CONVO_OTHER, heading, threads)
    return _with_replies(document, chain.from_iterable(groups.values()))


def _messages(data: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """The messages of a mailbox with their lines; a file that does not begin as one is a single message."""
    data = data.replace(b"\r\n", b"\n")
    starts = [match.start() for match in _FROM.finditer(data) if _begins(data, match.start())]
    if not starts or not data.startswith(b"From "):
        yield data, (1, data.rstrip(b"\n").count(b"\n") + 1)
        return
    line = 1 + data.count(b"\n", 0, starts[0])
    for start, stop in pairwise((*starts, len(data))):
        raw = data[start:stop]
        yield _QUOTED_FROM.sub(rb"\1", raw[raw.find(b"\n") + 1 :]), (line, line + raw.rstrip(b"\n").count(b"\n"))
        line += raw.count(b"\n")


def _begins(data: bytes, at: int) -> bool:
    """A message begins behind a blank line, and with a header: prose has lines that start with "From ", too."""
    if at and data[at - 2 : at] != b"\n\n":
        return False
    header = data[data.find(b"\n", at) + 1 :][:200].split(b"\n", 1)[0]
    return bool(re.match(rb"[!-9;-~]+:|>?From ", header))


def _mail(raw: bytes, lines: tuple[int, int]) -> Mail | None:
    if raw.count(b"multipart/") > MOST_NESTED:
        return None
    message = message_from_bytes(raw)
    subject = _header(message, "Subject")
    body = _own_words(_body(message))
    names = (part.get_filename() for part in _parts(message))
    files = [" ".join(_printable(str(name)).split())[:200] for name in names if name]
    text = "\n".join(filter(None, (body, *(f"[file: {name}]" for name in files))))
    if not text and not subject:
        return None
    written = _header(message, "From")
    name, address = parseaddr(written)
    own = _ID.findall(_header(message, "Message-ID"))
    answered = _ID.findall(_header(message, "References") + " " + _header(message, "In-Reply-To"))
    listed = parseaddr(_header(message, "List-Id"))[1] or None
    return Mail(
        id=own[0] if own else f"<line-{lines[0]}>",
        parents=tuple(dict.fromkeys(answered)),
        subject=_REPLY_MARKS.sub("", subject) or subject,
        author=name or address or written or "someone",
        moment=_moment(_header(message, "Date")),
        body=text,
        lists=listed,
        lines=lines,
    )


def _header(message: Message, name: str) -> str:
    """A header as one line of text; what cannot be decoded is shown as it is."""
    value = str(message.get(name, ""))[:LONGEST_HEADER_CHARS]
    try:
        parts = decode_header(value)
        text = "".join(
            part if isinstance(part, str) else part.decode(charset or "ascii", "replace") for part, charset in parts
        )
    except (HeaderParseError, LookupError, ValueError):
        text = value
    return " ".join(_printable(text).split())


def _moment(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _parts(message: Message) -> Iterator[Message]:
    """Leaves in order; a list in place of recursion, and a bound."""
    waiting: list[Message] = [message]
    for _ in range(MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        payload = part.get_payload()
        if isinstance(payload, list):
            waiting += [each for each in reversed(payload) if isinstance(each, Message)]
        else:
            yield part


def _body(message: Message) -> str:
    """The plain text; of a message that has none, its HTML as it is read."""
    leaves = [part for part in _parts(message) if not part.get_filename()]
    plain = [part for part in leaves if part.get_content_type() == "text/plain"]
    if plain:
        return "\n\n".join(map(_decoded, plain))
    return "\n\n".join(_html_text(_decoded(part)) for part in leaves if part.get_content_type() == "text/html")


def _decoded(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset() or "utf-8"
    try:
        text = data.decode(charset, "replace")
    except LookupError:  # a charset that only its sender knows
        text = data.decode("utf-8", "replace")
    return _printable(text.replace("\r\n", "\n"))[:LONGEST_BODY_CHARS]


def _html_text(source: str) -> str:
    from dowse.ingest.readers.html import read_page

    try:
        return read_page(source)[0].text
    except BadRequestError:
        return ""  # too deep to be written by anyone


def _own_words(body: str) -> str:
    """Without what is quoted from others and without the signature: both are found elsewhere, or by nobody."""
    kept: list[str] = []
    for line in body.split("\n"):
        if line == "-- ":
            break
        if not line.startswith(">"):
            kept.append(line.rstrip())
        elif kept and _ATTRIBUTION.fullmatch(kept[-1][:400]):
            kept.pop()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n ")


def _printable(text: str) -> str:
    """Without NULs and lone surrogates, which no store can hold."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def _root(mail: Mail, known: Mapping[str, Mail]) -> str:
    """Return the id of a message's thread: the oldest message it leads back to, here or elsewhere."""
    way, root = {mail.id}, mail.id
    while mail.parents:
        root = mail.parents[0]
        if root in way or root not in known:
            break
        way.add(root)
        mail = known[root]
    return root


def _thread(mail: Mail, root: str, first: Mail) -> Thread:
    stamp = mail.moment.strftime("%Y-%m-%d %H:%M") if mail.moment else ""
    return Thread(
        turns=(Turn(mail.body or mail.subject, mail.lines, mail.author, mail.moment),),
        prefix=tuple(filter(None, (mail.subject, f"@{mail.author}", stamp))),
        section_path=first.subject or None,
        channel=mail.lists,
        thread_id=root,
        meta=(("message_id", mail.id),),
    )


def _with_replies(document: Document, mails: Iterable[Mail]) -> Document:
    """Every message points at the one it answers, where that is in the same file."""
    first: dict[str, Chunk] = {}
    for chunk in document.chunks:
        first.setdefault(dict(chunk.meta)["message_id"], chunk)
    edges = [
        Edge(first[mail.id].id, first[parent].id, "replies_to", REPLY_WEIGHT, f"{mail.author} answers")
        for mail in mails
        for parent in [next((each for each in reversed(mail.parents) if each in first), None)]
        if parent and parent != mail.id and mail.id in first and first[mail.id].id != first[parent].id
    ]
    return replace(document, edges=(*document.edges, *edges))
