"""A file's path goes in, its kind comes out: which reader, which language, which corpus type.

Two tables hold every rule. FORMATS goes by the file's name and says how it is read; PLACES goes by whole words of
the path and says what the writing is for. In both, the first rule that matches decides. The [[kinds]] tables of a
settings file come before both, and change what they name: reader, language, corpus type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from dowse.filters import Glob, holds
from dowse.ports import SourceFile
from dowse.types import CorpusType

LOGIC, DEPLOY, CONFIG = CorpusType.CODE_LOGIC, CorpusType.CODE_DEPLOY, CorpusType.CODE_CONFIG
PAGE = CorpusType.DOC_PAGE


@dataclass(frozen=True)
class Kind:
    """How a file is read and what it counts as."""

    reader: str
    language: str | None
    corpus_type: CorpusType
    known: bool = True  # False: no rule names it, so its bytes decide whether it is text at all
    own: bool = False  # a rule of the user's settings decided, in part or in whole


@dataclass(frozen=True)
class Format:
    """A rule by file name: lower-case globs, separated by blanks."""

    names: str
    kind: Kind


@dataclass(frozen=True)
class Place:
    """A rule by whole words of the path; `within` limits it to kinds that would otherwise be of these types."""

    words: frozenset[str]
    within: tuple[CorpusType, ...]
    corpus_type: CorpusType
    reader: str | None = None  # for what would be read as plain text


@dataclass(frozen=True)
class OwnKind:
    """A rule of the user's: globs over the path as `--path` has them, and what it changes; None leaves it."""

    globs: tuple[str, ...]
    reader: str | None = None
    language: str | None = None
    corpus_type: CorpusType | None = None


def _code(language: str, names: str, corpus_type: CorpusType = LOGIC) -> Format:
    return Format(names, Kind("code", language, corpus_type))


def _read(reader: str, language: str, names: str, corpus_type: CorpusType) -> Format:
    return Format(names, Kind(reader, language, corpus_type))


def _place(words: str, within: tuple[CorpusType, ...], corpus_type: CorpusType, reader: str | None = None) -> Place:
    return Place(frozenset(words.split()), within, corpus_type, reader)


FORMATS = (
    # Names before extensions: a Dockerfile.dev is not a "dev" file, requirements.txt is not prose.
    _read("dockerfile", "dockerfile", "dockerfile dockerfile.* *.dockerfile containerfile", DEPLOY),
    _read("yaml", "yaml", "docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml compose.*.yaml", DEPLOY),
    _read("yaml", "yaml", "chart.yaml kustomization.yaml kustomization.yml skaffold.yaml helmfile.yaml", DEPLOY),
    _read("yaml", "yaml", ".gitlab-ci.yml azure-pipelines.yml bitbucket-pipelines.yml cloudbuild.yaml", DEPLOY),
    _read("yaml", "yaml", ".travis.yml appveyor.yml action.yml buildspec.yml", DEPLOY),
    _code("toml", "fly.toml netlify.toml", DEPLOY),
    _code("groovy", "jenkinsfile jenkinsfile.*", DEPLOY),
    _code("procfile", "procfile", DEPLOY),
    _code("ruby", "vagrantfile", DEPLOY),
    _read("hcl", "terraform", "*.tf *.tfvars *.hcl *.nomad", DEPLOY),
    _code("requirements", "requirements*.txt constraints*.txt", CONFIG),
    _code("cmake", "cmakelists.txt *.cmake", CONFIG),
    _code("make", "makefile makefile.* gnumakefile *.mk justfile", CONFIG),
    _code("starlark", "build.bazel workspace *.bzl *.star tiltfile", CONFIG),
    _code("go-mod", "go.mod go.work", CONFIG),
    _code("ruby", "gemfile rakefile *.rb *.rake *.gemspec"),
    # Source code.
    _code("python", "*.py *.pyi *.pyw"),
    _code("javascript", "*.js *.mjs *.cjs *.jsx"),
    _code("typescript", "*.ts *.mts *.cts *.tsx"),
    _code("go", "*.go"),
    _code("rust", "*.rs"),
    _code("java", "*.java"),
    _code("kotlin", "*.kt *.kts"),
    _code("scala", "*.scala *.sc"),
    _code("groovy", "*.groovy *.gradle"),
    _code("c", "*.c *.h"),
    _code("cpp", "*.cc *.cpp *.cxx *.hh *.hpp *.hxx *.ipp"),
    _code("csharp", "*.cs *.csx"),
    _code("fsharp", "*.fs *.fsx"),
    _code("swift", "*.swift"),
    _code("objective-c", "*.m *.mm"),
    _code("php", "*.php"),
    _code("perl", "*.pl *.pm"),
    _code("lua", "*.lua"),
    _code("r", "*.r"),
    _code("julia", "*.jl"),
    _code("elixir", "*.ex *.exs"),
    _code("erlang", "*.erl *.hrl"),
    _code("haskell", "*.hs"),
    _code("ocaml", "*.ml *.mli"),
    _code("clojure", "*.clj *.cljs *.cljc"),
    _code("dart", "*.dart"),
    _code("zig", "*.zig"),
    _code("nim", "*.nim"),
    _code("shell", "*.sh *.bash *.zsh *.fish"),
    _code("powershell", "*.ps1 *.psm1"),
    _code("sql", "*.sql"),
    _code("graphql", "*.graphql *.gql"),
    _read("proto", "protobuf", "*.proto", LOGIC),
    _code("thrift", "*.thrift"),
    _code("css", "*.css *.scss *.sass *.less"),
    _code("vue", "*.vue"),
    _code("svelte", "*.svelte"),
    _code("assembly", "*.s *.asm"),
    Format("*.ipynb", Kind("notebook", "jupyter", LOGIC)),
    # Settings.
    _code("toml", "*.toml", CONFIG),
    _read("yaml", "yaml", "*.yml *.yaml", CONFIG),
    # Of a Slack export; its reader hands on what is none.
    Format("[12][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9].json", Kind("slack", "json", CONFIG)),
    Format(
        "users.json channels.json groups.json dms.json mpims.json integration_logs.json", Kind("slack", "json", CONFIG)
    ),
    Format("*.json *.json5 *.jsonc *.jsonl *.ndjson", Kind("json", "json", CONFIG)),
    _code("ini", "*.ini *.cfg *.conf *.properties *.editorconfig", CONFIG),
    _read("env", "env", "*.env env.*", CONFIG),
    _code("xml", "*.xml *.xsd *.plist", CONFIG),
    _code("nix", "*.nix", CONFIG),
    # Prose.
    Format("*.md *.markdown *.mdx *.mkd", Kind("markdown", "markdown", PAGE)),
    Format("*.rst *.rest", Kind("rst", "rst", PAGE)),
    Format("*.adoc *.asciidoc", Kind("text", "asciidoc", PAGE)),
    Format("*.org", Kind("text", "org", PAGE)),
    Format("*.tex *.bib", Kind("text", "tex", PAGE)),
    Format("*.html *.htm *.xhtml", Kind("html", "html", PAGE)),
    Format("*.pdf", Kind("pdf", "pdf", PAGE)),
    Format("*.docx", Kind("docx", "docx", PAGE)),
    Format("*.csv *.tsv", Kind("csv", "csv", PAGE)),
    # Conversations.
    Format("*.vtt *.srt", Kind("transcript", None, CorpusType.CONVO_TRANSCRIPT)),
    Format("*.mbox *.mbx *.eml", Kind("mail", None, CorpusType.CONVO_OTHER)),
    Format("*.txt *.text *.log", Kind("text", None, PAGE)),
    Format("license copying notice authors changelog readme contributing", Kind("text", None, PAGE)),
)

PLACES = (
    _place("k8s kubernetes helm charts kustomize manifests deploy deployment deployments", (CONFIG,), DEPLOY),
    _place("terraform ansible argocd workflows circleci ingress statefulset daemonset cronjob", (CONFIG,), DEPLOY),
    _place("runbook runbooks playbook playbooks", (PAGE,), CorpusType.DOC_RUNBOOK),
    _place("adr adrs decisions", (PAGE,), CorpusType.DOC_ADR),
    _place("transcript transcripts", (PAGE,), CorpusType.CONVO_TRANSCRIPT, "transcript"),
    _place("readme", (PAGE,), CorpusType.DOC_README),
    _place("paper papers", (PAGE,), CorpusType.DOC_PAPER),
)

UNKNOWN = Kind("text", None, PAGE, known=False)

_WORDS = re.compile(r"[^\W_]+")
BULKY = frozenset(("pdf", "docx"))
BULKY_TIMES = 8  # chosen: most of such a file is pictures and fonts
_BY_WHOLE_NAME = frozenset(("slack",))  # readers that know more of a file than its extension says


def classify(path: str, readers: Collection[str] = (), own: Sequence[OwnKind] = ()) -> Kind:
    """The kind of a file by its path inside the source, with forward slashes.

    `readers` are the names of the readers at hand: one that is called like the file's extension takes the file, which
    is how an installed reader `pdf` gets its files without a rule here.
    """
    kind = _classify(path, readers)
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
    """The kind of a file that is being read: as `classify` has it, with what the user's own rules changed."""
    kind = classify(file.path)
    language, corpus_type = file.language or kind.language, CorpusType(file.corpus_type or kind.corpus_type)
    return (
        kind
        if (language, corpus_type) == (kind.language, kind.corpus_type)
        else replace(kind, language=language, corpus_type=corpus_type)
    )


def _classify(path: str, readers: Collection[str]) -> Kind:
    kind = _by_name(path.rsplit("/", 1)[-1].lower())
    extension = extension_of(path)
    if extension in readers and kind.reader not in _BY_WHOLE_NAME:
        kind = replace(kind, reader=extension, known=True)
    words = _WORDS.findall(path.lower())
    for place in PLACES:
        if kind.corpus_type in place.within and not place.words.isdisjoint(words):
            reader = place.reader if place.reader and kind.reader == "text" else kind.reader
            return replace(kind, reader=reader, corpus_type=place.corpus_type)
    return kind


def most_bytes(path: str, max_file_bytes: int) -> int:
    """How large a file may be."""
    return max_file_bytes * (BULKY_TIMES if extension_of(path) in BULKY else 1)


def extension_of(path: str) -> str:
    """Lower-case, without the dot; empty when the name has none."""
    return path.rsplit("/", 1)[-1].lower().rpartition(".")[2] if "." in path.rsplit("/", 1)[-1] else ""


@lru_cache(maxsize=4096)
def _by_name(name: str) -> Kind:
    for rule in FORMATS:
        if any(fnmatchcase(name, pattern) for pattern in rule.names.split()):
            return rule.kind
    return UNKNOWN
