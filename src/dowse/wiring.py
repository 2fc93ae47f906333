"""What an engine asks besides its store: a config goes in; models, profiles, rerankers and a language model come out.

Each is opened when it is first needed. What is missing and needed says what to type.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError, ModelMismatchError, ModelUnavailableError, UnavailableError
from dowse.types import QueryRequest

if TYPE_CHECKING:
    from dowse.config import Config
    from dowse.models.in_use import Models
    from dowse.ports import LLM, Embedder, Reporter, Reranker, StoreStats
    from dowse.query.assemble import Parts
    from dowse.query.plan.profiles import Profile
    from dowse.store.embedded import EmbeddedStore


class Collaborators:
    """Of one engine; shared by its queries."""

    def __init__(self, store: EmbeddedStore, config: Config, embedder: Embedder | str) -> None:
        self._store = store
        self._config = config
        self._models = self._models_of(embedder)
        self._specs: dict[str, str] = {}

    def request(self, text: str | QueryRequest, fields: dict[str, object]) -> QueryRequest:
        """A question as a request: fields win over the request's own, those over the settings."""
        own = self._config
        request = text if isinstance(text, QueryRequest) else QueryRequest(text, top_k=own.top_k, profile=own.profile)
        known = set(QueryRequest.__dataclass_fields__)
        unknown = set(fields) - known
        if unknown:
            raise BadRequestError(f"unknown query field {sorted(unknown)[0]!r}; choose from {', '.join(sorted(known))}")
        return replace(request, **fields) if fields else request  # type: ignore[arg-type]

    # --- embedding ----------------------------------------------------------------------------------

    def query_embedder(self, stats: StoreStats, request: QueryRequest) -> tuple[Embedder | None, str]:
        """The embedder for a question, or why there is none."""
        if "dense" not in request.legs:
            return None, ""
        if stats.model is None or not stats.vectors:
            return None, "the index has no vectors yet; run `dowse index` to make them"
        try:
            embedder = self._models.for_index(self._spec(stats.model))
        except ModelUnavailableError as err:
            return None, str(err)
        if embedder is None:
            return None, "no embedding model is in use (--embedder none)"
        if embedder.model != stats.model:
            raise ModelMismatchError(
                f"the index has vectors of {stats.model}, not of {embedder.model}; "
                f"run `dowse reembed {embedder.model}` to change, or use --embedder {stats.model}"
            )
        return embedder, ""

    def index_embedder(self, report: Reporter | None = None) -> Embedder | None:
        """The embedder for what is read into the index."""
        found = self._models.for_index(self._spec(self._store.reader().stats.model), report)
        if found is not None:
            self._remember(found, self._models)
        return found

    def other_embedder(self, embedder: str | Embedder, report: Reporter | None) -> Embedder:
        """One to change to."""
        models = self._models_of(embedder)
        chosen = models.required(report)
        self._remember(chosen, models)
        return chosen

    def _models_of(self, embedder: str | Embedder) -> Models:
        from dowse.models.in_use import Models

        return Models(embedder, self._config.models_folder, self._config.threads)

    def _remember(self, embedder: Embedder, models: Models) -> None:
        """A folder, hub id or address is kept with the index: the model's name alone would not open it again."""
        from dowse.models.in_use import SPEC

        if models.spec and self._store.fact(SPEC + embedder.model) != models.spec:
            self._store.set_fact(SPEC + embedder.model, models.spec)

    def _spec(self, model: str | None) -> str | None:
        """How to open the model that the index has vectors of; asked once a model."""
        from dowse.models.in_use import SPEC

        if model and model not in self._specs:
            self._specs[model] = self._store.fact(SPEC + model) or model
        return self._specs[model] if model else None

    # --- judging and phrasing -----------------------------------------------------------------------

    @cached_property
    def parts(self) -> Parts:
        """What all queries share, without the cross-encoder: that is opened when a query first needs it."""
        from dowse.query.assemble import Parts
        from dowse.query.cache import Caches

        return Parts(
            llm=self._llm,
            profiles=self._profiles,
            caches=Caches(),
            documents=self._store.documents,
        )

    @property
    def _profiles(self) -> tuple[Profile, ...]:
        from dowse.query.plan.profiles import PROFILES

        if not self._config.profiles:
            return PROFILES  # most have none of their own, and need not load what reads them
        from dowse.query.user_profiles import with_own

        return with_own(self._config.profiles)

    def parts_for(self, request: QueryRequest) -> Parts:
        """With the cross-encoder, if this request can use one."""
        from dowse.query.plan.profiles import named

        if "cross-encoder" not in named(request.profile, self.parts.profiles).adjusted(request).rerank:
            return self.parts
        try:
            return replace(self.parts, cross_encoder=self._cross_encoder)
        except UnavailableError as err:
            return replace(self.parts, cross_encoder_note=str(err), cross_encoder_lost=True)

    def llm(self) -> LLM:
        """The language model, for work that cannot do without."""
        if self._llm is None:
            raise ModelUnavailableError(
                "no language model is configured; type: dowse config set llm_base_url https://host/v1"
            )
        return self._llm

    @cached_property
    def _llm(self) -> LLM | None:
        if not self._config.llm_base_url and not self._config.llm_model:
            return None  # most have none, and need no HTTP client
        from dowse.models.llm import open_llm

        return open_llm(self._config.llm_base_url, self._config.llm_model)

    @cached_property
    def _cross_encoder(self) -> Reranker | None:
        from dowse.models.cross_encoder import open_cross_encoder

        return open_cross_encoder(
            self._config.reranker, models_folder=self._config.models_folder, threads=self._config.threads
        )
