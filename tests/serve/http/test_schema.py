"""The OpenAPI document is true: requests drawn from it, fitting and not, get answers that it foresees."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dowse.serve.backend import Access
from http_server import Client, running_server

FILES = {"a.md": "# Retry\n\nretry payments\n", "b.py": "def charge(card):\n    return post(card)\n"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
LEFT_OUT = ("/v1/index",)  # each request that fits would start a process; tests/serve/http/test_jobs.py has them
EXAMPLES = 12  # of each operation


@schemathesis.serializer("application/x-ndjson")
def _lines(_context: Any, value: Any) -> bytes:
    return str(value).encode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def client(index: Path) -> Iterator[Client]:
    with running_server(index, access=Access(write=True)) as client:
        yield client


@pytest.fixture(scope="module")
def schema(client: Client) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_dict(client.get("/openapi.json").json)


def test_the_document_is_valid(schema: schemathesis.BaseSchema) -> None:
    schema.validate()


def test_every_answer_is_one_that_the_document_foresees(client: Client, schema: schemathesis.BaseSchema) -> None:
    tried = [_try(client, found.ok()) for found in schema.get_all_operations() if found.ok().path not in LEFT_OUT]
    assert len(tried) > 15


def _try(client: Client, operation: Any) -> str:
    @seed(7)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def one(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=f"http://127.0.0.1:{client.port}", checks=CHECKS)

    one()
    return str(operation.label)
