"""Writer of small PDF files from words with positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5

WIDTH, HEIGHT = 612, 792
_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


@dataclass(frozen=True)
class Words:
    """A stretch of text: where its baseline starts, in points from the lower left, and how it is set."""

    x: float
    y: float
    text: str
    size: float = 10
    bold: bool = False


def column(
    lines: Iterable[str], x: float, top: float, *, size: float = 10, leading: float = 12, bold: bool = False
) -> list[Words]:
    """Lines below each other; an empty one leaves a gap."""
    return [Words(x, top - at * leading, text, size, bold) for at, text in enumerate(lines) if text]


def pdf(pages: Sequence[Sequence[Words]], info: Mapping[str, str] | None = None, password: str | None = None) -> bytes:
    """A PDF 1.4 with Helvetica; a page without words has a grey square, as a scan has a picture."""
    key = b""
    objects: dict[int, bytes] = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        4: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
        5: b"<< " + b" ".join(b"/%s %s" % (k.encode(), _text(v)) for k, v in (info or {}).items()) + b" >>",
    }
    trailer = b""
    if password is not None:
        objects[6], key = _encryption(password)
        trailer = b" /Encrypt 6 0 R /ID [<%s> <%s>]" % ((b"00" * 16,) * 2)
    kids = []
    for number, words in enumerate(pages):
        page, content = 10 + 2 * number, 11 + 2 * number
        kids.append(b"%d 0 R" % page)
        objects[page] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>" % (WIDTH, HEIGHT, content)
        )
        stream = _content(words)
        stream = _rc4(_object_key(key, content), stream) if key else stream
        objects[content] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)
    objects[2] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    return _file(objects, trailer)


def _content(words: Sequence[Words]) -> bytes:
    if not words:
        return b"0.5 g 100 100 200 200 re f"
    return b"\n".join(
        b"BT /%s %g Tf %g %g Td %s Tj ET" % (b"F2" if each.bold else b"F1", each.size, each.x, each.y, _text(each.text))
        for each in words
    )


def _text(text: str) -> bytes:
    return b"<" + text.encode("cp1252").hex().encode() + b">"


def _file(objects: Mapping[int, bytes], trailer: bytes) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = {}
    for number, body in sorted(objects.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n" % size
    for number in range(size):
        out += b"%010d %05d %s \n" % (
            places.get(number, 0),
            0 if number in places else 65535,
            b"n" if number in places else b"f",
        )
    return bytes(out) + b"trailer << /Size %d /Root 1 0 R /Info 5 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        trailer,
        start,
    )


def _encryption(password: str) -> tuple[bytes, bytes]:
    """The standard handler, revision 2: RC4 with 40 bits."""
    padded = (password.encode() + _PADDING)[:32]
    owner = _rc4(md5(padded).digest()[:5], padded)
    key = md5(padded + owner + b"\xfc\xff\xff\xff" + bytes(16)).digest()[:5]
    user = _rc4(key, _PADDING)
    entry = b"<< /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >>"
    return entry % (owner.hex().encode(), user.hex().encode()), key


def _object_key(key: bytes, number: int) -> bytes:
    return md5(key + number.to_bytes(3, "little") + bytes(2)).digest()[:10]


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
