"""`dowse services`, and what `dowse index` says of secrets and people."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

import dowse
import sample_truth as truth
from dowse.cli.find.service_map import mermaid, svg
from dowse.cli.main import cli
from dowse.types import Service, ServiceEdge

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "index"
    with dowse.open(folder, embedder="none") as engine:
        engine.index([SAMPLE], embed=False)
    return folder


def run(index: Path, *args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, ["services", *args, "--index", str(index)], prog_name="dowse")
    return done.exit_code, done.stdout, done.stderr


def test_all_services_are_listed_with_what_they_use(company: Path) -> None:
    code, out, _ = run(company)
    assert code == 0
    assert "quote-engine  [go; namespace parcels; port 9090, 9102]" in out
    assert "  uses fuel.indexhub.example (http), rate-cache (db), tariff-db (db)" in out
    assert "api.cartograph.example  [external]" in out


def test_one_service_is_shown_with_its_neighbours_and_what_shows_them(company: Path) -> None:
    code, out, _ = run(company, "rate-cache")
    assert code == 0
    assert "is used by quote-engine (db)" in out
    assert "RATE_CACHE_ADDR is set to rate-cache:6379 (" in out


def test_the_blast_radius_is_whoever_uses_it_directly_or_not(company: Path) -> None:
    found = json.loads(run(company, "rate-cache", "--blast-radius", "--json")[1])
    names = {service["name"] for service in found["services"]}
    assert names == {"rate-cache", "quote-engine", "booking-api", "route-planner", "tracking-hub"}
    near = json.loads(run(company, "rate-cache", "--blast-radius", "--depth", "1", "--json")[1])
    assert {service["name"] for service in near["services"]} == {"rate-cache", "quote-engine"}


def test_downstream_is_whatever_it_uses_directly_or_not(company: Path) -> None:
    found = json.loads(run(company, "quote-engine", "--downstream", "--json")[1])
    assert {edge["target"] for edge in found["edges"]} == {"fuel.indexhub.example", "rate-cache", "tariff-db"}
    assert all(edge["evidence"] and edge["description"] for edge in found["edges"])


def test_json_has_every_edge(company: Path) -> None:
    found = json.loads(run(company, "--json")[1])
    edges = {(edge["source"], edge["target"], edge["type"]) for edge in found["edges"]}
    assert edges == set(truth.SERVICE_EDGES)


def test_maps_have_every_service_and_every_edge(company: Path) -> None:
    drawn = run(company, "--mermaid")[1]
    assert drawn.startswith("flowchart LR\n")
    assert drawn.count("-->") == len(truth.SERVICE_EDGES)
    picture = ET.fromstring(run(company, "--svg")[1])
    titles = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 1 + len(truth.SERVICE_EDGES) + len(truth.SERVICES + truth.STORES + truth.EXTERNALS)


def test_a_map_of_strange_names_is_well_formed_and_its_boxes_do_not_overlap() -> None:
    services = [Service(name) for name in ('a<b>&"c', "x" * 90, "loop-1", "loop-2", "alone")]
    edges = [ServiceEdge("loop-1", "loop-2", "odd"), ServiceEdge("loop-2", "loop-1", "db"),
             ServiceEdge('a<b>&"c', "loop-1", "http")]  # fmt: skip
    boxes = [
        (each.get("x"), each.get("y"))
        for each in ET.fromstring(svg(services, edges)).iter("{http://www.w3.org/2000/svg}rect")
        if each.get("x")
    ]
    assert len(set(boxes)) == len(services)
    assert mermaid(services, edges).count("-->") == 3
    ET.fromstring(svg([], []))


@pytest.mark.parametrize(
    "args",
    [["--blast-radius"], ["a", "--blast-radius", "--downstream"], ["--svg", "--mermaid"], ["--json", "--svg"]],
)
def test_flags_that_make_no_sense_together_are_refused(company: Path, args: list[str]) -> None:
    assert run(company, *args)[0] == 2


def test_an_unknown_service_gets_the_known_ones(company: Path) -> None:
    code, _, err = run(company, "nope")
    assert code == 1
    assert "no service 'nope'; known services: api.cartograph.example, booking-api" in err


def test_an_index_without_services_says_what_to_index(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Hello\n")
    with dowse.open(tmp_path / "index", embedder="none") as engine:
        engine.index([tmp_path / "a.md"], embed=False)
    code, out, err = run(tmp_path / "index")
    assert (code, out.strip()) == (1, "")
    assert "dowse index ." in err


@pytest.mark.parametrize("flag", ["--pseudonyms", "--scrub"])
def test_index_tells_what_was_masked_and_replaced(tmp_path: Path, flag: str) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "a.md").write_text("password = 'hunter2x'\nmail me@mail.example\n")
    args = ["index", "--no-embed", flag, str(folder), "--index", str(tmp_path / "index")]
    done = CliRunner().invoke(cli, args, prog_name="dowse")
    assert "Masked 1 secret.\n" in done.stdout
    assert "Replaced with pseudonyms: 1 e-mail.\n" in done.stdout
    assert ("--scrub is deprecated and will be removed in the next version; use: --pseudonyms" in done.stderr) == (
        flag == "--scrub"
    )
    again = json.loads(CliRunner().invoke(cli, [*args, "--json"], prog_name="dowse").stdout)
    assert (again["masked"], again["scrubbed"]) == (0, {})
