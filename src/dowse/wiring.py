"""Components of an engine besides its store: models, profiles, rerankers and a language model, from the settings.

Each is opened when it is first needed. A missing one raises an error with the command to type.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError, ModelMismatchError, ModelUnavailableError
from dowse.trust import allow, in_project, is_plain_model, is_trusted, refusal
from dowse.types import QueryRequest

if TYPE_CHECKING:
    from dowse.config import Config
    from dowse.fusion_kernel import FusionKernel
    from dowse.ingest.sources.requests import IndexRequest
    from dowse.models.choose import Models
    from dowse.ports import LLM, Embedder, Reporter, Reranker, SearchLeg, StoreStats
    from dowse.query.assemble import Parts
    from dowse.query.plan.profiles import Profile
    from dowse.store.embedded import EmbeddedStore

NO_EMBEDDER = "no embedding model is in use (--embedder none)"
NO_VECTORS = "the index has no vectors yet; run `dowse index` to compute them"


class Components:
    """Components of one engine, shared by its queries."""

    def __init__(
        self,
        store: EmbeddedStore,
        config: Config,
        embedder: Embedder | str,
        fusion: FusionKernel | None = None,
        legs: tuple[SearchLeg, ...] = (),
    ) -> None:
        self._store = store
        self._config = config
        self._fusion, self._legs = fusion, legs
        if legs:
            from dowse.query.plugins import checked_legs

            checked_legs(legs)
        self._models = self._models_of(embedder)
        self._specs: dict[str, str] = {}
        self._embedders: dict[str, Embedder] = {}  # of queries, by the model of the index

    def request(self, text: str | QueryRequest, fields: dict[str, object]) -> QueryRequest:
        """Return a request: fields override those of the request, which override the settings."""
        own = self._config
        request = text if isinstance(text, QueryRequest) else QueryRequest(text, top_k=own.top_k, profile=own.profile)
        known = set(QueryRequest.__dataclass_fields__)
        if unknown := set(fields) - known:
            raise BadRequestError(f"unknown query field {sorted(unknown)[0]!r}; choose from {', '.join(sorted(known))}")
        return replace(request, **fields) if fields else request  # type: ignore[arg-type]

    def query_embedder(self, stats: StoreStats, request: QueryRequest) -> tuple[Embedder | None, str]:
        """Return the embedder of queries, or the reason for its absence."""
        if "dense" not in request.legs:
            return None, ""
        if stats.model is None or not stats.vectors:
            return None, NO_EMBEDDER if self._models.words_only else NO_VECTORS
        if known := self._embedders.get(stats.model):
            return known, ""
        try:
            embedder = self._models.for_index(self._spec(stats.model))
        except ModelUnavailableError as err:
            return None, str(err)
        if embedder is None:
            return None, NO_EMBEDDER
        if embedder.model != stats.model:
            raise ModelMismatchError(
                f"the index has vectors of {stats.model}, not of {embedder.model}; "
                f"run `dowse reembed {embedder.model}` to change, or use --embedder {stats.model}"
            )
        from dowse.query.guard import guarded

        self._embedders[stats.model] = guarded(embedder, "embedder")
        return self._embedders[stats.model], ""

    def index_embedder(self, report: Reporter | None = None) -> Embedder | None:
        """Return the embedder of the index."""
        found = self._models.for_index(self._spec(self._store.reader().stats.model), report)
        if found is not None:
            self._remember(found, self._models)
        return found

    def other_embedder(self, embedder: str | Embedder, report: Reporter | None) -> Embedder:
        """Return an embedder to change to."""
        models = self._models_of(embedder)
        chosen = models.required(report)
        self._remember(chosen, models)
        return chosen

    def _models_of(self, embedder: str | Embedder) -> Models:
        from dowse.models.choose import Models

        return Models(embedder, self._config.models_folder, self._config.threads, self._store.folder)

    def _remember(self, embedder: Embedder, models: Models) -> None:
        """Store the folder, hub id or address of a model: its name alone would not open it again."""
        from dowse.models.choose import SPEC

        if models.spec and self._store.fact(SPEC + embedder.model) != models.spec:
            self._store.set_fact(SPEC + embedder.model, models.spec)
        if models.spec and not is_plain_model(models.spec):
            allow(self._store.folder, models.spec)

    def _spec(self, model: str | None) -> str | None:
        """Return the folder, hub id or address of the model of the index's vectors."""
        from dowse.models.choose import SPEC

        if model and model not in self._specs:
            self._specs[model] = self._store.fact(SPEC + model) or model
        return self._specs[model] if model else None

    def allowed(self, requests: list[IndexRequest], *, given: bool) -> list[IndexRequest]:
        """Return the requests if the user gave them, now or earlier; else raise BadRequestError.

        An index may come from elsewhere and hold requests for any folder of this machine.
        """
        index = self._store.folder
        for each in requests:
            if in_project(each.path, index):
                continue
            if given:
                allow(index, os.path.abspath(each.path.expanduser()))
            elif not is_trusted(index, str(each.path)):
                raise BadRequestError(refusal(index, str(each.path), "index a folder outside its project"))
        return requests

    @cached_property
    def parts(self) -> Parts:
        """The parts that all queries share."""
        from dowse.query.assemble import Parts
        from dowse.query.cache import Caches

        return Parts(
            llm=self._llm,
            rerank_llm=self._opened(self._config.llm_rerank_model),
            legs=self._legs,
            profiles=self._profiles,
            caches=Caches(),
            fusion_kernel=self._fusion,
            documents=self._store.documents,
            values_of=lambda field: self._store.reader().values(field),
            open_cross_encoder=lambda: self._cross_encoder,
        )

    @property
    def _profiles(self) -> tuple[Profile, ...]:
        from dowse.query.plan.profiles import PROFILES

        if not self._config.profiles:
            return PROFILES  # most users have none of their own, and need not load the module that reads them
        from dowse.query.user_profiles import with_own

        return with_own(self._config.profiles)

    def llm(self) -> LLM:
        """Return the language model, or raise ModelUnavailableError."""
        if self._llm is None:
            steps = {"llm_base_url": "https://host/v1", "llm_model": "NAME"}.items()
            missing = [f"dowse config set {key} {value}" for key, value in steps if not getattr(self._config, key)]
            raise ModelUnavailableError(f"no language model is configured; type: {' && '.join(missing)}")
        return self._llm

    @cached_property
    def _llm(self) -> LLM | None:
        # Most users have none, and need no HTTP client; half a setting must not stop a plain search.
        return self._opened(self._config.llm_model) if self._config.llm_base_url else None

    def _opened(self, model: str | None) -> LLM | None:
        if not model:
            return None
        from dowse.models.llm import open_llm

        return open_llm(self._config.llm_base_url, model)

    @cached_property
    def _cross_encoder(self) -> Reranker | None:
        from dowse.models.cross_encoder import open_cross_encoder

        return open_cross_encoder(
            self._config.reranker, models_folder=self._config.models_folder, threads=self._config.threads
        )
