"""What a path says about a file."""

import re
from pathlib import Path

import pytest

from dowse.errors import BadRequestError
from dowse.ingest.pipeline import IndexOptions, index
from dowse.ingest.sources.kinds import NAME_RULES, classify, most_bytes, user_rules
from dowse.ingest.sources.requests import IndexRequest
from dowse.store.memory import MemoryStore
from dowse.types import CorpusType


@pytest.mark.parametrize(
    ("path", "reader", "language", "corpus_type"),
    [
        ("src/app/main.py", "code", "python", "CODE_LOGIC"),
        ("web/App.TSX", "code", "typescript", "CODE_LOGIC"),
        ("Dockerfile", "dockerfile", "dockerfile", "CODE_DEPLOY"),
        ("docker/Dockerfile.dev", "dockerfile", "dockerfile", "CODE_DEPLOY"),
        ("docker-compose.override.yml", "yaml", "yaml", "CODE_DEPLOY"),
        ("infra/main.tf", "hcl", "terraform", "CODE_DEPLOY"),
        ("k8s/auth.yaml", "yaml", "yaml", "CODE_DEPLOY"),
        ("charts/auth/values.yaml", "yaml", "yaml", "CODE_DEPLOY"),
        (".github/workflows/test.yml", "yaml", "yaml", "CODE_DEPLOY"),
        ("settings.yaml", "yaml", "yaml", "CODE_CONFIG"),
        ("env.example", "env", "env", "CODE_CONFIG"),
        ("api/v1/api.proto", "proto", "protobuf", "CODE_LOGIC"),
        ("pyproject.toml", "code", "toml", "CODE_CONFIG"),
        ("requirements-dev.txt", "code", "requirements", "CODE_CONFIG"),
        ("runbooks/rollback.md", "markdown", "markdown", "DOC_RUNBOOK"),
        ("docs/adr/0001-store.md", "markdown", "markdown", "DOC_ADR"),
        ("docs/decisions/0001.md", "markdown", "markdown", "DOC_ADR"),
        ("README.md", "markdown", "markdown", "DOC_README"),
        ("README", "text", None, "DOC_README"),
        ("papers/ranking.txt", "text", None, "DOC_PAPER"),
        ("docs/guide.md", "markdown", "markdown", "DOC_PAGE"),
        ("notes.unheard", "text", None, "DOC_PAGE"),
    ],
)
def test_a_path_gives_reader_language_and_corpus_type(
    path: str, reader: str, language: str | None, corpus_type: str
) -> None:
    kind = classify(path)
    assert (kind.reader, kind.language, kind.corpus_type.value) == (reader, language, corpus_type)


@pytest.mark.parametrize("path", ["adrenaline.md", "docs/newspaper.md", "docs/runbooking.md", "proofreadme.md"])
def test_only_whole_words_of_a_path_count(path: str) -> None:
    assert classify(path).corpus_type == "DOC_PAGE"


@pytest.mark.parametrize("path", ["runbooks/restart.py", "papers/plot.py", "k8s/operator.go"])
def test_code_in_a_folder_of_documents_or_manifests_stays_code(path: str) -> None:
    assert classify(path).corpus_type == "CODE_LOGIC"


def test_a_reader_named_like_an_extension_takes_its_files() -> None:
    assert not classify("paper.djvu").known
    kind = classify("paper.djvu", readers=("djvu", "text"))
    assert (kind.reader, kind.known) == ("djvu", True)


def test_every_language_is_written_in_lower_case() -> None:
    assert all(language in (None, str(language).lower()) for _, _, language, _ in NAME_RULES)


# --- rules of one's own ----------------------------------------------------------------------------

READERS = {"code": None, "markdown": None, "text": None}


def test_a_rule_of_ones_own_changes_what_it_names_and_no_more() -> None:
    own = user_rules([{"match": ["*.pyx", "gen/**"], "reader": "code", "language": "python"}], READERS)
    kind = classify("src/fast.pyx", READERS, own)
    assert (kind.reader, kind.language, kind.corpus_type, kind.known) == ("code", "python", CorpusType.DOC_PAGE, True)
    assert classify("src/fast.py", READERS, own) == classify("src/fast.py", READERS)
    assert classify("gen/deep/a.md", READERS, own).reader == "code"


def test_the_first_rule_that_matches_decides() -> None:
    own = user_rules(
        [
            {"match": "ops/*.md", "corpus_type": "DOC_RUNBOOK"},
            {"match": "*.md", "corpus_type": "DOC_ADR"},
        ],
        READERS,
    )
    assert classify("ops/a.md", READERS, own).corpus_type is CorpusType.DOC_RUNBOOK
    assert classify("a.md", READERS, own).corpus_type is CorpusType.DOC_ADR


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"match": "*.x"}, "number 1: the rule changes nothing"),
        ({"reader": "code"}, "match must be a glob"),
        ({"match": [], "reader": "code"}, "match must be a glob"),
        ({"match": "*.x", "reader": "cod"}, "unknown reader 'cod'; did you mean 'code'"),
        ({"match": "*.x", "corpus_type": "DOC_RUNBOK"}, "did you mean 'DOC_RUNBOOK'"),
        ({"match": "*.x", "language": 3}, "language is 3, but must be text"),
        ({"match": "*.x", "languag": "go"}, "unknown key 'languag'; did you mean 'language'"),
    ],
)
def test_a_rule_that_makes_no_sense_is_named_with_what_is_wrong(table: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadRequestError, match=re.escape("[[kinds]]")) as told:
        user_rules([table], READERS)
    assert complaint in str(told.value)


def test_a_rule_of_ones_own_reaches_the_chunks(tmp_path: Path) -> None:
    (tmp_path / "notes.zzz").write_text("# Title\n\nText.\n")
    kinds = [{"match": "*.zzz", "reader": "markdown", "language": "zzz", "corpus_type": "DOC_RUNBOOK"}]
    store = MemoryStore()
    index(store, [IndexRequest(tmp_path)], IndexOptions(kinds=kinds))
    (info,) = store.documents()
    chunks = store.reader().document_chunks(info.id)
    assert {(chunk.language, chunk.corpus_type) for chunk in chunks} == {("zzz", "DOC_RUNBOOK")}
    assert info.title == "Title"


def test_files_that_are_mostly_pictures_may_be_larger() -> None:
    assert [most_bytes(path, 100) for path in ("a.md", "a.PDF", "b/c.docx")] == [100, 8 * 100, 8 * 100]


@pytest.mark.parametrize(
    ("path", "reader", "language"),
    [
        ("a.rst", "rst", "rst"),
        ("a.htm", "html", "html"),
        ("a.pdf", "pdf", "pdf"),
        ("a.docx", "docx", "docx"),
        ("a.tsv", "csv", "csv"),
        ("a.jsonl", "json", "json"),
        ("a.ipynb", "notebook", "jupyter"),
    ],
)
def test_pages_and_tables_have_readers_of_their_own(path: str, reader: str, language: str) -> None:
    assert (classify(path).reader, classify(path).language) == (reader, language)
