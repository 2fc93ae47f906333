"""What a backend tells enters; the values that the page's templates show leave, each a frozen view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dowse.query.plan.profiles import LINKS, Profile
from dowse.query.user_profiles import with_own
from dowse.serve.page.address import CHOSEN_ANEW, Pairs, Wanted, address, changed, document_address, fresh
from dowse.serve.page.copy import Copy, Origin, copies
from dowse.serve.page.facets import Chip, Facet, chips, facets
from dowse.serve.page.hits import Editor, Group, groups
from dowse.serve.plain_text import clean_line, clean_path

if TYPE_CHECKING:
    from dowse.serve.backend import Backend

Row = Mapping[str, Any]
SETTLED = "done"


@dataclass(frozen=True)
class Option:
    value: str
    label: str
    chosen: bool


@dataclass(frozen=True)
class Switch:
    """A field of the form that has a few values, the first of which means: what the profile says."""

    name: str
    label: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Field:
    """A field of the form that is typed into."""

    name: str
    label: str
    kind: str
    value: str
    hint: str
    step: str = "any"


@dataclass(frozen=True)
class Form:
    """The question and its switches, as the address has them."""

    text: str
    switches: tuple[Switch, ...]
    fields: tuple[Field, ...]
    kept: Pairs  # what the form does not show but must not lose
    changed: int  # switches that are not as the profile has them


@dataclass(frozen=True)
class Answer:
    """A result, shown."""

    groups: tuple[Group, ...]
    hit_count: int
    chunks: int  # in the index
    total_ms: float
    stage: str  # after which it stood so; "done" when it will not change any more
    sure: str
    nothing_found: bool
    notices: tuple[tuple[str, str], ...]
    metadata_answer: str
    variants: tuple[str, ...]
    facts: tuple[str, ...]
    stages: tuple[tuple[str, float, float], ...]  # name, milliseconds, share of the slowest in per cent
    services: tuple[str, ...] = ()
    following: str = ""  # the address of the next page
    beginning: str = ""  # of the first page, when this is another
    here: str = "/"  # this page's own


@dataclass(frozen=True)
class Around:
    """What stands beside an answer."""

    facets: tuple[Facet, ...]
    chips: tuple[Chip, ...]
    copies: tuple[Copy, ...]


@dataclass(frozen=True)
class WhyNot:
    """What became of a place that was asked about."""

    target: str
    place: str
    href: str
    rank: int | None
    steps: tuple[tuple[str, str, int, str], ...]  # stage, rank, of how many, note
    loss: str
    change: str
    change_rank: int | None
    change_href: str
    tried: int


def form(wanted: Wanted, backend: Backend) -> Form:
    own = dict(wanted.pairs)
    profiles = with_own(backend.engine.config.profiles)
    chosen = own.get("profile", backend.engine.config.profile)
    profile = next((each for each in profiles if each.name == chosen), profiles[0])
    switches = (
        _named("profile", "Profile", own, [each.name for each in profiles], backend.engine.config.profile),
        _named("fusion", "Fusion", own, ["z", "rrf", "minmax"], profile.fusion),
        _named("rerank", "Reranker", own, ["none", *LINKS], ", ".join(profile.rerank) or "none"),
        _truth("mmr", "Diversity (MMR)", own, profile.mmr),
        _truth("graph", "Graph", own, profile.graph),
        _truth("expand_graph", "Services", own, profile.expand_graph),
    )
    typed = (
        Field("alpha", "Alpha", "number", own.get("alpha", ""), _number(profile), "0.05"),
        Field("top_k", "Hits", "number", own.get("top_k", ""), str(profile.top_k), "1"),
        Field("path_filter", "Path", "text", own.get("path_filter", ""), "docs/** or *.py"),
        Field("since", "Since", "text", own.get("since", ""), "90d or 2026-01-31"),
        Field("until", "Until", "text", own.get("until", ""), "2026-01-31"),
    )
    names = {"q", *(each.name for each in switches), *(each.name for each in typed)}
    kept = tuple(pair for pair in wanted.pairs if pair[0] not in names and pair[0] not in CHOSEN_ANEW)
    knobs = [each.name for each in switches] + ["alpha", "top_k"]
    return Form(wanted.text, switches, typed, kept, sum(name in own for name in knobs))


def _named(name: str, label: str, own: Mapping[str, str], values: Sequence[str], usual: str) -> Switch:
    rest = [Option(value, value, own.get(name) == value) for value in values]
    return Switch(name, label, (Option("", f"as usual ({usual})", name not in own), *rest))


def _truth(name: str, label: str, own: Mapping[str, str], usual: bool) -> Switch:
    said = own.get(name, "").lower()
    on, off = said in ("true", "1"), said in ("false", "0")
    shown = f"as usual ({'on' if usual else 'off'})"
    return Switch(
        name, label, (Option("", shown, not (on or off)), Option("true", "on", on), Option("false", "off", off))
    )


def _number(profile: Profile) -> str:
    return "by leg" if profile.weights else f"{profile.alpha:g}"


def answer(row: Row, wanted: Wanted, editor: Editor, stage: str = SETTLED) -> Answer:
    """A result in the wire format; of a stream's earlier events, too."""
    cursor = dict(wanted.pairs).get("cursor", "")
    rows, about = row["chunks"], row["query_metadata"]
    slowest = max(about["stages"].values(), default=0.0) or 1.0
    base, next_cursor = fresh(wanted.pairs), row.get("next_cursor")
    coverage = about["embedding_coverage"]
    facts = [f"{about['chunks']:,} chunks", about["fusion"] or "", about["model"] or "words only"]
    facts += [f"{coverage:.0%} have a vector"] if 0 < coverage < 1 else []
    return Answer(
        groups=groups(rows, wanted.text, editor, 1 + _offset(cursor)),
        hit_count=len(rows),
        chunks=about["chunks"],
        total_ms=about["total_ms"],
        stage=stage,
        sure="" if row["confidence"] is None else f"{row['confidence']:.0%}",
        nothing_found=row["nothing_found"],
        notices=tuple((each["stage"], clean_line(each["reason"])) for each in row["degraded"]),
        metadata_answer=clean_line(row["metadata_answer"] or ""),
        variants=tuple(clean_line(each) for each in row["expanded_queries"][1:]),
        facts=tuple(fact for fact in facts if fact),
        stages=tuple((name, ms, round(100 * ms / slowest, 1)) for name, ms in about["stages"].items()),
        services=tuple(row["service_context"] or ()),
        following=address((*base, ("cursor", next_cursor))) if next_cursor else "",
        beginning=address(base) if cursor else "",
        here=address(wanted.pairs),
    )


def _offset(cursor: str) -> int:
    from dowse.serve.paging import Cursor

    return Cursor.parse(cursor).offset if cursor else 0


def around(row: Row, wanted: Wanted, backend: Backend, origin: Origin) -> Around:
    return Around(
        facets(backend, wanted, row["facets"]),
        chips(wanted.pairs),
        copies(wanted.request, origin),
    )


def why_not(row: Row, wanted: Wanted) -> WhyNot:
    chunk, change, first = row["chunk"], row["change"], row["chunk"]["start_line"]
    steps = tuple(
        (
            each["stage"],
            "–" if each["rank"] is None else f"#{each['rank']}",
            each["of"],
            clean_line(each["note"] or ""),
        )
        for each in row["way"]
    )
    lines = (first, chunk["end_line"] or first) if first else None
    return WhyNot(
        target=clean_path(row["target"]),
        place=clean_path(chunk["source_uri"]) + (f":{first}" if first else ""),
        href=document_address(chunk["source_uri"], wanted.text, lines),
        rank=row["rank"],
        steps=steps,
        loss="" if row["loss"] is None else f"Lost at {row['loss']['stage']}: {clean_line(row['loss']['reason'])}.",
        change="" if change is None else clean_line(change["told"]),
        change_rank=None if change is None else change["rank"],
        change_href="" if change is None else address(changed(wanted.pairs, change["fields"])),
        tried=row["tried"],
    )
