"""Kind of a file by its path: reader, language and corpus type.

Two tables hold every rule. NAME_RULES match the file's name and choose the reader; PATH_RULES match whole words of the
path and choose the purpose of the text. In both, the first match decides. The [[kinds]] tables of a settings file come
before both and change the fields they name: reader, language, corpus type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from dowse.config import suggestion
from dowse.errors import BadRequestError
from dowse.filters import Glob, holds
from dowse.ports import FileKind, SourceFile
from dowse.types import CorpusType

Kind = FileKind

LOGIC, DEPLOY, CONFIG = CorpusType.CODE_LOGIC, CorpusType.CODE_DEPLOY, CorpusType.CODE_CONFIG
PAGE, CHAT, TALK = CorpusType.DOC_PAGE, CorpusType.CONVO_OTHER, CorpusType.CONVO_TRANSCRIPT


class PathRule(NamedTuple):
    """Rule by whole words of the path, for kinds that would otherwise be of type `within`."""

    words: str  # separated by blanks
    within: CorpusType
    corpus_type: CorpusType
    reader: str | None = None  # for files that would be read as plain text


class UserRule(msgspec.Struct, frozen=True):
    """Rule of the user: globs over the path as in `--path`, and the changes; None changes nothing."""

    globs: tuple[str, ...]
    reader: str | None = None
    language: str | None = None
    corpus_type: CorpusType | None = None


# Language and names of source code that the reader "code" reads.
_LANGUAGES = {
    "python": "*.py *.pyi *.pyw", "javascript": "*.js *.mjs *.cjs *.jsx", "typescript": "*.ts *.mts *.cts *.tsx",
    "ruby": "gemfile rakefile *.rb *.rake *.gemspec", "go": "*.go", "rust": "*.rs", "java": "*.java",
    "kotlin": "*.kt *.kts", "scala": "*.scala *.sc", "groovy": "*.groovy *.gradle", "c": "*.c *.h",
    "cpp": "*.cc *.cpp *.cxx *.hh *.hpp *.hxx *.ipp", "csharp": "*.cs *.csx", "fsharp": "*.fs *.fsx",
    "swift": "*.swift", "objective-c": "*.m *.mm", "php": "*.php", "perl": "*.pl *.pm", "lua": "*.lua", "r": "*.r",
    "julia": "*.jl", "elixir": "*.ex *.exs", "erlang": "*.erl *.hrl", "haskell": "*.hs", "ocaml": "*.ml *.mli",
    "clojure": "*.clj *.cljs *.cljc", "dart": "*.dart", "zig": "*.zig", "nim": "*.nim",
    "shell": "*.sh *.bash *.zsh *.fish", "powershell": "*.ps1 *.psm1", "sql": "*.sql", "graphql": "*.graphql *.gql",
    "thrift": "*.thrift", "css": "*.css *.scss *.sass *.less", "vue": "*.vue", "svelte": "*.svelte",
    "assembly": "*.s *.asm",
}  # fmt: skip

# Lower-case globs, then reader, language and corpus type.
NAME_RULES: tuple[tuple[str, str, str | None, CorpusType], ...] = (
    # Names before extensions: a Dockerfile.dev is not a "dev" file, requirements.txt is not prose.
    ("dockerfile dockerfile.* *.dockerfile containerfile", "dockerfile", "dockerfile", DEPLOY),
    ("docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml compose.*.yaml", "yaml", "yaml", DEPLOY),
    ("chart.yaml kustomization.yaml kustomization.yml skaffold.yaml helmfile.yaml", "yaml", "yaml", DEPLOY),
    (".gitlab-ci.yml azure-pipelines.yml bitbucket-pipelines.yml cloudbuild.yaml", "yaml", "yaml", DEPLOY),
    (".travis.yml appveyor.yml action.yml buildspec.yml", "yaml", "yaml", DEPLOY),
    ("fly.toml netlify.toml", "code", "toml", DEPLOY),
    ("jenkinsfile jenkinsfile.*", "code", "groovy", DEPLOY),
    ("procfile", "code", "procfile", DEPLOY),
    ("vagrantfile", "code", "ruby", DEPLOY),
    ("*.tf *.tfvars *.hcl *.nomad", "hcl", "terraform", DEPLOY),
    ("requirements*.txt constraints*.txt", "code", "requirements", CONFIG),
    ("cmakelists.txt *.cmake", "code", "cmake", CONFIG),
    ("makefile makefile.* gnumakefile *.mk justfile", "code", "make", CONFIG),
    ("build.bazel workspace *.bzl *.star tiltfile", "code", "starlark", CONFIG),
    ("go.mod go.work", "code", "go-mod", CONFIG),
    *((names, "code", language, LOGIC) for language, names in _LANGUAGES.items()),
    ("*.proto", "proto", "protobuf", LOGIC),
    ("*.ipynb", "notebook", "jupyter", LOGIC),
    # Settings.
    ("*.toml", "code", "toml", CONFIG),
    ("*.yml *.yaml", "yaml", "yaml", CONFIG),
    # Names of a Slack export; its reader passes other JSON on.
    ("[12][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9].json", "slack", "json", CONFIG),
    ("users.json channels.json groups.json dms.json mpims.json integration_logs.json", "slack", "json", CONFIG),
    ("*.json *.json5 *.jsonc *.jsonl *.ndjson", "json", "json", CONFIG),
    ("*.ini *.cfg *.conf *.properties *.editorconfig", "code", "ini", CONFIG),
    ("*.env env.*", "env", "env", CONFIG),
    ("*.xml *.xsd *.plist", "code", "xml", CONFIG),
    ("*.nix", "code", "nix", CONFIG),
    # Prose.
    ("*.md *.markdown *.mdx *.mkd", "markdown", "markdown", PAGE),
    ("*.rst *.rest", "rst", "rst", PAGE),
    ("*.adoc *.asciidoc", "text", "asciidoc", PAGE),
    ("*.org", "text", "org", PAGE),
    ("*.tex *.bib", "text", "tex", PAGE),
    ("*.html *.htm *.xhtml", "html", "html", PAGE),
    ("*.pdf", "pdf", "pdf", PAGE),
    ("*.docx", "docx", "docx", PAGE),
    ("*.csv *.tsv", "csv", "csv", PAGE),
    # Conversations.
    ("*.vtt *.srt", "transcript", None, TALK),
    ("*.mbox *.mbx *.eml", "mail", None, CHAT),
    ("*.txt *.text *.log license copying notice authors changelog readme contributing", "text", None, PAGE),
)

PATH_RULES = (
    PathRule("k8s kubernetes helm charts kustomize manifests deploy deployment deployments", CONFIG, DEPLOY),
    PathRule("terraform ansible argocd workflows circleci ingress statefulset daemonset cronjob", CONFIG, DEPLOY),
    PathRule("runbook runbooks playbook playbooks", PAGE, CorpusType.DOC_RUNBOOK),
    PathRule("adr adrs decisions", PAGE, CorpusType.DOC_ADR),
    PathRule("transcript transcripts", PAGE, TALK, "transcript"),
    PathRule("readme", PAGE, CorpusType.DOC_README),
    PathRule("paper papers", PAGE, CorpusType.DOC_PAPER),
)

UNKNOWN = Kind("text", None, PAGE, known=False)

_WORDS = re.compile(r"[^\W_]+")
BULKY = frozenset(("pdf", "docx"))
BULKY_TIMES = 8  # chosen: most of such a file is pictures and fonts
_BY_WHOLE_NAME = frozenset(("slack",))  # readers chosen by more than the extension


def classify(path: str, readers: Collection[str] = (), own: Sequence[UserRule] = ()) -> Kind:
    """Classify a file by its path inside the source, with forward slashes.

    `readers` are the names of the available readers: a reader named like the file's extension reads the file, so that
    an installed reader `djvu` needs no rule here.
    """
    kind = _by_name(path.rpartition("/")[2].lower())
    extension = extension_of(path)
    if extension in readers and kind.reader not in _BY_WHOLE_NAME:
        kind = replace(kind, reader=extension, known=True)
    words = set(_WORDS.findall(path.lower()))
    for place in PATH_RULES:
        if kind.corpus_type == place.within and not words.isdisjoint(place.words.split()):
            reader = place.reader if place.reader and kind.reader == "text" else kind.reader
            kind = replace(kind, reader=reader, corpus_type=place.corpus_type)
            break
    rule = next((each for each in own if holds(Glob("file_path", each.globs), path)), None)
    if rule is None:
        return kind
    return Kind(
        reader=rule.reader or kind.reader,
        language=rule.language or kind.language,
        corpus_type=rule.corpus_type or kind.corpus_type,
        own=True,
    )


def kind_of(file: SourceFile) -> Kind:
    """Return the kind of a file that is being read; a file from outside the pipeline is classified here."""
    if file.kind is not None:
        return file.kind
    kind = classify(file.path)
    corpus_type = CorpusType(file.corpus_type or kind.corpus_type)
    return replace(kind, language=file.language or kind.language, corpus_type=corpus_type)


def most_bytes(path: str, max_file_bytes: int) -> int:
    """Return the size limit of a file."""
    return max_file_bytes * (BULKY_TIMES if extension_of(path) in BULKY else 1)


def extension_of(path: str) -> str:
    """Return the extension in lower case without the dot; empty without one."""
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    return extension.lower() if dot else ""


@lru_cache(maxsize=4096)
def _by_name(name: str) -> Kind:
    found = _name_rules().match(name)
    return UNKNOWN if found is None or found.lastindex is None else Kind(*NAME_RULES[found.lastindex - 1][1:])


@lru_cache(maxsize=1)
def _name_rules() -> re.Pattern[str]:
    """One expression for all rules: the first that matches is a group with its number, from 1."""
    return re.compile("|".join(f"({'|'.join(map(translate, globs.split()))})" for globs, *_ in NAME_RULES))


KEYS = ("match", "reader", "language", "corpus_type")


def user_rules(tables: Sequence[Mapping[str, Any]], readers: Collection[str]) -> tuple[UserRule, ...]:
    """Check the [[kinds]] tables of a settings file; the first rule that matches a file decides."""
    return tuple(_rule(table, f"[[kinds]] number {number}", readers) for number, table in enumerate(tables, start=1))


def _rule(table: Mapping[str, Any], where: str, readers: Collection[str]) -> UserRule:
    for key in table:
        if key not in KEYS:
            raise BadRequestError(f"{where}: unknown key {key!r}; {suggestion(key, KEYS)}")
    match = table.get("match")
    globs = [match] if isinstance(match, str) else match
    if not isinstance(globs, list) or not globs or not all(isinstance(each, str) and each for each in globs):
        raise BadRequestError(f'{where}: match must be a glob or a list of globs, as match = ["*.pyx", "infra/**"]')
    if len(table) == 1:
        raise BadRequestError(f"{where}: the rule changes nothing; add reader, language or corpus_type")
    known: dict[str, Sequence[str]] = {
        "reader": sorted(readers), "language": (), "corpus_type": [each.value for each in CorpusType],
    }  # fmt: skip
    for key, choices in known.items():
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise BadRequestError(f"{where}: {key} is {value!r}, but must be text in quotes")
        if value is not None and choices and value not in choices:
            raise BadRequestError(f"{where}: unknown {key} {value!r}; {suggestion(value, choices)}")
    corpus = table.get("corpus_type")
    return UserRule(tuple(globs), table.get("reader"), table.get("language"), CorpusType(corpus) if corpus else None)
