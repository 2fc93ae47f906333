"""The LLM port against a real server on this machine that behaves, misbehaves, recovers or never ends."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.config import Config
from dowse.errors import BadRequestError, DeadlineError, ModelUnavailableError, UnavailableError
from dowse.models.endpoint import Endpoint, Patience
from dowse.models.llm import ATTEMPTS, HttpLLM, json_value, json_values, open_llm
from fake_llm import (
    KEY,
    FakeEndpoint,
    Reply,
    answers,
    cut_off,
    fake_llm,
    never_ending,
    never_ending_head,
    says,
    slow,
)

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
GOOD = {"a": 1}
LATE_S = 0.5  # by how much the whole may exceed its deadline


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between the tests and their own machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def llm_at(endpoint: FakeEndpoint, pauses_s: list[float] | None = None, **options: Any) -> HttpLLM:
    return HttpLLM(endpoint.url, "small", sleep=([] if pauses_s is None else pauses_s).append, **options)


def ask(llm: HttpLLM, prompt: str = "say a", timeout_s: float = 5.0) -> Any:
    return llm.complete_json(prompt, SCHEMA, timeout_s, max_tokens=64)


# --- the request ------------------------------------------------------------------------------------


def test_the_request_is_what_an_openai_client_sends() -> None:
    with fake_llm(says(GOOD)) as endpoint:
        assert ask(llm_at(endpoint, api_key=KEY)) == GOOD
    assert endpoint.requests[0] == {
        "path": "/v1/chat/completions",
        "model": "small",
        "messages": [{"role": "user", "content": "say a"}],
        "temperature": 0,
        "max_tokens": 64,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
        },
    }
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent() -> None:
    with fake_llm(says(GOOD)) as endpoint:
        ask(llm_at(endpoint))
    assert "Authorization" not in endpoint.headers[0]


def test_a_query_string_stays_behind_the_path() -> None:
    with fake_llm(says(GOOD)) as endpoint:
        ask(HttpLLM(f"{endpoint.url}/?api-version=3", "small"))
    assert endpoint.requests[0]["path"] == "/v1/chat/completions?api-version=3"


def test_a_server_that_knows_no_schema_is_asked_with_the_bare_request_from_then_on() -> None:
    with fake_llm(answers(400, {"error": "unknown field response_format"}), says(GOOD)) as endpoint:
        llm = llm_at(endpoint)
        assert ask(llm, "one") == GOOD
        assert ask(llm, "two") == GOOD
    assert [sorted(request) for request in endpoint.requests[1:]] == [["messages", "model", "path"]] * 2


def test_half_characters_in_the_prompt_reach_the_server_as_question_marks() -> None:
    with fake_llm(says(GOOD)) as endpoint:
        ask(llm_at(endpoint), "a\ud800b")
    assert endpoint.prompts == ["a?b"]


# --- retries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_tried_again_with_jitter(status: int) -> None:
    pauses_s: list[float] = []
    with fake_llm(answers(status, {}), answers(status, {}), says(GOOD)) as endpoint:
        assert ask(llm_at(endpoint, pauses_s)) == GOOD
    assert len(endpoint.requests) == 3
    assert 0.5 * 0.5 <= pauses_s[0] <= 0.5
    assert 0.5 * 1.0 <= pauses_s[1] <= 1.0


def test_a_connection_that_breaks_is_tried_again() -> None:
    with fake_llm(cut_off, says(GOOD)) as endpoint:
        assert ask(llm_at(endpoint)) == GOOD
    assert len(endpoint.requests) == 2


def test_there_is_no_pause_after_the_last_attempt() -> None:
    pauses_s: list[float] = []
    with fake_llm(answers(503, b"busy")) as endpoint, pytest.raises(ModelUnavailableError, match="503: busy"):
        ask(llm_at(endpoint, pauses_s))
    assert len(endpoint.requests) == ATTEMPTS
    assert len(pauses_s) == ATTEMPTS - 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_the_callers_mistake_is_not_tried_again(status: int) -> None:
    refusing = answers(status, {"error": f"wrong key {KEY}"})
    with fake_llm(refusing) as endpoint, pytest.raises(ModelUnavailableError, match=f"replies {status}") as caught:
        ask(llm_at(endpoint, api_key=KEY))
    assert len(endpoint.requests) == 1
    assert KEY not in str(caught.value)


def test_a_bad_request_is_asked_once_full_and_once_bare() -> None:
    with (
        fake_llm(answers(400, b"no such model")) as endpoint,
        pytest.raises(ModelUnavailableError, match="no such model"),
    ):
        ask(llm_at(endpoint))
    assert len(endpoint.requests) == 2


def test_a_pause_that_would_outlast_the_deadline_is_not_taken() -> None:
    pauses_s: list[float] = []
    later = answers(429, b"later", Retry_After="3")
    with fake_llm(later) as endpoint, pytest.raises(UnavailableError, match="429: later"):
        ask(llm_at(endpoint, pauses_s), timeout_s=2.0)
    assert pauses_s == []
    assert len(endpoint.requests) == 1


def test_a_redirect_does_not_carry_the_key_elsewhere() -> None:
    with (
        fake_llm(says(GOOD)) as elsewhere,
        fake_llm(answers(307, b"", Location=elsewhere.url)) as endpoint,
        pytest.raises(ModelUnavailableError, match="replies 307"),
    ):
        ask(llm_at(endpoint, api_key=KEY))
    assert elsewhere.requests == []


# --- the deadline -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply", [slow, never_ending, never_ending_head, answers(503, b"busy"), answers(429, b"", Retry_After="1"), cut_off]
)
@pytest.mark.parametrize("timeout_s", [0.1, 0.4])
def test_no_reply_exceeds_its_deadline_by_half_a_second(reply: Reply, timeout_s: float) -> None:
    with fake_llm(reply) as endpoint:
        llm = HttpLLM(endpoint.url, "small")  # with real pauses
        started_s = time.monotonic()
        with pytest.raises(UnavailableError):
            ask(llm, timeout_s=timeout_s)
        assert time.monotonic() - started_s < timeout_s + LATE_S


def test_a_slow_server_is_a_missed_deadline() -> None:
    with fake_llm(slow) as endpoint, pytest.raises(DeadlineError, match="has not replied in"):
        ask(llm_at(endpoint), timeout_s=0.1)


def test_with_no_time_left_nothing_is_sent() -> None:
    with fake_llm(says(GOOD)) as endpoint, pytest.raises(DeadlineError):
        ask(llm_at(endpoint), timeout_s=0.0)
    assert endpoint.requests == []


def test_a_reply_larger_than_any_honest_one_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dowse.models.endpoint.LARGEST_REPLY_BYTES", 1000)
    with (
        fake_llm(answers(200, b" " * 2000)) as endpoint,
        pytest.raises(ModelUnavailableError, match="more than 1,000 bytes"),
    ):
        Endpoint("LLM endpoint", endpoint.url).post({}, Patience(5.0, attempts=1))


def test_a_closed_port_is_unavailable() -> None:
    with fake_llm(says(GOOD)) as endpoint:
        pass
    with pytest.raises(ModelUnavailableError, match="does not reply"):
        ask(llm_at(endpoint))


# --- the reply --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        'Sure! Here it is [as asked]:\n{"a": 1}\nAnything else?',
        'See [1] and [2]. {"a": 1}',
        '{"b": 2} {"a": 1}',
        '<think>maybe {"a": 7}?</think>{"a": 1}',
        '{"broken": {"a": 1}',
    ],
)
def test_json_is_found_in_fences_and_prose(text: str) -> None:
    with fake_llm(says(text)) as endpoint:
        assert ask(llm_at(endpoint)) == {"a": 1}


def test_a_reply_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": '{"a":'}, {"type": "text", "text": "1}"}]
    with fake_llm(answers(200, {"choices": [{"message": {"content": parts}}]})) as endpoint:
        assert ask(llm_at(endpoint)) == {"a": 1}


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_become_null(constant: str) -> None:
    assert json_value(f'{{"a": {constant}}}', SCHEMA) == {"a": None}


@pytest.mark.parametrize(
    "reply",
    [
        answers(200, b"<html>"),
        answers(200, []),
        answers(200, {}),
        answers(200, {"choices": []}),
        answers(200, {"choices": [None]}),
        answers(200, {"choices": [{"message": {"content": None}}]}),
        says("   "),
        says("I cannot help with that."),
        says('{"a": 1', "length"),
        says('{"a": 1}', "length"),
    ],
)
def test_nonsense_is_unavailable_and_not_remembered(reply: Reply) -> None:
    with fake_llm(reply, says(GOOD)) as endpoint:
        llm = llm_at(endpoint)
        with pytest.raises(ModelUnavailableError):
            ask(llm)
        assert ask(llm) == GOOD


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=3) | st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_any_object_or_array_is_found_in_prose(value: Any) -> None:
    assert next(json_values(f"So: {json.dumps(value)} That is all.")) == value


@given(st.text(alphabet='{}[]",:0123456789 ntruefalsNaIi', max_size=200))
def test_whatever_a_model_writes_no_value_holds_nan(text: str) -> None:
    def flat(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [each for inner in value.values() for each in flat(inner)]
        return [each for inner in value for each in flat(inner)] if isinstance(value, list) else [value]

    assert not any(isinstance(each, float) and math.isnan(each) for value in json_values(text) for each in flat(value))


def test_a_long_row_of_brackets_ends_soon() -> None:
    started_s = time.process_time()
    assert list(json_values("[" * 200_000)) == []
    assert time.process_time() - started_s < 5


# --- memory -----------------------------------------------------------------------------------------


def test_the_same_prompt_is_asked_once_and_the_callers_changes_do_not_stay() -> None:
    with fake_llm(says(GOOD)) as endpoint:
        llm = llm_at(endpoint)
        ask(llm)["a"] = 7
        assert ask(llm) == GOOD
    assert len(endpoint.requests) == 1


def test_another_prompt_budget_or_schema_is_asked_anew() -> None:
    with fake_llm(says(GOOD)) as endpoint:
        llm = llm_at(endpoint)
        ask(llm, "one")
        ask(llm, "two")
        llm.complete_json("one", SCHEMA, 5.0, max_tokens=65)
        llm.complete_json("one", {"type": "object"}, 5.0, max_tokens=64)
    assert len(endpoint.requests) == 4


def test_the_memory_is_bounded_and_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dowse.models.llm.CACHED_REPLIES", 2)
    with fake_llm(says(GOOD)) as endpoint:
        llm = llm_at(endpoint)
        for prompt in ("one", "two", "one", "three", "one", "two"):
            ask(llm, prompt)
    assert endpoint.prompts == ["one", "two", "three", "two"]


# --- settings ---------------------------------------------------------------------------------------


def test_the_key_is_read_from_the_environment_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWSE_LLM_API_KEY", KEY)
    with fake_llm(says(GOOD)) as endpoint:
        llm = open_llm(endpoint.url, "small")
        assert llm is not None
        ask(llm)
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(llm) + repr(vars(llm))


@pytest.mark.parametrize("key", ["hush\nhush", "hush hush", "hüsh", "hush\u2028"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(BadRequestError, match="DOWSE_LLM_API_KEY") as caught:
        HttpLLM("https://host/v1", "m", api_key=key)
    assert key[:2] not in str(caught.value)


def test_blanks_around_the_key_in_the_environment_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWSE_LLM_API_KEY", f" {KEY}\n")
    with fake_llm(says(GOOD)) as endpoint:
        llm = open_llm(endpoint.url, "small")
        assert llm is not None
        ask(llm)
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_bug_in_an_attempt_surfaces_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise TypeError("a bug")

    printed = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: printed.set() if args.exc_type is TypeError else None)
    monkeypatch.setattr(Endpoint, "_exchange", broken)
    with pytest.raises(RuntimeError, match="without a result"):
        ask(HttpLLM("http://127.0.0.1:9/v1", "small"))
    assert printed.wait(5)


def test_without_settings_there_is_no_language_model() -> None:
    assert open_llm(None, None) is None
    assert Config().llm_base_url is None


@pytest.mark.parametrize(("base_url", "model"), [("https://host/v1", None), (None, "small")])
def test_half_a_setting_is_an_error_that_names_the_other_half(base_url: str | None, model: str | None) -> None:
    with pytest.raises(BadRequestError, match="dowse config set llm_"):
        open_llm(base_url, model)


@pytest.mark.parametrize(
    "url",
    ["ftp://host/v1", "https://", "nonsense", "http://[1", "https://me:hush@host/v1", "http://h:x/v1", "http://h/a b"],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        HttpLLM(url, "m")
    assert "hush" not in str(caught.value)


def test_settings_come_from_the_environment(tmp_path: Any) -> None:
    env = {"DOWSE_CONFIG": os.devnull, "DOWSE_LLM_BASE_URL": "http://localhost:11434/v1", "DOWSE_LLM_MODEL": "small"}
    config = Config.load(tmp_path, env)
    assert (config.llm_base_url, config.llm_model) == ("http://localhost:11434/v1", "small")


def test_a_projects_file_may_not_send_text_to_a_server(tmp_path: Any) -> None:
    (tmp_path / "dowse.toml").write_text('llm_base_url = "https://elsewhere.example/v1"\n')
    with pytest.raises(BadRequestError, match="run: dowse trust"):
        Config.load(tmp_path, {"DOWSE_CONFIG": os.devnull})
