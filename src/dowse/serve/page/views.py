"""Views of the search page: form, results, sidebar and explanation, as values for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dowse.query.plan.profiles import LINKS, Profile
from dowse.query.user_profiles import with_own
from dowse.serve.page.address import ONE_RESULT, PageQuery, address, changed, document_address, fresh
from dowse.serve.page.copy import ServerAddress, copies
from dowse.serve.page.facets import chips, facets
from dowse.serve.page.hits import EditorLinks, groups
from dowse.serve.plain_text import clean_line, clean_path

if TYPE_CHECKING:
    from dowse.serve.backend import Backend

Row = Mapping[str, Any]
Values = dict[str, Any]  # of a template
FINAL = "done"  # last event of a stream


class SelectOption(Struct, frozen=True):
    """Option of a select field."""

    value: str
    label: str
    chosen: bool


class SelectField(Struct, frozen=True):
    """Form field with a few values; the first means the default of the profile."""

    name: str
    label: str
    options: tuple[SelectOption, ...]


class InputField(Struct, frozen=True):
    """Form field with typed text."""

    name: str
    label: str
    kind: str
    value: str
    hint: str
    step: str = "any"


def search_form(query: PageQuery, backend: Backend) -> Values:
    own = dict(query.pairs)
    profiles = with_own(backend.engine.config.profiles)
    chosen = own.get("profile", backend.engine.config.profile)
    profile = next((each for each in profiles if each.name == chosen), profiles[0])
    selects = (
        _named("profile", "Profile", own, [each.name for each in profiles], backend.engine.config.profile),
        _named("fusion", "Fusion", own, ["z", "rrf", "minmax"], profile.fusion),
        _named("rerank", "Reranker", own, ["none", *LINKS], ", ".join(profile.rerank) or "none"),
        _truth("mmr", "Diversity (MMR)", own, profile.mmr),
        _truth("graph", "Graph", own, profile.graph),
        _truth("expand_graph", "Services", own, profile.expand_graph),
    )
    inputs = (
        InputField("alpha", "Alpha", "number", own.get("alpha", ""), _number(profile), "0.05"),
        InputField("top_k", "Results", "number", own.get("top_k", ""), str(profile.top_k), "1"),
        InputField("path_filter", "Path", "text", own.get("path_filter", ""), "docs/** or *.py"),
        InputField("since", "Since", "text", own.get("since", ""), "90d or 2026-01-31"),
        InputField("until", "Until", "text", own.get("until", ""), "2026-01-31"),
    )
    names = {"q", *(each.name for each in selects), *(each.name for each in inputs)}
    kept = tuple(pair for pair in query.pairs if pair[0] not in names and pair[0] not in ONE_RESULT)
    knobs = [each.name for each in selects] + ["alpha", "top_k"]
    changes = sum(name in own for name in knobs)
    return {"text": query.text, "selects": selects, "inputs": inputs, "kept": kept, "changed": changes}


def _named(name: str, label: str, own: Mapping[str, str], values: Sequence[str], usual: str) -> SelectField:
    rest = [SelectOption(value, value, own.get(name) == value) for value in values]
    return SelectField(name, label, (SelectOption("", f"default ({usual})", name not in own), *rest))


def _truth(name: str, label: str, own: Mapping[str, str], usual: bool) -> SelectField:
    value = own.get(name, "").lower()
    on, off = value in ("true", "1"), value in ("false", "0")
    shown = f"default ({'on' if usual else 'off'})"
    return SelectField(
        name,
        label,
        (SelectOption("", shown, not (on or off)), SelectOption("true", "on", on), SelectOption("false", "off", off)),
    )


def _number(profile: Profile) -> str:
    return "by leg" if profile.weights else f"{profile.alpha:g}"


def result_view(row: Row, query: PageQuery, editor: EditorLinks, stage: str = FINAL) -> Values:
    """Convert a result in the wire format, also that of an unfinished stream."""
    cursor = dict(query.pairs).get("cursor", "")
    rows, about = row["chunks"], row["query_metadata"]
    slowest = max(about["stages"].values(), default=0.0) or 1.0
    base, next_cursor = fresh(query.pairs), row.get("next_cursor")
    coverage = about["embedding_coverage"]
    facts = [f"{about['chunks']:,} chunks", about["fusion"] or "", about["model"] or "keyword search only"]
    facts += [f"{coverage:.0%} of chunks embedded"] if 0 < coverage < 1 else []
    return dict(
        groups=groups(rows, query.text, editor, 1 + _offset(cursor)),
        hit_count=len(rows),
        chunks=about["chunks"],
        total_ms=about["total_ms"],
        stage=stage,
        nothing_found=row["nothing_found"],
        notices=tuple((each["stage"], clean_line(each["reason"])) for each in row["degraded"]),
        metadata_answer=clean_line(row["metadata_answer"] or ""),
        variants=tuple(clean_line(each) for each in row["expanded_queries"][1:]),
        facts=tuple(fact for fact in facts if fact),
        stages=tuple((name, ms, round(100 * ms / slowest, 1)) for name, ms in about["stages"].items()),
        services=tuple(row["service_context"] or ()),
        following=address((*base, ("cursor", next_cursor))) if next_cursor else "",
        beginning=address(base) if cursor else "",
        here=address(query.pairs),
    )


def _offset(cursor: str) -> int:
    from dowse.serve.paging import Cursor

    return Cursor.parse(cursor).offset if cursor else 0


def sidebar(row: Row, query: PageQuery, backend: Backend, server: ServerAddress) -> Values:
    return {
        "facets": facets(backend, query, row["facets"]),
        "chips": chips(query.pairs),
        "copies": copies(query.request, server),
    }


def explanation(row: Row, query: PageQuery) -> Values:
    """Add the links of the target and of the change to an explanation in the wire format."""
    chunk, change, first = row["chunk"], row["change"], row["chunk"]["start_line"]
    lines = (first, chunk["end_line"] or first) if first else None
    return dict(row) | {
        "place": clean_path(chunk["source_uri"]) + (f":{first}" if first else ""),
        "href": document_address(chunk["source_uri"], query.text, lines),
        "change_href": "" if change is None else address(changed(query.pairs, change["fields"])),
    }
