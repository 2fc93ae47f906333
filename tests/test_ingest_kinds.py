"""What a path says about a file."""

import pytest

from dowse.ingest.kinds import FORMATS, classify


@pytest.mark.parametrize(
    ("path", "reader", "language", "corpus_type"),
    [
        ("src/app/main.py", "code", "python", "CODE_LOGIC"),
        ("web/App.TSX", "code", "typescript", "CODE_LOGIC"),
        ("Dockerfile", "code", "dockerfile", "CODE_DEPLOY"),
        ("docker/Dockerfile.dev", "code", "dockerfile", "CODE_DEPLOY"),
        ("docker-compose.override.yml", "code", "yaml", "CODE_DEPLOY"),
        ("infra/main.tf", "code", "terraform", "CODE_DEPLOY"),
        ("k8s/auth.yaml", "code", "yaml", "CODE_DEPLOY"),
        ("charts/auth/values.yaml", "code", "yaml", "CODE_DEPLOY"),
        (".github/workflows/test.yml", "code", "yaml", "CODE_DEPLOY"),
        ("settings.yaml", "code", "yaml", "CODE_CONFIG"),
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
    assert not classify("paper.pdf").known
    kind = classify("paper.pdf", readers=("pdf", "text"))
    assert (kind.reader, kind.known) == ("pdf", True)


def test_every_language_is_written_in_lower_case() -> None:
    assert all(rule.kind.language in (None, str(rule.kind.language).lower()) for rule in FORMATS)
