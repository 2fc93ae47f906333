"""CI pipelines: a chunk for each job."""

from __future__ import annotations

from collections.abc import Iterator

from dowse.ingest.chunking.document import ChunkSpan
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import Region, TextLines, regions, spans_of

# Keys beside the jobs of a pipeline that name no job (GitLab).
_NO_JOBS = frozenset(("default", "variables", "workflow", "include", "cache", "image", "services", "stages"))
_WORK = ("script", "steps", "run", "trigger", "extends", "uses")

Job = tuple[int, tuple[str, Node]]
"""First line, name and node."""


def is_ci(root: Node) -> bool:
    return root.kind == "map" and not root.get("apiVersion") and bool(_jobs(root))


def ci_pieces(page: TextLines, root: Node) -> Iterator[ChunkSpan]:
    """Return the chunks of the jobs. Text around them, triggers and variables for example, is cut by size."""
    jobs = _jobs(root)
    title = root.text_at("name")
    stop = root.after(jobs[-1][0], len(page.lines))
    for region, started in regions(page, Region(0, stop), jobs):
        if started is None:
            yield from spans_of(page, region, root, title)
            continue
        name, job = started
        yield from spans_of(
            page,
            region,
            job,
            title,
            f"job {name}",
            whole=True,
            symbol_name=name,
            symbol_kind="job",
            qualified_name=f"jobs.{name}",
            summary=job.text_at("name") or None,
        )
    if stop < len(page.lines):
        yield from spans_of(page, Region(stop, len(page.lines)), root, title)


def _jobs(root: Node) -> list[Job]:
    """Return the jobs under `jobs` (GitHub, CircleCI, Azure), or at the top (GitLab)."""
    holder = root.get("jobs")
    if holder is not None and holder.kind == "list":
        named = ((item.text_at("job") or item.text_at("deployment"), item) for item in holder.items)
        return [(item.first, (name, item)) for name, item in named if name]
    inside = holder.pairs if holder is not None else root.pairs
    jobs = [
        (key.first, (key.text, value))
        for key, value in inside
        if key.kind == "text" and value.kind == "map" and key.text not in _NO_JOBS and any(map(value.get, _WORK))
    ]
    # A file of settings may have a key `run` somewhere; a pipeline has `jobs`, or stages that its jobs name.
    return jobs if holder is not None or any(job.get("script") or job.get("stage") for _, (_, job) in jobs) else []
