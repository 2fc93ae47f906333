"""Store of a small shop for query tests: chunks of every kind, parents, edges, services and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import numpy as np

from dowse.identity import chunk_id, embedded_text
from dowse.ports import Candidate, Matrix
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Document, Edge, Role, Service, ServiceEdge
from factories import PLAIN, of_chunks
from values import replace

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DIMENSION = 64


@dataclass(frozen=True)
class TrigramEmbedder:
    """Embedder by hashed letter trigrams: enough to rank, no model needed."""

    model: str = "trigrams"
    dimension: int = DIMENSION

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        rows = np.full((len(texts), DIMENSION), 1e-3, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for at in range(len(text) - 2):
                code = int.from_bytes(blake2b(text[at : at + 3].lower().encode(), digest_size=4).digest())
                row[code % DIMENSION] += 1 if code >> 31 else -1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class OverlapReranker:
    """Reranker by the share of query terms in a text; needs no model."""

    tokenizer: Tokenizer = field(default_factory=Tokenizer, compare=False, repr=False)
    model: str = "overlap"

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> list[float | None]:
        terms = set(self.tokenizer.code(query))
        return [len(terms & set(self.tokenizer.code(each.chunk.text))) / max(len(terms), 1) for each in candidates]


def code(text: str, symbol: str, service: str, **fields: object) -> Chunk:
    qualified = f"{service}.{symbol}"
    return replace(
        PLAIN, text=text, symbol_name=symbol, qualified_name=qualified, service_name=service, repo_name="shop",
        language="go", file_path=f"{service}/{symbol}.go", **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def deploy(text: str, service: str) -> Chunk:
    return replace(
        PLAIN, text=text, corpus_type="CODE_DEPLOY", service_name=service, repo_name="ops", language="yaml",
        file_path=f"deploy/{service}.yaml",
    )  # fmt: skip


def slack(text: str, channel: str, days_old: float) -> Chunk:
    moment = NOW - timedelta(days=days_old)
    return replace(PLAIN, text=text, corpus_type="CONVO_SLACK", channel=channel, timestamp=moment, author="ada")


def doc(text: str, section: str, kind: str = "DOC_RUNBOOK", **fields: object) -> Chunk:
    return replace(PLAIN, text=text, corpus_type=kind, section_path=section, repo_name="docs", **fields)  # type: ignore[arg-type]


CODE = (
    code("func GetUser(id string) User { return db.Find(id) }", "GetUser", "auth-service", connection_count=8),
    code("func CreateOrder(item string) Order { http.Post(paymentURL) }", "CreateOrder", "order-service",
         calls_out=("payment-service",)),
    code("func ChargeCard(card Card, amount int) error { return gateway.Charge(card, amount) }", "ChargeCard",
         "payment-service", summary="Charges a card through the gateway."),
    code("func RetryCharge(card Card) error { for attempt := 0; attempt < 3; attempt++ { ChargeCard(card) } }",
         "RetryCharge", "payment-service", summary="Retries a failed charge three times."),
    code("func Login(name, password string) (Token, error) { return tokens.Issue(name) }", "Login", "auth-service"),
    code("func RefundOrder(order Order) error { return payments.Refund(order.ChargeID) }", "RefundOrder",
         "order-service"),
    code("pass", "Stub", "order-service"),
)  # fmt: skip
DEPLOY = (
    deploy("kind: Service\nname: auth-service\nport: 8080", "auth-service"),
    deploy("kind: Deployment\nname: payment-service\nreplicas: 3\nimage: payment", "payment-service"),
    deploy("kind: Service\nname: order-service\nport: 8081", "order-service"),
)
SLACK = (
    slack("auth-service is throwing 503s, checking user-service", "incident", 304),
    slack("payment-service is down, the gateway answers with timeouts", "incident", 2),
    slack("payment-service was down last year, too, for the same reason", "incident", 400),
    slack("who wants lunch at noon", "random", 1),
)
WHOLE = "Operations guide of the shop: rollback, alerts, retries"
ROLLBACK = "Rollback: how to undo a deployment of a service, and whom to tell"


def _guide() -> tuple[Chunk, ...]:
    uri = "docs/guide.md"
    whole, rollback = chunk_id(uri, "document", WHOLE), chunk_id(uri, "section", ROLLBACK)
    return (
        doc(WHOLE, "", level="document", summary="How the shop is run."),
        doc(ROLLBACK, "## Deploy > ## Rollback", level="section", parent_id=whole, summary="Undoing a deployment."),
        doc("## Rollback Procedure\nRun kubectl rollout undo for the service", "## Deploy > ## Rollback",
            parent_id=rollback),
        doc("After a rollback tell the incident channel and watch the error rate", "## Deploy > ## Rollback",
            parent_id=rollback),
        doc("Retries of payments are limited to three attempts with growing pauses", "## Payments > ## Retries",
            parent_id=whole),
    )  # fmt: skip


README = (
    doc("The shop sells books; services talk over http and write to postgres", "# Shop", "DOC_README"),
    doc("We chose idempotent writes over distributed locks for orders", "# ADR 7", "DOC_ADR"),
    doc("A guide to the login of users and the tokens they get", "# Login", "DOC_README"),
)
SERVICES = tuple(Service(name) for name in ("auth-service", "order-service", "payment-service"))
CALLS = (
    ServiceEdge("order-service", "payment-service", "http"),
    ServiceEdge("order-service", "auth-service", "http"),
)


def documents() -> list[Document]:
    """Make one document of each kind. RetryCharge calls ChargeCard; the runbook on retries documents RetryCharge."""
    guide = of_chunks("guide.md", _guide())
    shop = of_chunks("shop.go", CODE)
    by_symbol = {chunk.symbol_name: chunk.id for chunk in shop.chunks}
    calls = Edge(by_symbol["RetryCharge"], by_symbol["ChargeCard"], "calls", 0.8)
    documents = Edge(guide.chunks[-1].id, by_symbol["RetryCharge"], "documents", 0.9)
    return [
        replace(shop, edges=(calls,)),
        replace(guide, edges=(documents,)),
        of_chunks("deploy.yaml", DEPLOY),
        of_chunks("slack.json", SLACK),
        of_chunks("README.md", README),
    ]


def shop_store() -> MemoryStore:
    store = MemoryStore()
    store.put(documents())
    store.put_services(SERVICES, CALLS)
    store.publish()
    embedder = TrigramEmbedder()
    store.use_model(embedder.model, DIMENSION)
    chunks = [chunk for each in documents() for chunk in each.chunks if chunk.level == "chunk"]
    store.put_vectors(
        [chunk.content_hash for chunk in chunks], embedder.embed([embedded_text(each) for each in chunks], role="chunk")
    )
    store.publish()
    return store
