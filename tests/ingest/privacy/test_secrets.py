"""Secrets go before anything is stored; what only speaks of them stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dowse
import sample_truth as truth
from dowse.identity import chunk_id, embedded_text, text_hash
from dowse.ingest.privacy.secrets import MASK, mask, masked_file
from dowse.ingest.reading.guarded import masked, read_masked
from dowse.ports import SourceFile
from dowse.private_hash import is_same_content, is_same_size
from dowse.types import Document, Edge
from factories import PLAIN, of_chunks
from readers_by_name import reader_of
from values import replace

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"
# Put together here, so that no file of ours holds what a scanner of repositories would report.
HEX = "0123456789abcdef" * 4
LETTERS = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("aws ", "AKIA" + "Z7" * 8, " is ours"),
        ("token: ", "ghp" + "_" + LETTERS[:36], ""),
        ("x ", "github" + "_pat_" + LETTERS, " y"),
        ("x ", "xox" + "b-123456789012-" + LETTERS[:20], ""),
        ("https://hooks.slack.com/services/", "T0001/B0001/" + LETTERS[:20], ""),
        ("x ", "sk" + "_live_" + LETTERS[:24], ""),
        ("key ", "AI" + "za" + LETTERS[:35], ""),
        ("jwt ", "ey" + "J" + LETTERS[:20] + ".ey" + "J" + LETTERS[:20] + "." + LETTERS[:20], ""),
        ("Authorization: Bearer ", LETTERS, ""),
        ("postgres://app:", "s3cr3t!", "@db:5432/app"),
        ("redis://:", "hunter2", "@cache:6379"),
        ('password = "', "swordfish", '"'),
        ("DB_PASSWORD=", "correct-horse", ""),
        ('"apiKey": "', LETTERS[:20], '",'),
        ("client_secret: ", LETTERS[:24], ""),
        ('os.environ["API_TOKEN"] = "', LETTERS[:16], '"'),
        ("mysqldump --password=", "hunter2hunter2", " db"),
        ('{"text": "my password: \\"', "hunter22", '\\""}'),
        ("credentials = '", LETTERS[:12], "'"),
        ("AccountKey=", LETTERS + "=", ";EndpointSuffix"),
    ],
)
def test_a_secret_is_masked_and_what_stands_around_it_stays(before: str, secret: str, after: str) -> None:
    assert mask(before + secret + after) == (before + MASK + after, 1)


@pytest.mark.parametrize(
    "text",
    [
        "password: ${POSTGRES_PASSWORD}",
        "postgres://postgres:${POSTGRES_PASSWORD}@bookings-db:5432/bookings",
        "postgres://user:password@host/db",
        "password = get_password()",
        "const token = request.headers.token;",
        "token: string;",
        "readonly cartographToken: string;",
        "secretKeyRef: { name: bookings-db-login, key: password }",
        "secretName: public-tls",
        'api_key = os.environ["API_KEY"]',
        '"password": "Password"',
        "password: <your password>",
        'token = "changeme"  # no digit, no password',
        "max_tokens=100000",
        "PASSWORD_MIN_LENGTH=12345678",
        "if token == None: pass",
        "the private key is in the vault",
        "risk-assessment-2024-of-the-migration-plan",
        "X-Api-Key: {{ .Values.apiKey }}",
        "Basic authentication is off",
        "https://example.org/a:b@c",
        '_SK_START = b"-----BEGIN OPENSSH PRIVATE KEY-----"',
    ],
)
def test_what_only_names_a_secret_stays(text: str) -> None:
    assert mask(text) == (text, 0)


def test_secrets_of_several_forms_in_one_text_are_all_masked() -> None:
    secrets = ["sk-" + "a1b2" * 8, "AKIA" + "A1B2" * 4, "hf_" + "a1" * 17, "npm_" + "a1" * 18, "AIza" + "b" * 35]
    text, count = mask("\n".join(secrets * 2))
    assert count == 2 * len(secrets)
    assert text == "\n".join([MASK] * count)


def test_a_private_key_is_masked_line_for_line() -> None:
    lines = ["above", "-----BEGIN RSA " + "PRIVATE KEY-----", HEX, HEX, "-----END RSA " + "PRIVATE KEY-----", "below"]
    text, count = mask("\n".join(lines))
    assert count == 1
    assert HEX not in text
    assert text.split("\n")[5] == "below"


def test_a_private_key_without_an_end_is_masked_as_far_as_it_goes() -> None:
    text, count = mask("-----BEGIN " + f"PRIVATE KEY-----\n{HEX}\n{HEX}\n\nThe next paragraph stays.")
    assert count == 1
    assert HEX not in text
    assert text.endswith("The next paragraph stays.")


def test_every_value_of_a_kubernetes_secret_is_masked() -> None:
    text = "\n".join(
        ["kind: ConfigMap", "data:", "  mode: plain", "---", "apiVersion: v1", "kind: Secret", "metadata:",
         "  name: login", "stringData:", "  user: app", "  note: |", "    one", "    two", "  ref: ${FROM_VAULT}",
         "type: Opaque"]
    )  # fmt: skip
    clean, count = mask(text)
    assert count == 2
    lines = clean.split("\n")
    assert len(lines) == 15
    assert lines[2] == "  mode: plain"
    assert lines[9] == f"  user: {MASK}"
    assert lines[11:13] == [f"    {MASK}", f"    {MASK}"]
    assert lines[13:] == ["  ref: ${FROM_VAULT}", "type: Opaque"]
    assert "login" in clean


PARTS = [*"ab1:=@/\"'\n -{}$[]\\.", "password", "TOKEN", "://", "secret", "hunter2", "Bearer ", "--password", HEX]
PARTS += ["-----BEGIN " + "PRIVATE KEY-----", "-----END", "kind: Secret\n", "data:\n", "  a: b\n"]


@given(st.lists(st.sampled_from(PARTS), max_size=30))
def test_masking_keeps_every_line_and_is_done_once(parts: list[str]) -> None:
    text = "".join(parts)
    clean, _ = mask(text)
    assert clean.count("\n") == text.count("\n")
    assert mask(clean) == (clean, 0)


@given(st.binary(max_size=400))
def test_any_bytes_come_out_of_masking(data: bytes) -> None:
    clean, count = masked_file(SourceFile("s", "p", data, 0))
    assert clean.data.count(b"\n") == data.count(b"\n")
    assert count or clean.data == data


def test_no_pattern_is_slow_on_a_long_line() -> None:
    """A line of 1 MB of each kind of beginning; a pattern that tries everything twice would take minutes."""
    for part in ("password=", "a://b:", "-----BEGIN RSA " + "PRIVATE KEY-----", "Bearer ", "eyJ", "api_", '"key": "'):
        text = part * (1_000_000 // len(part))
        assert mask(text)[0].count("\n") == 0


def test_a_changed_file_is_told_by_its_own_bytes() -> None:
    data = b"line one\npassword = 'swordfish1'\nline three\n"
    document, count = read_masked(reader_of("text"), SourceFile("s", "notes.txt", data, 0))
    assert count == 1
    assert is_same_content(data, document.content_hash)
    assert not is_same_content(data.replace(b"1", b"2"), document.content_hash)
    assert is_same_size(len(data), document.size_bytes)
    assert (document.chunks[0].start_line, document.chunks[0].end_line) == (1, 3)
    assert "swordfish1" not in document.chunks[0].text


@dataclass(frozen=True)
class _Unpacking:
    """Gives text that is not in the file as it stands, as a reader of archives or mails does."""

    document: Document
    name: str = "unpacking"

    def read(self, file: SourceFile) -> Document:
        return self.document


def test_what_a_reader_unpacks_is_masked_in_every_field_and_stays_linked() -> None:
    secret = "hunter" + "2hunter2"
    whole = replace(PLAIN, text=f"password={secret}\nmore", level="document", summary=f"password={secret}")
    one = replace(
        PLAIN, text=f"PASSWORD={secret}", context_prefix=f"token: '{secret}'", meta=(("k", f"pwd='{secret}'"),)
    )
    made = of_chunks("mail.eml", (whole, one))
    parent, child = made.chunks
    made = replace(made, chunks=(parent, replace(child, parent_id=parent.id)), edges=(Edge(child.id, parent.id, "x"),))
    document, count = read_masked(_Unpacking(made), SourceFile("s", "mail.eml", b"packed", 0))
    assert count == 1  # found by a search once, however often it is written
    assert secret not in repr(document)
    parent, child = document.chunks
    assert child.parent_id == parent.id
    assert document.edges == (Edge(child.id, parent.id, "x"),)
    assert child.id == chunk_id(child.source_uri, "chunk", child.text)
    assert child.content_hash == text_hash(embedded_text(child))


@pytest.mark.parametrize("gap", ["", "\n", "\n\n\n", "\n" * 9, "\n# left out\n", None])
def test_every_chunk_that_is_not_in_the_file_is_masked_wherever_the_others_are(gap: str | None) -> None:
    """Chunks that are cut from a file are as clean as it is, which is told from where they stand in it."""
    parts = ["def a():\n    pass", "password = 'hunter" + "2x'", "def b():\n    pass"]
    made = of_chunks("a.py", [replace(PLAIN, text=text) for text in parts])
    data = "" if gap is None else gap.join([parts[0], "password = load()", parts[2]])
    document, count = read_masked(_Unpacking(made), SourceFile("s", "a.py", data.encode(), 0))
    assert count == 1
    assert [chunk.text for chunk in document.chunks] == [parts[0], f"password = '{MASK}'", parts[2]]


def test_a_private_key_that_was_cut_in_two_is_masked_in_both_chunks() -> None:
    texts = ("-----BEGIN " + f"PRIVATE KEY-----\n{HEX}\n{HEX}", f"{HEX}\n{HEX}\nand a sentence that stays")
    document, count = masked(of_chunks("a.docx", tuple(replace(PLAIN, text=text) for text in texts)))
    assert count == 2
    assert HEX not in repr(document)
    assert document.chunks[1].text == f"{MASK}\n\nand a sentence that stays"


def test_two_chunks_that_become_alike_keep_two_ids() -> None:
    made = of_chunks("a", tuple(replace(PLAIN, text=f"password='hunter{n}2'") for n in (1, 2)))
    document, count = masked(made)
    assert count == 2
    assert document.chunks[0].text == document.chunks[1].text
    assert len({chunk.id for chunk in document.chunks}) == 2


def test_no_secret_of_the_sample_is_anywhere_in_an_index(index_folder: Path) -> None:
    with dowse.open(index_folder, embedder="hash") as engine:
        report = engine.index([SAMPLE])
    assert report.masked == len(truth.SECRETS)
    files = [path.read_bytes() for path in index_folder.rglob("*") if path.is_file()]
    assert sum(map(len, files)) > 100_000
    for _, secret in truth.SECRETS:
        assert not any(secret.encode() in data or secret.lower().encode() in data for data in files), secret


PARTS = (
    "password", "=", "'hunter2x9'", ": ", "abc12345", "\n", "Bearer ", "b7" * 10, "sk-", "kind: Secret", "\ndata:\n",
    "  key: dmFsdWU=", "---", "://u:p4ss@", "--token ", "|", "${X}",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PARTS), max_size=7).map("".join)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_document_is_clean_when_each_of_its_texts_is(texts: list[str]) -> None:
    """All are looked through at once; a secret in one of them must not go unseen beside the others."""
    made = of_chunks("a.docx", [replace(PLAIN, text=text) for text in dict.fromkeys(texts)])
    document, count = masked(made)
    assert [chunk.text for chunk in document.chunks] == [mask(chunk.text)[0] for chunk in made.chunks]
    assert count == sum(mask(chunk.text)[1] for chunk in made.chunks)
