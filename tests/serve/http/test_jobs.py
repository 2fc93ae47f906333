"""Index jobs, judgments, and a server that follows what other processes write."""

import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import dowse
from dowse.evaluate.judgments import kept
from dowse.serve.backend import Access
from http_server import WAIT_S, Client, indexed, run, running_server

OVER = ("done", "failed", "stopped")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "shop"


@pytest.fixture
def index(tmp_path: Path, root: Path) -> Path:
    return indexed(tmp_path / "index", root, {"a.md": "# Retry\n\nretry payments\n", "sub/b.md": "# Login\n\nlogin\n"})


@pytest.fixture
def client(index: Path) -> Iterator[Client]:
    with running_server(index, access=Access(write=True)) as client:
        yield client


def finished(client: Client, job: str) -> dict:
    ends = time.monotonic() + WAIT_S
    while (found := client.get(f"/v1/jobs/{job}").json)["state"] not in OVER:
        assert time.monotonic() < ends
        time.sleep(0.02)
    return found


def test_a_job_brings_all_sources_up_to_date(client: Client, root: Path) -> None:
    (root / "new.md").write_text("# Zebra\n\nzebra crossing\n")
    (root / "a.md").unlink()
    started = client.post("/v1/index", {})
    assert started.status == 202
    assert started.headers["location"] == f"/v1/jobs/{started.json['id']}"
    job = finished(client, started.json["id"])
    assert job["state"] == "done"
    assert (job["report"]["added"], job["report"]["removed"], job["report"]["unchanged"]) == (1, 1, 1)
    assert client.get("/v1/search?q=zebra").json["chunks"][0]["source_uri"] == "shop/new.md"
    assert [each["id"] for each in client.get("/v1/jobs").json["jobs"]] == [job["id"]]


def test_a_job_may_be_about_one_place(client: Client, root: Path) -> None:
    (root / "new.md").write_text("# Zebra\n\nzebra crossing\n")
    (root / "sub" / "more.md").write_text("# Okapi\n\nokapi crossing\n")
    job = finished(client, client.post("/v1/index", {"paths": ["shop/sub"]}).json["id"])
    assert job["paths"] == ["shop/sub"]
    assert job["report"]["added"] == 1


def test_the_events_of_a_job_end_with_its_end(client: Client, root: Path) -> None:
    for n in range(20):
        (root / f"{n}.md").write_text(f"# Note {n}\n\nnote {n}\n")
    started = client.post("/v1/index", {}).json
    found = client.get(f"/v1/jobs/{started['id']}/events").events
    assert {name for name, _ in found} == {"job"}
    versions = [job["version"] for _, job in found]
    assert versions == sorted(set(versions))
    assert found[-1][1]["state"] == "done"
    assert found[-1][1]["report"]["added"] == 20


def test_jobs_run_one_after_the_other(client: Client, root: Path) -> None:
    ids = [client.post("/v1/index", {"embed": False}).json["id"] for _ in range(3)]
    jobs = [finished(client, each) for each in ids]
    assert [job["state"] for job in jobs] == ["done"] * 3
    for before, after in pairwise(jobs):
        assert before["finished_at"] <= after["started_at"]


def test_a_job_that_fails_says_why_without_naming_places(client: Client, root: Path, tmp_path: Path) -> None:
    job = finished(client, client.post("/v1/index", {"paths": ["shop/gone"]}).json["id"])
    assert job["state"] == "failed"
    assert "no such file or folder" in job["error"]
    assert str(tmp_path) not in job["error"]


def test_a_job_that_is_unknown_is_told(client: Client) -> None:
    assert client.get("/v1/jobs/nothing").status == 404
    assert client.get("/v1/jobs/nothing/events").status == 404


@pytest.mark.parametrize("row", [{"paths": "shop"}, {"paths": [1]}, {"folders": []}, {"embed": "yes"}, []])
def test_an_order_that_does_not_fit_is_told(client: Client, row: object) -> None:
    assert client.post("/v1/index", row).status == 400


def test_judgments_are_kept_where_eval_and_tune_find_them(client: Client, index: Path) -> None:
    hit = client.get("/v1/search?q=retry").json["chunks"][0]
    answer = client.post("/v1/feedback", {"query": "retry", "target": hit["id"], "grade": 2})
    assert answer.status == 200
    client.post("/v1/feedback", {"query": "retry", "target": hit["id"], "grade": 3})
    assert [(j.query, j.target, j.grade, j.source_uri) for j in kept(index)] == [
        ("retry", hit["id"], 3.0, hit["source_uri"])
    ]


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({"query": "x", "target": "0123456789abcdef", "grade": 1}, 404),
        ({"query": " ", "target": "0123456789abcdef", "grade": 1}, 400),
        ({"query": "x", "target": "0123456789abcdef", "grade": 9}, 400),
        ({"query": "x", "target": "0123456789abcdef"}, 400),
    ],
)
def test_a_judgment_that_makes_no_sense_is_told(client: Client, row: object, status: int) -> None:
    assert client.post("/v1/feedback", row).status == status


def test_what_another_process_indexes_appears_without_a_restart(client: Client, index: Path, root: Path) -> None:
    """The server answers all the while, and never with an error."""
    statuses: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            statuses.append(client.get("/v1/search?q=payments").status)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for n in range(3):
            (root / f"new{n}.md").write_text(f"# Zebra {n}\n\nzebra{n} crossing\n")
            done = run("index", "--index", str(index), str(root))
            assert done.returncode == 0, done.stderr
            found = client.get(f"/v1/search?q=zebra{n}").json["chunks"]
            assert found[0]["source_uri"] == f"shop/new{n}.md"
    finally:
        stop.set()
        asking.join(WAIT_S)
    assert set(statuses) == {200}
    assert client.get("/v1/status").json["documents"] == 2 + 3


def test_a_server_survives_a_compaction_by_another_process(client: Client, index: Path) -> None:
    assert client.get("/v1/search?q=retry").json["chunks"]
    with dowse.open(index, embedder="hash") as engine:
        engine.rebuild()
    assert client.get("/v1/search?q=retry").json["chunks"][0]["source_uri"] == "shop/a.md"
