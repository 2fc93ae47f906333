"""A file's path goes in, its kind comes out: which reader, which language, which corpus type.

Two tables hold every rule. FORMATS goes by the file's name and says how it is read; PLACES goes by whole words of
the path and says what the writing is for. In both, the first rule that matches decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

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


def _code(language: str, names: str, corpus_type: CorpusType = LOGIC) -> Format:
    return Format(names, Kind("code", language, corpus_type))


def _place(words: str, within: tuple[CorpusType, ...], corpus_type: CorpusType) -> Place:
    return Place(frozenset(words.split()), within, corpus_type)


FORMATS = (
    # Names before extensions: a Dockerfile.dev is not a "dev" file, requirements.txt is not prose.
    _code("dockerfile", "dockerfile dockerfile.* *.dockerfile containerfile", DEPLOY),
    _code("yaml", "docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml compose.*.yaml", DEPLOY),
    _code("yaml", "chart.yaml kustomization.yaml kustomization.yml skaffold.yaml helmfile.yaml", DEPLOY),
    _code("yaml", ".gitlab-ci.yml azure-pipelines.yml bitbucket-pipelines.yml cloudbuild.yaml", DEPLOY),
    _code("yaml", ".travis.yml appveyor.yml action.yml buildspec.yml", DEPLOY),
    _code("toml", "fly.toml netlify.toml", DEPLOY),
    _code("groovy", "jenkinsfile jenkinsfile.*", DEPLOY),
    _code("procfile", "procfile", DEPLOY),
    _code("ruby", "vagrantfile", DEPLOY),
    _code("terraform", "*.tf *.tfvars *.hcl *.nomad", DEPLOY),
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
    _code("protobuf", "*.proto"),
    _code("thrift", "*.thrift"),
    _code("css", "*.css *.scss *.sass *.less"),
    _code("vue", "*.vue"),
    _code("svelte", "*.svelte"),
    _code("assembly", "*.s *.asm"),
    _code("jupyter", "*.ipynb"),
    # Settings.
    _code("toml", "*.toml", CONFIG),
    _code("yaml", "*.yml *.yaml", CONFIG),
    _code("json", "*.json *.json5 *.jsonc *.jsonl *.ndjson", CONFIG),
    _code("ini", "*.ini *.cfg *.conf *.properties *.editorconfig", CONFIG),
    _code("env", "*.env env.*", CONFIG),
    _code("xml", "*.xml *.xsd *.plist", CONFIG),
    _code("nix", "*.nix", CONFIG),
    # Prose.
    Format("*.md *.markdown *.mdx *.mkd", Kind("markdown", "markdown", PAGE)),
    Format("*.rst", Kind("text", "rst", PAGE)),
    Format("*.adoc *.asciidoc", Kind("text", "asciidoc", PAGE)),
    Format("*.org", Kind("text", "org", PAGE)),
    Format("*.tex *.bib", Kind("text", "tex", PAGE)),
    Format("*.html *.htm *.xhtml", Kind("text", "html", PAGE)),
    Format("*.txt *.text *.log *.csv *.tsv", Kind("text", None, PAGE)),
    Format("license copying notice authors changelog readme contributing", Kind("text", None, PAGE)),
)

PLACES = (
    _place("k8s kubernetes helm charts kustomize manifests deploy deployment deployments", (CONFIG,), DEPLOY),
    _place("terraform ansible argocd workflows circleci ingress statefulset daemonset cronjob", (CONFIG,), DEPLOY),
    _place("runbook runbooks playbook playbooks", (PAGE,), CorpusType.DOC_RUNBOOK),
    _place("adr adrs decisions", (PAGE,), CorpusType.DOC_ADR),
    _place("readme", (PAGE,), CorpusType.DOC_README),
    _place("paper papers", (PAGE,), CorpusType.DOC_PAPER),
)

UNKNOWN = Kind("text", None, PAGE, known=False)

_WORDS = re.compile(r"[^\W_]+")


def classify(path: str, readers: Collection[str] = ()) -> Kind:
    """The kind of a file by its path inside the source, with forward slashes.

    `readers` are the names of the readers at hand: one that is called like the file's extension takes the file, which
    is how an installed reader `pdf` gets its files without a rule here.
    """
    kind = _by_name(path.rsplit("/", 1)[-1].lower())
    extension = extension_of(path)
    if extension in readers:
        kind = replace(kind, reader=extension, known=True)
    words = _WORDS.findall(path.lower())
    for place in PLACES:
        if kind.corpus_type in place.within and not place.words.isdisjoint(words):
            return replace(kind, corpus_type=place.corpus_type)
    return kind


def extension_of(path: str) -> str:
    """Lower-case, without the dot; empty when the name has none."""
    return path.rsplit("/", 1)[-1].lower().rpartition(".")[2] if "." in path.rsplit("/", 1)[-1] else ""


@lru_cache(maxsize=4096)
def _by_name(name: str) -> Kind:
    for rule in FORMATS:
        if any(fnmatchcase(name, pattern) for pattern in rule.names.split()):
            return rule.kind
    return UNKNOWN
