"""Manifests, charts, Compose files, pipelines and API descriptions are cut where their parts start."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

import dowse
from dowse.errors import BadRequestError
from dowse.ingest.manifests.yaml_nodes import DEEPEST, MOST_NODES, NotYamlError, compose
from dowse.ingest.manifests.yaml_parts import page_of
from dowse.ports import SourceFile
from dowse.types import Chunk, Document
from readers_by_name import reader_of

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"


def read(text: str, path: str = "deploy/app.yaml") -> Document:
    return reader_of("yaml").read(SourceFile("shop", path, text.encode(), 0))


def sample(path: str) -> Document:
    return read((SAMPLE / path).read_text("utf-8"), path)


def named(document: Document) -> dict[tuple[str | None, str | None], Chunk]:
    return {(chunk.symbol_kind, chunk.symbol_name): chunk for chunk in document.chunks}


# --- Kubernetes ---------------------------------------------------------------------------------------


def test_a_manifest_gives_a_chunk_for_each_resource_with_its_lines() -> None:
    document = sample("deploy/k8s/booking-api.yaml")
    found = [(c.symbol_kind, c.symbol_name, c.start_line, c.end_line) for c in document.chunks]
    assert found == [
        ("Deployment", "booking-api", 1, 54),
        ("Service", "booking-api", 56, 64),
        ("HorizontalPodAutoscaler", "booking-api", 66, 77),
    ]
    assert {chunk.service_name for chunk in document.chunks} == {"booking-api"}
    assert {chunk.corpus_type for chunk in document.chunks} == {"CODE_DEPLOY"}


def test_a_workload_calls_out_to_the_hosts_of_its_variables() -> None:
    found = named(sample("deploy/k8s/quote-engine.yaml"))["Deployment", "quote-engine"]
    assert found.calls_out == ("tariff-db", "rate-cache", "fuel.indexhub.example")


def test_a_resource_belongs_to_the_service_that_selects_it_then_to_its_label_then_to_its_name() -> None:
    text = dedent("""\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web-v2}
        spec: {template: {metadata: {labels: {app: web}}}}
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: storefront}
        spec: {selector: {app: web}}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: worker-v7, labels: {app: worker}}
        ---
        apiVersion: batch/v1
        kind: CronJob
        metadata: {name: nightly}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: shared}
        """)
    found = {chunk.symbol_name: chunk.service_name for chunk in read(text).chunks}
    assert found == {
        "web-v2": "storefront", "storefront": "storefront", "worker-v7": "worker", "nightly": "nightly", "shared": None
    }  # fmt: skip


def test_a_comment_above_a_resource_belongs_to_it() -> None:
    chunk = named(sample("deploy/k8s/quote-engine.yaml"))["Service", "quote-engine"]
    assert chunk.text.startswith("# Headless")


def test_a_resource_longer_than_a_parent_is_cut_at_its_keys_and_keeps_its_name() -> None:
    keys = "\n".join(f"  key-{n}: {'x' * 60}" for n in range(120))
    document = read(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: big\ndata:\n{keys}\n")
    assert len(document.chunks) > 3
    assert {(c.symbol_kind, c.symbol_name) for c in document.chunks} == {("ConfigMap", "big")}
    assert max(len(c.text) for c in document.chunks) <= page_of("").budget.limit_chars
    assert document.chunks[-1].context_prefix == "ConfigMap big > data"
    assert document.chunks[-1].end_line == 5 + 120


# --- Helm ---------------------------------------------------------------------------------------------


def test_a_template_is_read_though_it_is_no_yaml() -> None:
    document = sample("deploy/helm/tracking-hub/templates/hpa.yaml")
    (chunk,) = document.chunks
    assert (chunk.symbol_kind, chunk.symbol_name) == ("HorizontalPodAutoscaler", "tracking-hub")
    assert chunk.service_name == "tracking-hub"
    assert (chunk.start_line, chunk.end_line) == (1, 20)


def test_a_template_of_several_resources_is_split_between_them() -> None:
    text = "{{- if .Values.on }}\nkind: Service\nmetadata:\n  name: fixed\n---\nkind: Job\nmetadata:\n  name: {{ x }}\n"
    document = read(text, "charts/shop/templates/all.yaml")
    found = [(c.symbol_kind, c.symbol_name, c.start_line) for c in document.chunks]
    assert found == [("Service", "fixed", 1), ("Job", None, 6)]


def test_a_charts_values_belong_to_the_chart() -> None:
    document = sample("deploy/helm/tracking-hub/values.yaml")
    assert {chunk.service_name for chunk in document.chunks} == {"tracking-hub"}
    assert named(sample("deploy/helm/tracking-hub/Chart.yaml"))["Chart", "tracking-hub"].summary


# --- Compose ------------------------------------------------------------------------------------------


def test_a_compose_file_gives_a_chunk_for_each_service() -> None:
    found = named(sample("docker-compose.yml"))
    services = {name: (c.start_line, c.end_line) for (kind, name), c in found.items() if kind == "service"}
    assert len(services) == 10
    assert services["booking-api"] == (14, 27)
    assert services["parcel-bus"] == (87, 96)
    assert found["service", "booking-api"].service_name == "booking-api"


def test_compose_is_known_by_what_it_says_not_by_its_name() -> None:
    document = read(
        "services:\n  web:\n    image: nginx\n    environment:\n      - API_URL=http://api:80\n", "stack.yml"
    )
    assert named(document)["service", "web"].calls_out == ("api",)
    other = read("services:\n  - a\n  - b\n", "settings.yml")
    assert {chunk.symbol_kind for chunk in other.chunks} == {None}


# --- pipelines and APIs -------------------------------------------------------------------------------


def test_a_pipeline_gives_a_chunk_for_each_job() -> None:
    found = named(sample("ci/pipeline.yml"))
    jobs = [name for kind, name in found if kind == "job"]
    assert jobs[:2] == ["lint", "test-booking-api"]
    assert len(jobs) == 8
    assert found["job", "deploy"].start_line == 51


def test_a_github_workflow_gives_a_chunk_for_each_job() -> None:
    text = (
        "name: CI\non: [push]\njobs:\n  build:\n    steps:\n      - run: make\n  # last\n  ship:\n    uses: ./x.yml\n"
    )
    document = read(text, ".github/workflows/ci.yml")
    found = [(c.symbol_name, c.start_line, c.end_line) for c in document.chunks if c.symbol_kind == "job"]
    assert found == [("build", 4, 6), ("ship", 7, 9)]
    assert document.chunks[-1].context_prefix == "CI > job ship"


def test_an_api_gives_a_chunk_for_each_operation() -> None:
    document = sample("openapi/booking-api.yaml")
    found = {c.symbol_name: (c.signature, c.start_line) for c in document.chunks if c.symbol_kind == "operation"}
    assert found == {
        "createShipment": ("POST /shipments", 13),
        "getShipment": ("GET /shipments/{number}", 42),
        "cancelShipment": ("DELETE /shipments/{number}", 58),
        "createQuote": ("POST /quotes", 64),
    }
    assert [c.symbol_name for c in document.chunks if c.symbol_kind == "schema"] == [
        "NewShipment", "Parcel", "Address", "Shipment", "Problem",
    ]  # fmt: skip


API = {
    "openapi": "3.1.0",
    "info": {"title": "Booking", "version": "1"},
    "paths": {
        "/tours": {"get": {"operationId": "listTours", "summary": "All tours"}, "post": {"operationId": "addTour"}},
        "/tours/{id}": {"delete": {"operationId": "dropTour"}},
    },
    "components": {"schemas": {"Tour": {"type": "object", "properties": {"id": {"type": "string"}}}}},
}


@pytest.mark.parametrize("indent", ["  ", "\t"])
def test_an_api_in_json_gives_a_chunk_for_each_operation_with_its_lines(indent: str) -> None:
    text = json.dumps(API, indent=indent)
    document = reader_of("json").read(SourceFile("docs", "api.json", text.encode(), 0))
    found = {chunk.symbol_name: chunk for chunk in document.chunks if chunk.symbol_name}
    assert {"listTours", "addTour", "dropTour", "Tour"} <= set(found)
    lines = text.splitlines()
    for name in ("listTours", "addTour", "dropTour"):
        chunk = found[name]
        assert chunk.text.count("operationId") == 1
        assert any(f'"{name}"' in line for line in lines[(chunk.start_line or 0) - 1 : chunk.end_line])


@pytest.mark.parametrize("text", [json.dumps(API), '{"openapi": "3.1.0", "paths": 1}'])
def test_an_api_on_one_line_or_of_another_shape_is_json_as_any_other(text: str) -> None:
    document = reader_of("json").read(SourceFile("docs", "api.json", text.encode(), 0))
    assert "".join(chunk.text for chunk in document.chunks).strip() == text.strip()


def test_any_other_yaml_is_cut_at_its_keys_and_told_what_encloses_it() -> None:
    text = "a:\n  b:\n" + "\n".join(f"    key{n}: {'v' * 50}" for n in range(60)) + "\nc: 1\n"
    document = read(text, "settings.yaml")
    assert document.chunks[0].corpus_type == "CODE_CONFIG"
    assert document.chunks[1].context_prefix == "a > b"


# --- bad input ----------------------------------------------------------------------------------------


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert MOST_NODES < 9**9
    with pytest.raises(BadRequestError, match="aliases of this YAML file multiply"):
        read("\n".join(lines))


@pytest.mark.parametrize("text", ["[" * 5000, "- " * 5000 + "a", "a: " + "{b: " * 5000], ids=["list", "items", "map"])
def test_deep_nesting_is_refused_before_it_costs_anything(text: str) -> None:
    with pytest.raises(BadRequestError, match=f"nested more than {DEEPEST} deep at line 1"):
        read(text)


@pytest.mark.parametrize("text", ["a: [1", "a: *nowhere", "a: &x [*x]", "\tkey: [", "a: b: c", "%TAG ! x\n", "a: \x07"])
def test_what_is_no_yaml_is_cut_by_its_lines(text: str) -> None:
    with pytest.raises(NotYamlError):
        compose(text)
    document = read(text)
    assert [chunk.text for chunk in document.chunks] == [text.rstrip()]


def test_other_line_ends_do_not_shift_the_lines() -> None:
    document = read("apiVersion: v1\nkind: A\nmetadata: {name: 'x\u2028y\x85z'}\n---\napiVersion: v1\nkind: B\n")
    assert [(c.symbol_kind, c.start_line) for c in document.chunks] == [("A", 1), ("B", 5)]


def test_an_empty_file_has_no_chunks() -> None:
    assert read("").chunks == ()
    assert read("---\n---\n# nothing\n").chunks[0].text == "# nothing"
