"""The description of a CI pipeline goes in; a piece for each of its jobs comes out."""

from __future__ import annotations

from collections.abc import Iterator

from dowse.ingest.chunking.document import Piece
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import SEPARATOR, Page, Region, parts, regions, whole_or_parts

# Keys of a pipeline that do not name a job, though they stand where jobs do (GitLab).
_NO_JOBS = frozenset(("default", "variables", "workflow", "include", "cache", "image", "services", "stages"))
_WORK = ("script", "steps", "run", "trigger", "extends", "uses")

Job = tuple[str, int, Node]
"""Its name, the line it starts on, and itself."""


def is_ci(root: Node | None) -> bool:
    return root is not None and root.kind == "map" and not root.get("apiVersion") and bool(_jobs(root))


def ci_pieces(page: Page, root: Node) -> Iterator[Piece]:
    """What stands around the jobs, triggers and variables for example, is cut as it comes."""
    jobs = _jobs(root)
    name = root.text_at("name")
    stop = _stop(page, root, jobs[-1][1])
    for region, number in regions(page, Region(0, stop), [line for _, line, _ in jobs]):
        if number is None:
            yield from _rest(page, region, root, name)
        else:
            yield from _job(page, region, jobs[number], name)
    if stop < len(page.lines):
        yield from _rest(page, Region(stop, len(page.lines)), root, name)


def _jobs(root: Node) -> list[Job]:
    """Under `jobs` (GitHub, CircleCI, Azure), or at the top (GitLab)."""
    holder = root.get("jobs")
    if holder is not None and holder.kind == "list":
        named = ((item.text_at("job") or item.text_at("deployment"), item) for item in holder.items)
        return [(name, item.first, item) for name, item in named if name]
    inside = holder.pairs if holder is not None else root.pairs
    jobs = [
        (key.text, key.first, value)
        for key, value in inside
        if key.kind == "text" and value.kind == "map" and key.text not in _NO_JOBS and _works(value)
    ]
    # A file of settings may have a key `run` somewhere; a pipeline has `jobs`, or stages that its jobs name.
    return jobs if holder is not None or any(value.get("script") or value.get("stage") for _, _, value in jobs) else []


def _works(job: Node) -> bool:
    return any(job.get(key) for key in _WORK)


def _stop(page: Page, root: Node, last: int) -> int:
    """Where the first key behind the last job starts."""
    return min((key.first for key, _ in root.pairs if key.first > last), default=len(page.lines))


def _rest(page: Page, region: Region, root: Node, name: str) -> Iterator[Piece]:
    for part in parts(page, region, root):
        yield Piece(part.span, SEPARATOR.join(each for each in (name, *part.path) if each))


def _job(page: Page, region: Region, job: Job, name: str) -> Iterator[Piece]:
    for part in whole_or_parts(page, region, job[2]):
        yield Piece(
            part.span,
            SEPARATOR.join(each for each in (name, f"job {job[0]}", *part.path) if each),
            symbol_name=job[0],
            symbol_kind="job",
            qualified_name=f"jobs.{job[0]}",
            summary=job[2].text_at("name") or None,
        )
