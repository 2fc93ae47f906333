"""The sample company is whole and consistent: what the demo and other tests rely on is really in its files."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sample_truth as truth
from dowse.filters import from_request
from dowse.sample import SampleQuery, queries, root
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest

ROOT = root()
QUERIES = queries()
PARAPHRASES = [query for query in QUERIES if query.kind == "paraphrase"]
NODES = {*truth.SERVICES, *truth.STORES, *truth.EXTERNALS}


def paths() -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())


def text_of(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def shared_terms(query: str, passage: str) -> set[str]:
    tokenizer = Tokenizer()
    ours, theirs = tokenizer(query), tokenizer(passage)
    return (set(ours.code) & set(theirs.code)) | (set(ours.prose) & set(theirs.prose))


# --- the tree ---------------------------------------------------------------------------------------


def test_the_tree_has_every_kind_of_writing() -> None:
    suffixes = {Path(path).suffix for path in paths()}
    assert suffixes >= {".ts", ".go", ".py", ".java", ".sql", ".proto", ".yaml", ".yml", ".json", ".tf", ".tpl"}
    assert suffixes >= {".md", ".html", ".csv", ".vtt", ".sh"}
    folders = {path.split("/")[0] for path in paths()}
    assert folders >= {"services", "deploy", "docs", "slack-export", "papers", "transcripts", "proto", "openapi"}
    assert {path.name for path in (ROOT / "services").iterdir()} == set(truth.SERVICES)


def test_the_tree_is_small_enough_to_bundle_and_large_enough_to_search() -> None:
    sizes = [(ROOT / path).stat().st_size for path in paths()]
    assert 70 <= len(sizes) <= 150
    assert 250_000 <= sum(sizes) <= 400_000
    assert min(sizes) > 0


def test_every_file_is_utf8_with_unix_lines_and_some_are_not_ascii() -> None:
    texts = [text_of(path) for path in paths()]
    assert all("\r" not in text and "\t\n" not in text and text.endswith("\n") for text in texts)
    assert any(not text.isascii() for text in texts)


def test_no_path_is_hidden_or_left_out_of_the_wheel() -> None:
    left_out = {"build", "dist", "__pycache__", "node_modules", "vendor", "uv.lock"}
    for path in paths():
        parts = path.split("/")
        assert not any(part.startswith(".") or part.endswith(".egg-info") for part in parts), path
        assert not left_out & set(parts), path


def test_hosts_are_reserved_names_or_local() -> None:
    """Nothing in the sample points at a real system."""
    for path in paths():
        for host in re.findall(r"[a-z]+://(?:[^\s/@\"'`]+@)?([A-Za-z0-9.-]+)", text_of(path)):
            local = "." not in host or host.endswith(".svc.cluster.local")
            assert local or host.rstrip(".").endswith(".example"), f"{path} names {host}"


def test_links_between_markdown_files_resolve() -> None:
    links = 0
    for path in paths():
        if path.endswith(".md"):
            for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text_of(path)):
                assert (ROOT / path).parent.joinpath(target).exists(), f"{path} links to {target}"
                links += 1
    assert links > 30


def test_paths_named_in_prose_and_talk_exist() -> None:
    named = re.compile(r"(?<![\w/.-])(?:docs|services|deploy|papers|scripts|proto|data)/[\w./-]+\.[a-zA-Z]+")
    found = 0
    for path in paths():
        # A service's Dockerfile and CI name paths relative to their own folder.
        if path.endswith((".md", ".json", ".ts", ".go", ".py", ".yaml")):
            for target in named.findall(text_of(path)):
                assert (ROOT / target).exists() or (ROOT / path).parent.joinpath(target).exists(), f"{path}: {target}"
                found += 1
    assert found > 25


# --- formats ----------------------------------------------------------------------------------------


def test_json_csv_and_python_parse() -> None:
    for path in paths():
        if path.endswith(".json"):
            json.loads(text_of(path))
        if path.endswith(".py"):
            ast.parse(text_of(path), path)
    rows = list(csv.DictReader(text_of("data/depots.csv").splitlines()))
    codes = {row["code"] for row in rows}
    assert {row["neighbour"] for row in rows} <= codes


def test_yaml_looks_like_yaml() -> None:
    """By text only: no tabs, even indents, and every Kubernetes document has its kind and name."""
    for path in paths():
        if not path.endswith((".yaml", ".yml")):
            continue
        lines = text_of(path).splitlines()
        assert not any("\t" in line for line in lines), path
        assert all((len(line) - len(line.lstrip())) % 2 == 0 for line in lines if line.strip()), path
    for path in paths():
        if path.startswith("deploy/k8s/") and not path.endswith("kustomization.yaml"):
            for document in text_of(path).split("\n---\n"):
                assert re.search(r"^apiVersion: \S+", document, re.M), path
                assert re.search(r"^kind: [A-Z]\w+", document, re.M), path
                assert re.search(r"\bname: [a-z-]+", document), path


def test_manifests_applied_by_kustomize_exist_and_none_is_forgotten() -> None:
    listed = set(re.findall(r"^  - ([\w-]+\.yaml)$", text_of("deploy/k8s/kustomization.yaml"), re.M))
    present = {Path(path).name for path in paths() if path.startswith("deploy/k8s/")}
    assert listed | {"kustomization.yaml"} == present


def test_front_matter_of_decisions_has_status_date_and_author() -> None:
    decisions = [path for path in paths() if path.startswith("docs/adr/")]
    assert len(decisions) >= 5
    for path in decisions:
        head = text_of(path).split("---\n")[1]
        assert re.search(r"^status: (accepted|superseded)$", head, re.M), path
        assert re.search(r"^date: 20\d\d-\d\d-\d\d$", head, re.M), path
        assert re.search(r"^author: \w+", head, re.M), path


def test_the_transcript_moves_forward_in_time() -> None:
    cues = re.findall(r"^(\S+) --> (\S+)$", text_of("transcripts/2026-03-05-capacity-review.vtt"), re.M)
    moments = [moment for cue in cues for moment in cue]
    assert len(cues) >= 10
    assert moments == sorted(moments)


# --- golden queries ---------------------------------------------------------------------------------


def test_there_are_about_25_queries_of_every_kind() -> None:
    assert 22 <= len(QUERIES) <= 35
    assert len({query.text for query in QUERIES}) == len(QUERIES)
    kinds = {query.kind for query in QUERIES}
    assert kinds == {"identifier", "paraphrase", "error", "config", "filtered", "slack", "paper", "question"}


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.text)
def test_target_line_occurs_once_in_its_file(query: SampleQuery) -> None:
    assert "\n" not in query.line
    assert text_of(query.expect).count(query.line) == 1


@pytest.mark.parametrize("query", PARAPHRASES, ids=lambda query: query.text)
def test_paraphrase_shares_no_term_with_its_whole_file(query: SampleQuery) -> None:
    assert shared_terms(query.text, query.expect + "\n" + text_of(query.expect)) == set()
    assert len(Tokenizer()(query.text).prose) >= 3


def test_other_queries_do_share_terms_with_their_file() -> None:
    """The counterpart: shared_terms can find something."""
    for query in QUERIES:
        if query.kind != "paraphrase":
            assert shared_terms(query.text, text_of(query.expect)), query.text


def test_filters_are_fields_of_a_request_and_matter() -> None:
    for query in QUERIES:
        fields: dict[str, Any] = dict(query.filters)
        where = from_request(QueryRequest(query.text, **fields))
        assert len(where) == len(query.filters)
        assert bool(query.filters) == (query.kind == "filtered")


# --- truth ------------------------------------------------------------------------------------------


def test_service_edges_name_known_nodes_once_in_order() -> None:
    edges = truth.SERVICE_EDGES
    assert list(edges) == sorted(set(edges))
    assert {source for source, _, _ in edges} == set(truth.SERVICES)
    assert {target for _, target, _ in edges} == NODES - {"route-planner"}  # nobody calls the planner
    assert {kind for _, _, kind in edges} == {"http", "grpc", "queue", "db"}
    assert all(source != target for source, target, _ in edges)


def deployed_settings(service: str) -> str:
    chart = ROOT / "deploy/helm" / service / "values.yaml"
    return chart.read_text("utf-8") if chart.exists() else text_of(f"deploy/k8s/{service}.yaml")


def composed_settings(service: str) -> str:
    after = text_of("docker-compose.yml").split(f"\n  {service}:\n")[1]
    return re.split(r"\n  [a-z-]+:\n", after)[0]


def targets_in(settings: str) -> set[tuple[str, str]]:
    """(variable, node) for every variable whose value is an address."""
    variables = re.findall(r"(?:name: )?([A-Z][A-Z_]+)(?::|\n\s+value:) +(\S+)", settings)
    address = re.compile(r"^(?:[a-z:]+://)?(?:[^@/]+@)?([a-z][a-z0-9.-]*)(?::\d+)?(?:/.*)?$")
    found = set()
    for name, value in variables:
        match = address.match(value)
        host = match[1].removesuffix(".parcels.svc.cluster.local") if match else ""
        if host in NODES:
            found.add((name, host))
    return found


@pytest.mark.parametrize("service", truth.SERVICES)
def test_edges_are_exactly_what_manifests_and_compose_configure(service: str) -> None:
    settings = {(name, target) for source, name, target in truth.EDGE_SETTINGS if source == service}
    assert targets_in(deployed_settings(service)) == settings
    assert targets_in(composed_settings(service)) == settings
    assert {target for _, target in settings} == {
        target for source, target, _ in truth.SERVICE_EDGES if source == service
    }


@pytest.mark.parametrize(("service", "variable", "target"), truth.EDGE_SETTINGS)
def test_the_code_of_a_service_reads_the_settings_of_its_edges(service: str, variable: str, target: str) -> None:
    sources = (".ts", ".go", ".py", ".java", ".yml")
    code = [text_of(path) for path in paths() if path.startswith(f"services/{service}/") and path.endswith(sources)]
    assert any(variable in text for text in code), f"{service} never reads {variable}, so it cannot reach {target}"


def test_queue_flows_are_published_and_consumed_in_code() -> None:
    for producer, key, consumer in truth.QUEUE_FLOWS:
        for service in (producer, consumer):
            code = "\n".join(text_of(path) for path in paths() if path.startswith(f"services/{service}/"))
            assert f'"{key}"' in code, (service, key)
            assert (service, "parcel-bus", "queue") in truth.SERVICE_EDGES


@pytest.mark.parametrize(("path", "name", "start_line"), truth.SYMBOLS)
def test_symbol_is_defined_at_its_line(path: str, name: str, start_line: int) -> None:
    line = text_of(path).splitlines()[start_line - 1]
    last = name.split(".")[-1]
    assert re.search(rf"\b{last}\b *[(<:{{ ]", line), line
    assert not line.lstrip().startswith(("//", "#", "*", "return", "await")), line
    if "." in name and path.endswith(".go"):
        assert re.match(rf"func \(\w+ \*?{name.split('.')[0]}\) ", line), line


def test_python_symbols_agree_with_the_parser() -> None:
    for path, name, start_line in truth.SYMBOLS:
        if path.endswith(".py"):
            assert start_line == dict(python_definitions(ast.parse(text_of(path))))[name]


def python_definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield prefix + child.name, child.lineno
            yield from python_definitions(child, f"{prefix}{child.name}.")


def test_secrets_are_in_the_files_and_marked_as_examples() -> None:
    for path, secret in truth.SECRETS:
        lines = [line for line in text_of(path).splitlines() if secret in line]
        assert len(lines) == 1
    assert all("EXAMPLE" in secret or secret.startswith("RVhBTVBMR") for _, secret in truth.SECRETS)


# --- Slack ------------------------------------------------------------------------------------------


def export(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(text_of(f"slack-export/{name}"))
    return loaded


def channel_days() -> list[tuple[str, str, list[dict[str, Any]]]]:
    files = [path for path in paths() if re.fullmatch(r"slack-export/[\w-]+/\d{4}-\d\d-\d\d\.json", path)]
    return [(path.split("/")[1], Path(path).stem, export(path.removeprefix("slack-export/"))) for path in files]


def test_slack_folders_are_its_channels_and_messages_belong_to_their_day() -> None:
    days = channel_days()
    assert {channel for channel, _, _ in days} == {channel["name"] for channel in export("channels.json")}
    assert 60 <= sum(len(messages) for _, _, messages in days) <= 100
    for channel, day, messages in days:
        moments = [float(message["ts"]) for message in messages]
        assert moments == sorted(set(moments)), (channel, day)
        assert {datetime.fromtimestamp(moment, UTC).date().isoformat() for moment in moments} == {day}
        assert day.startswith("2026-")


def test_slack_people_and_bots_are_known() -> None:
    users = {user["id"] for user in export("users.json")}
    bots = {user["profile"].get("bot_id") for user in export("users.json")} - {None}
    channels = {channel["id"] for channel in export("channels.json")}
    for _, _, messages in channel_days():
        for message in messages:
            assert (message["user"] in users) if "user" in message else (message["bot_id"] in bots)
            assert set(re.findall(r"<@(\w+)>", message["text"])) <= users
            assert set(re.findall(r"<#(\w+)\|", message["text"])) <= channels
            for reaction in message.get("reactions", []):
                assert set(reaction["users"]) <= users
                assert reaction["count"] == len(reaction["users"])


def test_slack_threads_resolve_both_ways() -> None:
    by_channel: dict[str, dict[str, dict[str, Any]]] = {}
    for channel, _, messages in channel_days():
        by_channel.setdefault(channel, {}).update({message["ts"]: message for message in messages})
    replies = 0
    for messages_by_ts in by_channel.values():
        for ts, message in messages_by_ts.items():
            if message.get("thread_ts", ts) != ts:
                parent = messages_by_ts[message["thread_ts"]]
                assert ts in {reply["ts"] for reply in parent["replies"]}
                replies += 1
            for reply in message.get("replies", []):
                assert messages_by_ts[reply["ts"]]["thread_ts"] == ts
            assert message.get("reply_count", 0) == len(message.get("replies", []))
    assert replies >= 40


def test_slack_export_has_its_odd_messages() -> None:
    """Bots, joins, edits, files: readers meet all of them."""
    messages = [message for _, _, day in channel_days() for message in day]
    assert {"bot_message", "channel_join"} <= {message.get("subtype") for message in messages}
    assert any("edited" in message for message in messages)
    assert any("files" in message for message in messages)
    assert any("&gt;" in message["text"] or "&amp;" in message["text"] for message in messages)
