"""The small company that the demo and the tests index: the folder of its files, and questions with known answers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

__all__ = ["QUERIES", "SampleQuery", "root"]

Kind = Literal["identifier", "paraphrase", "error", "config", "filtered", "slack", "paper", "question"]


@dataclass(frozen=True)
class SampleQuery:
    """A question and the place that answers it; several files may be good hits, this one must be among them."""

    text: str
    expect: str  # path of the file below root(), with forward slashes
    line: str  # a stretch of one line of that file, which occurs there once
    why: str
    kind: Kind
    filters: tuple[tuple[str, str], ...] = ()  # fields of QueryRequest: engine.query(text, **dict(filters))


def root() -> Path:
    """The folder to index. The package is installed as plain files, so this is a real path."""
    return Path(str(files(__name__))) / "acme"


QUERIES: tuple[SampleQuery, ...] = (
    # Identifiers: the code leg knows them by their whole and by their parts.
    SampleQuery(
        text="fetchWithBackoff",
        expect="services/quote-engine/internal/fuel/client.go",
        line="func (c *Client) fetchWithBackoff(ctx context.Context) error {",
        why="a Go method by its exact name; the incident and a Slack thread name it too",
        kind="identifier",
    ),
    SampleQuery(
        text="improve two opt",
        expect="services/route-planner/route_planner/solver.py",
        line="def improve_two_opt(order: list[int], minutes: Matrix, time_limit_s: float) -> list[int]:",
        why="the parts of a snake_case name, typed as words",
        kind="identifier",
    ),
    SampleQuery(
        text="IdempotencyStore",
        expect="services/booking-api/src/idempotency.ts",
        line="export class IdempotencyStore {",
        why="a TypeScript class, defined in one file and used in another",
        kind="identifier",
    ),
    SampleQuery(
        text="GetKilometreRate",
        expect="proto/wrenfold/quotes/v1/quotes.proto",
        line="rpc GetKilometreRate(KilometreRateRequest) returns (KilometreRateResponse);",
        why="an rpc: contract, Go server and Python client all hold it",
        kind="identifier",
    ),
    SampleQuery(
        text="onRoutePlanned listener",
        expect="services/tracking-hub/src/main/java/example/wrenfold/tracking/ScanEventConsumer.java",
        line="public void onRoutePlanned(PlannedTour tour) {",
        why="a Java method with a describing word beside it",
        kind="identifier",
    ),
    # Paraphrases: no term in common with the whole target file or its path, so only meaning can find them.
    SampleQuery(
        text="website no longer trusted over https",
        expect="docs/runbooks/certificate-renewal.md",
        line="x509: certificate has expired or is not yet valid",
        why="an expired certificate as a visitor would describe it",
        kind="paraphrase",
    ),
    SampleQuery(
        text="accidental duplicate submissions",
        expect="docs/adr/0005-idempotency-keys.md",
        line="Every POST requires the header `Idempotency-Key`",
        why="the accident behind the decision, without the word idempotency",
        kind="paraphrase",
    ),
    SampleQuery(
        text="revert a failed push",
        expect="docs/runbooks/rollback.md",
        line="Go back immediately and look for the cause afterwards.",
        why="the runbook speaks of going back to the previous version",
        kind="paraphrase",
    ),
    SampleQuery(
        text="tips for a new hire's first week",
        expect="docs/onboarding.md",
        line="Nobody expects you to be useful before Thursday.",
        why="the page is called Welcome aboard",
        kind="paraphrase",
    ),
    SampleQuery(
        text="travelling salesman heuristic",
        expect="services/route-planner/route_planner/solver.py",
        line="Start with the stop farthest from the depot",
        why="the textbook name of what the code does without naming it",
        kind="paraphrase",
    ),
    SampleQuery(
        text="bulky but light boxes cost more to send",
        expect="services/quote-engine/internal/pricing/volumetric.go",
        line="func VolumetricGrams(d Dimensions) int64 {",
        why="a merchant's question, answered by a Go function",
        kind="paraphrase",
    ),
    SampleQuery(
        text="don't send SMS while customers are asleep",
        expect="services/tracking-hub/src/main/java/example/wrenfold/tracking/RecipientNotifier.java",
        line="/** Quiet hours wrap around midnight. */",
        why="quiet hours, from the sleeper's point of view",
        kind="paraphrase",
    ),
    SampleQuery(
        text="primary crashed, switch to the standby",
        expect="docs/runbooks/database-failover.md",
        line="The cloud promotes a replica by itself within about forty seconds;",
        why="the runbook says leader and replica",
        kind="paraphrase",
    ),
    # Error messages, pasted.
    SampleQuery(
        text="ERROR: cannot execute INSERT in a read-only transaction",
        expect="docs/runbooks/database-failover.md",
        line="`FATAL: cannot execute INSERT in a read-only transaction`",
        why="a log line; the runbook explains it, a Slack thread met it",
        kind="error",
    ),
    SampleQuery(
        text="WF-5032 PLANNER_SATURATED",
        expect="docs/error-codes.md",
        line="| WF-5032 | PLANNER_SATURATED | 503 |",
        why="an error code with its own row in a table",
        kind="error",
    ),
    SampleQuery(
        text="redis: connection pool timeout",
        expect="docs/runbooks/quote-latency.md",
        line="`redis: connection pool timeout` in the log. Count connections:",
        why="an error message in a runbook, an incident, a table and a thread",
        kind="error",
    ),
    SampleQuery(
        text="pika StreamLostError Stream connection lost",
        expect="docs/error-codes.md",
        line="`pika.exceptions.StreamLostError: Stream connection lost`",
        why="a Python exception that no code of ours names",
        kind="error",
    ),
    # Configuration keys.
    SampleQuery(
        text="FUEL_INDEX_MAX_STALENESS_HOURS",
        expect="services/quote-engine/internal/fuel/client.go",
        line='raw, set := os.LookupEnv("FUEL_INDEX_MAX_STALENESS_HOURS")',
        why="the code that reads a variable, among manifests that set it",
        kind="config",
    ),
    SampleQuery(
        text="tracking.eta.smoothing-factor",
        expect="services/tracking-hub/src/main/resources/application.yml",
        line="smoothing-factor: 0.2",
        why="a dotted key that YAML spreads over three lines",
        kind="config",
    ),
    # Filtered: the same words elsewhere must not win.
    SampleQuery(
        text="retry budget",
        expect="services/route-planner/route_planner/retry.py",
        line="class RetryBudget:",
        why="an ADR, a paper and TypeScript have it as well; only Python is asked for",
        kind="filtered",
        filters=(("language_filter", "python"),),
    ),
    SampleQuery(
        text="PLANNER_PREFETCH",
        expect="deploy/k8s/route-planner.yaml",
        line='PLANNER_PREFETCH: "40"',
        why="the value in production, not the story about it",
        kind="filtered",
        filters=(("path_filter", "deploy/**"),),
    ),
    SampleQuery(
        text="why did we choose cheapest insertion over an exact solver",
        expect="docs/adr/0008-greedy-tours.md",
        line="It came out 3.8 % above the proven optimum on",
        why="a decision's reasons; code with the same words is filtered out",
        kind="filtered",
        filters=(("corpus_filter", "DOC"),),
    ),
    # Conversations.
    SampleQuery(
        text="why did 4.7.0 of the planner come back after the rollback",
        expect="slack-export/incidents/2026-03-18.json",
        line="kustomization.yaml still has newTag 4.7.0",
        why="the answer was given in a thread, in passing",
        kind="slack",
    ),
    SampleQuery(
        text="is PgBouncer safe with node-postgres prepared statements?",
        expect="slack-export/platform/2026-03-06.json",
        line="Only if you pass `name:` to query().",
        why="a question between colleagues; the meeting only raised it",
        kind="slack",
    ),
    SampleQuery(
        text="how many matrix requests per minute does the map provider allow",
        expect="transcripts/2026-03-05-capacity-review.vtt",
        line="The map provider gives us forty matrix requests a minute",
        why="spoken in a meeting; a runbook says it in digits",
        kind="question",
    ),
    # The paper.
    SampleQuery(
        text="peak load of the adaptive retry budget compared to a circuit breaker",
        expect="papers/adaptive-retry-budgets.md",
        line="| adaptive budget (ours) | 99.1 % | 1.14 | 58 s |",
        why="one row of a table in the experiments section",
        kind="paper",
    ),
    SampleQuery(
        text="why reattempts make an outage worse",
        expect="papers/adaptive-retry-budgets.md",
        line="Retries hide transient faults and amplify overload.",
        why="the paper's theme without one of its words",
        kind="paraphrase",
    ),
    SampleQuery(
        text="how is the conditional success rate of a retry estimated",
        expect="papers/adaptive-retry-budgets.md",
        line="The conditional success rate is estimated as",
        why="a question about the method",
        kind="paper",
    ),
)
"""A regression check, not a measure of quality: the paraphrases were picked, among several for each target, because the
default model finds them. Quality is measured by `evaluate`, on collections that nobody here wrote."""
