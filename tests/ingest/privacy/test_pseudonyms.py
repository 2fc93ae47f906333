"""People, e-mail addresses and telephone numbers get pseudonyms, the same throughout an index."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dowse
from dowse.config import Config
from dowse.ingest.privacy.pseudonyms import Pseudonymizer, people_in, slack_people
from dowse.types import Document
from factories import PLAIN, of_chunks
from values import replace

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"
KEY = bytes(16)
PEOPLE = (("Ada Lovelace", "ada"), ("Grace Hopper", "ghopper"), ("Grace Kelly",), ("Will Shaw", "will"))


def document(*texts: str, author: str | None = None) -> Document:
    return of_chunks("notes.md", tuple(replace(PLAIN, text=text, author=author) for text in texts))


def scrubbed(*texts: str, author: str | None = None) -> tuple[list[str], dict[str, int]]:
    found, counts = Pseudonymizer(KEY, PEOPLE).apply(document(*texts, author=author))
    return [chunk.text for chunk in found.chunks], {kind: count for kind, count in counts.items() if count}


def test_all_spellings_of_a_person_get_one_pseudonym() -> None:
    (text,), counts = scrubbed("Ada Lovelace wrote it; ask Ada, or Lovelace, or @ada.")
    names = {word for word in text.replace(";", " ").replace(",", " ").replace("@", " ").split() if "person-" in word}
    assert {name.rstrip(".") for name in names} == {text.split()[0]}
    assert counts == {"name": 4}


def test_a_first_name_of_two_people_stands_for_neither() -> None:
    (text,), _ = scrubbed("Grace Hopper, Grace Kelly, Grace")
    hopper, kelly, grace = text.split(", ")
    assert len({hopper, kelly, grace}) == 3
    assert "Grace" not in text


def test_a_name_that_is_a_word_is_replaced_only_where_it_is_addressed() -> None:
    (text,), _ = scrubbed("will: this will do, @will. Will Shaw agrees")
    assert text.startswith("person-")
    assert "this will do, @person-" in text
    assert "Shaw" not in text


def test_a_part_of_a_word_is_no_name() -> None:
    assert scrubbed("adapter, canada, Adamant") == (["adapter, canada, Adamant"], {})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("write to a.b+c@mail.example.org now", "mail-"),
        ("call +49 30 1234567 now", "phone-"),
        ("call (212) 555-0147 now", "phone-"),
        ("call 212-555-0147 now", "phone-"),
        ("call 030/1234567 now", "phone-"),
    ],
)
def test_addresses_and_numbers_are_replaced(text: str, kind: str) -> None:
    (clean,), counts = scrubbed(text)
    first, found, last = clean.partition(kind)
    assert found
    assert (first.split()[0], last.split()[-1]) == (text.split()[0], "now")
    assert sum(counts.values()) == 1


@pytest.mark.parametrize(
    "text",
    ["git@host.example:team/repo.git", "@app.route('/x')", "left-pad@1.2.3", "2026-03-18 10:24:11", "1767225600.000200",
     "10.0.0.1:8080", "0x1234567890", "v1.2.3-4567890", "+1 for that", "WF-4091", "2026-0318-1200 +0200"],
)  # fmt: skip
def test_what_only_looks_like_them_stays(text: str) -> None:
    assert scrubbed(text) == ([text], {})


def test_an_author_is_a_person_though_nobody_listed_them() -> None:
    found, _ = Pseudonymizer(KEY).apply(document("Kim Novak said so", author="Kim Novak"))
    (chunk,) = found.chunks
    assert chunk.author is not None
    assert chunk.author.startswith("person-")
    assert chunk.text == f"{chunk.author} said so"


def test_another_key_gives_other_pseudonyms() -> None:
    one, two = (Pseudonymizer(bytes([n]) * 16, PEOPLE).apply(document("Ada Lovelace"))[0] for n in (1, 2))
    assert one.chunks[0].text != two.chunks[0].text


@given(st.text(alphabet=st.sampled_from("Adaw il:@+0123456789-()\n.x"), max_size=80))
def test_scrubbing_keeps_every_line_and_is_done_once(text: str) -> None:
    (clean,), _ = scrubbed(text)
    assert clean.count("\n") == text.count("\n")
    assert scrubbed(clean) == ([clean], {})


def test_people_are_found_in_slack_git_and_a_list(tmp_path: Path) -> None:
    users = [
        {"name": "bo", "real_name": "Bo Derek", "profile": {"display_name": "bo_d"}},
        {"name": "robot", "is_bot": True, "real_name": "Ro Bot"},
        "no user",
    ]
    assert list(slack_people(json.dumps(users).encode())) == [("Bo Derek", "bo_d", "bo")]
    assert list(slack_people(b"{")) == list(slack_people(b"[1]")) == list(slack_people(b"[" * 100_000)) == []
    run = ["git", "-c", "user.name=Cy Twombly", "-c", "user.email=c@x.example", "-C", str(tmp_path)]
    subprocess.run([*run, "init", "-q"], check=True)
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    listed = tmp_path / "names.txt"
    listed.write_text("# who\nDee Dee, dd\n\n")
    assert people_in([], [str(tmp_path)], listed) == (("Cy Twombly",), ("Dee Dee", "dd"))


# --- in an index --------------------------------------------------------------------------------------


def _holds(folder: Path, *words: str) -> set[str]:
    data = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    return {word for word in words if word.encode() in data}


def test_no_person_of_the_sample_is_in_a_scrubbed_index_and_later_runs_keep_it_so(
    tmp_path: Path, index_folder: Path
) -> None:
    folder = tmp_path / "acme"
    for path in [*SAMPLE.glob("slack-export/**/*.json"), *SAMPLE.glob("docs/**/*.md")]:
        (folder / path.relative_to(SAMPLE)).parent.mkdir(parents=True, exist_ok=True)
        (folder / path.relative_to(SAMPLE)).write_bytes(path.read_bytes())
    people = list(slack_people((folder / "slack-export/users.json").read_bytes()))
    full = [person[0] for person in people if " " in person[0]]
    assert len(full) >= 5
    with dowse.open(index_folder, embedder="none") as engine:
        report = engine.index([folder], embed=False, pseudonyms=True)
    assert dict(report.scrubbed)["name"] > 50
    assert _holds(index_folder, *full) == set()
    (folder / "new.md").write_text(f"# Rota\n\n{full[0]} is on call, {full[0].split()[0]}@wrenfold.example\n")
    with dowse.open(index_folder, embedder="none") as engine:
        report = engine.index([folder], embed=False)
        assert (report.added, report.changed) == (1, 0)
        (chunk,) = engine.show(str(folder / "new.md"))
        names = {each.author for each in engine.retrieve("rollback", 50) if each.author}
    assert "is on call, mail-" in chunk.text
    assert all(name.startswith("person-") for name in names)
    assert _holds(index_folder, *full) == set()


def test_scrubbing_a_source_that_is_indexed_already_reads_all_of_it_again(tmp_path: Path, index_folder: Path) -> None:
    folder, listed = tmp_path / "src", tmp_path / "names.txt"
    folder.mkdir()
    (folder / "a.md").write_text("Ada Lovelace was here\n")
    listed.write_text("Ada Lovelace\n")
    with dowse.open(index_folder, config=Config(pseudonym_names=listed), embedder="none") as engine:
        engine.index([folder], embed=False)
        assert "Ada" in engine.show(str(folder / "a.md"))[0].text
        assert engine.index([folder], embed=False, pseudonyms=True).changed == 1
        assert "Ada" not in engine.show(str(folder / "a.md"))[0].text
        assert engine.index([folder], embed=False).unchanged == 1
        assert engine.index([folder], embed=False, pseudonyms=False).changed == 1
        assert "Ada" in engine.show(str(folder / "a.md"))[0].text
