"""Text that does not say what it is written in is read where there is no doubt, and refused where there is some."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import decode
from dowse.ingest.sources.content import is_binary
from dowse.ingest.sources.encoding import guess

FRENCH = "Le café où nous déployons à l'été, garçon ; le prix est de 5 € environ, naïvement dit.\n" * 3
POLISH = "Zażółć gęślą jaźń; była żółta łódź i stała na białej wodzie, a obok niej druga łódka.\n" * 3


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(FRENCH, "cp1252"), ("café\n", "latin-1"), (FRENCH, "utf-16-le"), (FRENCH, "utf-16-be"), ("hello\n", "utf-16-le")],
)
def test_what_is_sure_is_read(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(POLISH, "cp1250"), ("Привет, мир и всё", "cp1251"), ("日本語のテキスト", "shift-jis"), ("中文文本", "gbk")],
)
def test_what_is_in_doubt_is_refused(text: str, encoding: str) -> None:
    with pytest.raises(BadRequestError, match="not valid UTF-8"):
        decode(text.encode(encoding))


def test_noise_between_words_is_refused() -> None:
    with pytest.raises(BadRequestError, match="not valid UTF-8 at byte 4"):
        decode(b"bad \xff\xfe bytes")


def test_damaged_utf8_is_not_taken_for_something_else() -> None:
    data = "déjà vu, déjà lu".encode()
    with pytest.raises(BadRequestError, match="not valid UTF-8 at byte 17"):
        decode(data[:17] + b"\xff" + data[17:])


def test_a_binary_file_is_no_text_and_wide_text_is_no_binary_file() -> None:
    assert is_binary(bytes(range(256)) * 8)
    assert is_binary(b"\x7fELF\0\0\0\0\1\0\2\0")
    assert not is_binary(FRENCH.encode("utf-16-le"))


@given(st.binary(max_size=400))
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    with suppress(BadRequestError):
        assert "\r\n" not in decode(data)


@given(st.text(st.characters(max_codepoint=126, min_codepoint=32), min_size=8))
def test_plain_text_survives_sixteen_bits(text: str) -> None:
    assert decode(text.encode("utf-16-le")) == text


@given(st.binary(max_size=400))
def test_a_guess_can_be_decoded_or_is_told(data: bytes) -> None:
    if guess(data) == "cp1252":
        data.decode("cp1252")
