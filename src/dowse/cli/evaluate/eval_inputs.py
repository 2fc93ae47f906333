"""What `dowse eval` and `dowse tune` measure: folders, files and flags enter, collections ready to be asked leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dowse.cli.session import Session
from dowse.config import Config, default_models_folder
from dowse.errors import BadRequestError

if TYPE_CHECKING:
    from dowse.evaluate.collection import Collection
    from dowse.evaluate.run import Asker
    from dowse.models.in_use import Models
    from dowse.ports import Reporter
    from dowse.query.assemble import Parts

FOLDER = click.Path(path_type=Path)
FLAGS = (
    click.option("--split", metavar="NAME", help="Which judgments of a collection; else test, dev or train."),
    click.option("--limit-queries", type=int, metavar="N", help="Ask only N of the questions, always the same ones."),
    click.option("--embedder", metavar="MODEL", help="auto, none, a name, a folder, a hub id or URL#model."),
    click.option("--chunk", "chunked", is_flag=True, help="Cut documents as `dowse index` does; parts count, too."),
    click.option("--judged", is_flag=True, help="Use the judgments that `dowse judge` put into the index."),
    click.option("--cache", type=FOLDER, metavar="DIR", help="Where the indexes of collections are kept."),
)  # fmt: skip


@dataclass(frozen=True)
class What:
    """What is measured. A field for each of the flags."""

    split: str | None
    limit_queries: int | None
    embedder: str | None
    chunked: bool
    judged: bool
    cache: Path | None

    @property
    def cache_folder(self) -> Path:
        return self.cache or default_models_folder().parent / "eval"


@contextmanager
def askers(session: Session, places: Sequence[Path], what: What, report: Reporter | None) -> Iterator[list[Asker]]:
    """A folder is a collection; a file, or `--judged`, has judgments of the index at hand."""
    from dowse.evaluate.run import Asker
    from dowse.models.in_use import Models

    if not places and not what.judged:
        raise BadRequestError("what shall be measured? type: dowse eval FOLDER, or dowse eval --judged")
    session = session.with_config(embedder=what.embedder)
    config = session.config
    models = Models(config.embedder, config.models_folder, config.threads)
    with ExitStack() as stack:
        found: list[Collection] = []
        for place in places:
            opening = _of_index(session, models, place) if place.is_file() else _of_folder(place, what, models, report)
            found.append(stack.enter_context(opening))
        if what.judged:
            found.append(stack.enter_context(_of_index(session, models, None)))
        for collection in found:
            for note in collection.dataset.notes:
                session.note(f"dowse: {collection.dataset.name}: {note}")
        parts = _parts(config)
        yield [Asker(collection, parts) for collection in found]


def _parts(config: Config) -> Parts:
    """What the product would use: the user's profiles, and the cross-encoder if one is configured."""
    from dowse.models.cross_encoder import open_cross_encoder
    from dowse.query.assemble import Parts
    from dowse.query.user_profiles import with_own

    reranker = open_cross_encoder(config.reranker, models_folder=config.models_folder, threads=config.threads)
    return Parts(cross_encoder=reranker, profiles=with_own(config.profiles))


@contextmanager
def _of_folder(place: Path, what: What, models: Models, report: Reporter | None) -> Iterator[Collection]:
    from dowse.evaluate.collection import opened
    from dowse.evaluate.datasets import load

    dataset = load(place, what.split).limited(what.limit_queries)
    with opened(dataset, what.cache_folder, models.for_index(None), chunked=what.chunked, report=report) as collection:
        yield collection


@contextmanager
def _of_index(session: Session, models: Models, file: Path | None) -> Iterator[Collection]:
    from dowse.evaluate.judgments import judged_index, model_of

    index = session.existing_index()
    with judged_index(index, models.for_index(model_of(index)), file) as collection:
        yield collection
