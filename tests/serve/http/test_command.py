"""`dowse serve` as people start and stop it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dowse.serve.http.options import ServerLimits
from dowse.store.lock import WriterLock
from dowse.store.sql.schema import LOCK
from http_server import WAIT_S, Client, environment, indexed, run, server_process

FILES = {"a.md": "# Retry\n\nretry payments\n"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well(index: Path, number: signal.Signals) -> None:
    with server_process(index) as (process, client):
        assert client.get("/v1/search?q=retry").json["chunks"]
        process.send_signal(number)
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_requests_under_way_are_answered_before_it_ends(index: Path) -> None:
    """The body of a request comes late, and the signal in between."""
    with server_process(index) as (process, client), socket.create_connection(("127.0.0.1", client.port)) as raw:
        body = json.dumps({"text": "retry"}).encode()
        raw.sendall(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        raw.sendall(b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body))
        assert raw.recv(1000).startswith(b"HTTP/1.1 100")
        process.send_signal(signal.SIGTERM)
        until_closed(client)
        raw.sendall(body)
        answer = raw.makefile("rb").read()
        process.communicate(timeout=WAIT_S)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"retry payments" in answer


def test_an_open_stream_of_events_does_not_hold_it_up(tmp_path: Path) -> None:
    """The job waits for another writer, so its events have no end of their own."""
    place = indexed(tmp_path / "index", tmp_path / "shop", FILES)
    lock = WriterLock(place / LOCK, 0.0)
    try:
        with server_process(place, "--allow-write") as (process, client):
            started = client.post("/v1/index", {}).json
            watching = threading.Thread(target=client.get, args=(f"/v1/jobs/{started['id']}/events",))
            watching.start()
            while client.get(f"/v1/jobs/{started['id']}").json["state"] != "running":
                time.sleep(0.02)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            watching.join(WAIT_S)
            assert time.monotonic() - began < ServerLimits().shutdown_s / 2
            process.communicate(timeout=WAIT_S)
    finally:
        lock.close()
    assert process.returncode == 0


def test_several_processes_answer_at_one_port_and_count_together(index: Path) -> None:
    with server_process(index, "--workers", "2") as (process, client):
        until_ready(client)
        for _ in range(20):
            assert client.get("/v1/search?q=retry").status == 200
        text = client.get("/metrics").body.decode()
        line = next(each for each in text.splitlines() if 'route="/v1/search"' in each and "_total" in each)
        assert float(line.split()[-1]) == 20.0
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
    assert process.returncode == 0


def until_closed(client: Client) -> None:
    ends = time.monotonic() + WAIT_S
    while time.monotonic() < ends:
        try:
            client.get("/healthz")
        except ConnectionError:
            return
    raise AssertionError("it still takes connections")


def until_ready(client: Client) -> None:
    ends = time.monotonic() + WAIT_S
    while client.get("/readyz").status != 200:
        assert time.monotonic() < ends


def test_without_an_index_it_says_how_to_make_one(tmp_path: Path) -> None:
    done = run("serve", "--index", str(tmp_path / "none"))
    assert done.returncode == 3
    assert "dowse index" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_told(index: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("serve", "--index", str(index), "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "--port" in done.stderr


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--host", "no.such.host.invalid", "--token-file", "token"], "cannot"),
        (["--cors", "*"], "--cors"),
        (["--allow-write", "--workers", "2"], "--workers"),
    ],
)
def test_what_makes_no_sense_is_told(index: Path, flags: list[str], told: str) -> None:
    done = run("serve", "--index", str(index), *flags)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_extra_it_says_what_to_install(index: Path) -> None:
    script = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'uvicorn' else real(name, *rest)\n"
        "from dowse.cli.main import main\n"
        f"sys.argv = ['dowse', 'serve', '--index', {str(index)!r}]\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install '.[server]'" in done.stderr


def test_a_token_in_the_environment_is_asked_for(index: Path) -> None:
    token = "f" * 20
    with server_process(index, DOWSE_TOKEN=token) as (_, client):
        assert client.get("/v1/search?q=retry").status == 401
        assert client.get("/v1/search?q=retry", Authorization=f"Bearer {token}").status == 200


def test_a_reader_keeps_nothing_open_for_writing(index: Path) -> None:
    with server_process(index) as (process, client):
        client.get("/v1/search?q=retry")
        folder = Path(f"/proc/{process.pid}/fd")
        if not folder.exists():
            pytest.skip("no /proc here")
        for each in folder.iterdir():
            target = os.readlink(each) if os.path.lexists(each) else ""  # a connection that has just ended
            if str(index) in target and not target.endswith(("-shm", "-wal")):
                mode = int(
                    (Path(f"/proc/{process.pid}/fdinfo") / each.name).read_text().split("flags:")[1].split()[0], 8
                )
                assert mode & (os.O_WRONLY | os.O_RDWR) == 0, target
