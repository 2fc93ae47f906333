"""Views of the search page: form, results, sidebar and explanation, as values for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dowse.query.plan.profiles import LINKS
from dowse.query.user_profiles import with_own
from dowse.serve.backend import Backend
from dowse.serve.page.address import PageQuery, address, changed, chunk_address, fresh, without
from dowse.serve.page.copy import ServerAddress, copies
from dowse.serve.page.facets import chips, facets
from dowse.serve.page.hits import EditorLinks, groups, place_of
from dowse.serve.page.why import Row, Values
from dowse.serve.paging import Cursor
from dowse.serve.plain_text import clean_line

FINAL = "done"  # last event of a stream


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
    rows = (
        ("alpha", "Alpha", "number", "by leg" if profile.weights else f"{profile.alpha:g}", "0.05"),
        ("top_k", "Results", "number", str(profile.top_k), "1"),
        ("path_filter", "Path", "text", "docs/** or *.py", ""),
        ("since", "Since", "text", "90d or 2026-01-31", ""),
        ("until", "Until", "text", "2026-01-31", ""),
    )
    inputs = [
        {"name": name, "label": label, "kind": kind, "value": own.get(name, ""), "hint": hint, "step": step}
        for name, label, kind, hint, step in rows
    ]
    selected = [each["name"] for each in selects]
    kept = without(fresh(query.pairs), "q", *selected, *(each["name"] for each in inputs))
    changes = sum(name in own for name in (*selected, "alpha", "top_k"))
    return {"text": query.text, "selects": selects, "inputs": inputs, "kept": kept, "changed": changes}


def _named(name: str, label: str, own: Mapping[str, str], values: Sequence[str], usual: str) -> Values:
    """Describe a field with a few values; the first means the default of the profile."""
    rows = [(value, value, own.get(name) == value) for value in values]
    return {"name": name, "label": label, "options": [("", f"default ({usual})", name not in own), *rows]}


def _truth(name: str, label: str, own: Mapping[str, str], usual: bool) -> Values:
    value = own.get(name, "").lower()
    on, off = value in ("true", "1"), value in ("false", "0")
    default = ("", f"default ({'on' if usual else 'off'})", not (on or off))
    return {"name": name, "label": label, "options": [default, ("true", "on", on), ("false", "off", off)]}


def result_view(row: Row, query: PageQuery, editor: EditorLinks, stage: str = FINAL) -> Values:
    """Convert a result in the wire format, also that of an unfinished stream."""
    cursor = dict(query.pairs).get("cursor", "")
    ranked = [each["chunks"] for each in row["groups"]] or [[each] for each in row["chunks"]]
    about = row["query_metadata"]
    slowest = max(about["stages"].values(), default=0.0) or 1.0
    base, next_cursor = fresh(query.pairs), row.get("next_cursor")
    coverage = about["embedding_coverage"]
    facts = [f"{about['chunks']:,} chunks", about["fusion"] or "", about["model"] or "keyword search only"]
    facts += [f"{coverage:.0%} of chunks embedded"] if 0 < coverage < 1 else []
    return dict(
        groups=groups(ranked, query.text, editor, 1 + (Cursor.parse(cursor).offset if cursor else 0)),
        hit_count=sum(map(len, ranked)),
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


def sidebar(row: Row, query: PageQuery, backend: Backend, server: ServerAddress) -> Values:
    return {
        "facets": facets(backend, query, row["facets"]),
        "chips": chips(query.pairs),
        "copies": copies(query.request, server),
    }


def explanation(row: Row, query: PageQuery) -> Values:
    """Add the links of the target and of the change to an explanation in the wire format."""
    chunk, change = row["chunk"], row["change"]
    return dict(row) | {
        "place": place_of(chunk),
        "href": chunk_address(chunk, query.text),
        "change_href": "" if change is None else address(changed(query.pairs, change["fields"])),
    }
