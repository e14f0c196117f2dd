from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.llm.errors import CODES, CallError, call_error, error_of_status, parse_retry_after

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("code", CODES)
def test_call_error__every_code__is_a_sentence_and_survives_pickling(code: str) -> None:
    error = call_error(code, 418, 2.0)  # type: ignore[arg-type]  # each of the literal's values

    assert str(error).endswith("(status 418).")
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)  # noqa: S301  # our own bytes


@given(status=st.integers(300, 599), text=st.text())
def test_error_of_status__any_status_and_text__follows_the_rules(status: int, text: str) -> None:
    error = error_of_status(status, text, 1.0)

    assert error.transient is (status in (408, 429) or status >= 500) or error.code in (
        "context_length",
        "payment_required",
    )
    assert error.overflow is (error.code == "context_length")
    assert not (error.transient and error.overflow)
    assert str(error) == str(call_error(error.code, status))


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        '{"error": {"code": "context_length_exceeded"}}',
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: the context window of 200000",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).",
        "ValidationException: Input is too long for requested model.",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    ],
)
def test_error_of_status__provider_says_the_input_is_too_long__is_an_overflow(text: str) -> None:
    assert error_of_status(400, text, None).code == "context_length"


def test_error_of_status__more_than_a_minutes_allowance_in_one_request__is_an_overflow() -> None:
    text = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."

    assert error_of_status(429, text, None).overflow


@pytest.mark.parametrize("text", ["", "max_tokens is too large: 99999", "Invalid value for temperature"])
def test_error_of_status__other_refusal__is_a_bad_request(text: str) -> None:
    assert error_of_status(400, text, None).code == "bad_request"


def test_error_of_status__server_error_that_talks_of_context__stays_transient() -> None:
    assert error_of_status(503, "context window service unavailable", None).transient


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        (" 3 ", 3.0),
        ("-5", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 99 Mar 2026 12:00:30 GMT", None),
    ],
)
def test_parse_retry_after__header__is_seconds_or_none(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@given(st.text())
def test_parse_retry_after__any_text__never_raises_and_is_never_negative(value: str) -> None:
    seconds = parse_retry_after(value, NOW)

    assert seconds is None or 0 <= seconds < float("inf")


def test_call_error__without_a_status__names_none() -> None:
    assert str(CallError("timeout", True)) == "The model did not answer in time."
