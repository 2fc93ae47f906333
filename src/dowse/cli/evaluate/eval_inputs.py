"""Inputs of `dowse eval` and `dowse tune`: folders, files and flags enter, opened collections leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.options import option
from dowse.cli.session import CommandSession
from dowse.config import default_models_folder, find_index, new_index
from dowse.errors import BadRequestError

if TYPE_CHECKING:
    from dowse.evaluate.collection import Collection
    from dowse.evaluate.run import QueryRunner
    from dowse.models.choose import Models
    from dowse.ports import Reporter

FOLDER = click.Path(path_type=Path)
INPUT_OPTIONS = (  # no name of a field of QueryRequest, such as `cache`
    option("--judged", is_flag=True, group="Input", help="Use the judgments that `dowse judge` stored in the index."),
    option("--split", metavar="NAME", group="Input", help="Use this set of judgments [default: test, dev or train]."),
    option("--limit-queries", type=int, metavar="N", group="Input", help="Use N of the queries [default: all]."),
    option("--embedder", metavar="MODEL", group="Input",
           help="Embed with auto, none, a name, a folder, a hub id or URL#model [default: auto]."),
    option("--cache", "cache_folder", type=FOLDER, metavar="DIR", group="Input",
           help="Keep the indexes of collections here [default: the user's cache folder]."),
)  # fmt: skip


@contextmanager
def runners(
    session: CommandSession, places: Sequence[Path], flags: Mapping[str, Any], report: Reporter | None
) -> Iterator[list[QueryRunner]]:
    """Open the collections: a folder is one; a file, or `--judged`, has judgments of the current index."""
    from dowse.evaluate.run import QueryRunner
    from dowse.models.choose import Models
    from dowse.models.cross_encoder import open_cross_encoder
    from dowse.query.assemble import Parts
    from dowse.query.user_profiles import with_own

    if not places and not flags["judged"]:
        raise BadRequestError("missing input; add a dataset folder, a judgments file, or --judged")
    session = session.with_config(embedder=flags["embedder"])
    config = session.config
    index = config.index or find_index(session.cwd) or new_index(session.cwd)
    models = Models(config.embedder, config.models_folder, config.threads, index)
    with ExitStack() as stack:
        found: list[Collection] = []
        for place in places:
            opening = _of_index(session, models, place) if place.is_file() else _of_folder(place, flags, models, report)
            found.append(stack.enter_context(opening))
        if flags["judged"]:
            found.append(stack.enter_context(_of_index(session, models, None)))
        for collection in found:
            for note in collection.dataset.notes:
                session.note(f"dowse: {collection.dataset.name}: {note}")
        reranker = open_cross_encoder(config.reranker, models_folder=config.models_folder, threads=config.threads)
        parts = Parts(cross_encoder=reranker, profiles=with_own(config.profiles))
        yield [QueryRunner(collection, parts) for collection in found]


@contextmanager
def _of_folder(place: Path, flags: Mapping[str, Any], models: Models, report: Reporter | None) -> Iterator[Collection]:
    from dowse.evaluate.collection import opened
    from dowse.evaluate.datasets import load

    dataset = load(place, flags["split"]).limited(flags["limit_queries"])
    cache, cut = flags["cache_folder"] or default_models_folder().parent / "eval", flags.get("cut", False)
    with opened(dataset, cache, models.for_index(None), cut=cut, report=report) as collection:
        yield collection


@contextmanager
def _of_index(session: CommandSession, models: Models, file: Path | None) -> Iterator[Collection]:
    from dowse.evaluate.judgments import judged_index, model_of

    index = session.existing_index()
    with judged_index(index, models.for_index(model_of(index)), file) as collection:
        yield collection
