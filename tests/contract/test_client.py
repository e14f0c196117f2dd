"""The main job, through nothing but the client generated from the committed document."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import Member
from tests.contract.sdk import Sdk
from tests.model_server import Control

WINDOW = 4096


def _turn(number: int) -> list[dict[str, Any]]:
    story = f"Station {number} reports that pump P-{number:03} lost pressure. " * 20
    return [
        {"role": "user", "content": f"Report {number}. {story}"},
        {"role": "assistant", "content": f"Noted: pump P-{number:03} needs a new seal."},
    ]


def _summarizer(sdk: Sdk, server: Control) -> None:
    """Lets the tenant's summaries be written by the scripted model."""
    model = f"openai/{uuid4().hex}"
    summarizer = {"model": model, "api_base": server.base_url, "api_key": server.key}
    changed = sdk.call("tenant_update", body={"summarizer": summarizer})
    assert (changed.summarizer.model, changed.summarizer.api_key_set) == (model, True)


def _fill(sdk: Sdk, ref: str) -> Any:
    """Appends turn by turn until one starts a compaction; that append's answer."""
    for number in range(1, 40):
        appended = sdk.call("messages_append", ref, body={"messages": _turn(number), "return_context": True})
        assert appended.last_position == 2 * number
        assert appended.context.fits
        if appended.compaction is not None:
            return appended
    raise AssertionError("no append crossed the limit")


def _append(sdk: Sdk, ref: Any, turns: range) -> None:
    sdk.call("messages_append", ref, body={"messages": [message for n in turns for message in _turn(n)]})


def _idle(sdk: Sdk, ref: Any) -> Any:
    """The context once no compaction is live. A worker that has only just been started may need more than one wait."""
    context = None
    for _ in range(2):
        context = sdk.call("context_get", ref, wait=50, wait_for=sdk.models.ContextGetWaitFor.IDLE)
        if context.compaction is None:
            break
    return context


def test_client__whole_life_of_a_conversation__works(sdk: Sdk, model_server: Control) -> None:
    _summarizer(sdk, model_server)
    ref = f"ext:case-{uuid4()}"
    policy = {"enabled": True, "preset": "navigator", "summary_max_tokens": 512}
    created = sdk.call(
        "conversations_create",
        body={
            "external_id": ref.removeprefix("ext:"),
            "model": "gpt-4o",
            "system": "You keep the log of a waterworks.",
            "context_window": WINDOW,
            "policy": policy,
            "metadata": {"team": "water"},
        },
    )
    assert created.policy["preset"] == "navigator"
    assert (created.meter.window, created.created_at.tzinfo is not None) == (WINDOW, True)

    appended = _fill(sdk, ref)
    before = sdk.call("messages_list", ref, limit=250)
    assert [row.position for row in before.data] == list(range(1, appended.last_position + 1))

    context = _idle(sdk, ref)
    assert (context.fits, context.degraded, context.compaction) == (True, False, None)
    assert context.covered.from_ == 1
    assert context.meter.tokens < context.meter.limit

    done = sdk.call("compactions_get", appended.compaction.id)
    assert (done.status, done.outcome) == (sdk.models.CompactionStatus.SUCCEEDED, sdk.models.Outcome.APPLIED)
    assert (done.method, done.trigger) == (sdk.models.SummaryMethod.LLM, sdk.models.Trigger.THRESHOLD)
    assert [one.status for one in done.passes] == [sdk.models.PassStatus.SUCCEEDED] * len(done.passes) != []
    assert done.passes[-1].tokens_in > 0
    assert done.context_after.tokens < done.context_before.tokens

    summaries = sdk.call("summaries_list", ref, state=sdk.models.SummariesListState.ACTIVE)
    node = summaries.data[0]
    assert [one.id for one in summaries.data] == context.summaries
    assert node.text == sdk.call("summaries_get", node.id).text
    originals = sdk.call("summaries_messages", node.id, limit=250)
    assert [row.position for row in originals.data] == list(range(1, context.covered.to + 1))
    assert originals.data[0].message["content"] == _turn(1)[0]["content"]

    stats = sdk.call("conversations_stats", ref)
    assert (stats.compactions, stats.outcomes.applied, stats.tokens_in) == (1, 1, done.tokens_in)
    assert stats.compression_ratio == done.compression_ratio
    used = sdk.call("usage_get", from_=datetime.now(UTC).date(), group_by=sdk.models.UsageGetGroupBy.CONVERSATION)
    assert [(row.key, row.messages) for row in used.data] == [(str(created.id), appended.last_position)]
    assert used.data[0].llm_tokens_in == done.llm_tokens_in

    reverted = sdk.call("compactions_revert", done.id)
    assert reverted.reverted_at is not None
    again = sdk.call("context_get", ref)
    assert again.messages == appended.context.messages
    assert (again.covered, again.summaries) == (None, [])
    assert again.meter == appended.context.meter

    receipt = sdk.call("conversations_delete", ref)
    assert receipt.id == created.id
    assert receipt.counts["messages"] == appended.last_position
    assert sdk.respond("conversations_get", ref).status_code == 404


def test_client__compaction_asked_for__answers_with_a_plan_or_a_compaction(sdk: Sdk) -> None:
    created = sdk.call(
        "conversations_create",
        body={"model": "gpt-4o", "context_window": WINDOW, "messages": [m for n in range(6) for m in _turn(n)]},
    )
    dry = sdk.call("compactions_create", created.id, body={"dry_run": True, "preserve_recent_turns": 1})
    assert isinstance(dry, sdk.models.DryRunOut)
    assert dry.plan.span.from_ == 1
    first = sdk.respond("compactions_create", created.id, body={"focus": "pumps"})
    assert (first.status_code, first.headers["Location"]) == (202, f"/v1/compactions/{first.parsed.id}")
    _idle(sdk, created.id)
    assert sdk.call("compactions_get", first.parsed.id).focus == "pumps"
    _append(sdk, created.id, range(6, 12))
    asked = sdk.respond("compactions_create", created.id, body={"wait": 60})
    assert asked.status_code == 200
    assert isinstance(asked.parsed, sdk.models.AskedOut)
    assert (asked.parsed.outcome, asked.parsed.joined, asked.parsed.method) == (
        sdk.models.Outcome.APPLIED,
        False,
        sdk.models.SummaryMethod.EXTRACTIVE,
    )


def test_client__transcript__is_text(sdk: Sdk) -> None:
    created = sdk.call("conversations_create", body={"model": "gpt-4o", "messages": _turn(1)})
    lines = sdk.respond("conversations_transcript", created.id).content.decode().splitlines()
    assert len(lines) == 2


def test_client__count_and_tool__are_models_of_their_own(sdk: Sdk) -> None:
    counted = sdk.call("tokens_count", body={"model": "gpt-4o", "messages": _turn(1)})
    assert counted.tokens == counted.breakdown.system + counted.breakdown.messages > 100
    tool = sdk.call("tools_compact", format_=sdk.models.ToolsCompactFormat.ANTHROPIC)
    assert tool["name"] == "compact"


def test_client__position_conflict__is_an_error_model_with_the_last_position(sdk: Sdk) -> None:
    created = sdk.call("conversations_create", body={"model": "gpt-4o", "messages": _turn(1)})
    body = {"messages": _turn(2), "expected_last_position": 1}
    refused = sdk.respond("messages_append", created.id, body=body)
    assert refused.status_code == 409
    assert isinstance(refused.parsed, sdk.models.Error)
    assert [error.code for error in refused.parsed.errors] == ["position_conflict"]
    assert refused.parsed["last_position"] == 2


def test_client__wrong_field__is_an_error_model_that_names_it(sdk: Sdk) -> None:
    refused = sdk.respond("conversations_create", body={"model": "gtp-4o"})
    assert refused.status_code == 400
    assert refused.parsed.type_ == sdk.models.ErrorType.VALIDATION_ERROR
    assert [(error.code, error.attr) for error in refused.parsed.errors] == [("model_unknown", "model")]
    assert refused.parsed.request_id == refused.headers["X-Request-Id"]


def test_client__unknown_field__cannot_be_given(sdk: Sdk) -> None:
    with pytest.raises(TypeError, match="modle"):
        sdk.models.ConversationIn(model="gpt-4o", modle="x")


def test_client__read_key__may_not_write(make_sdk: Callable[[str], Sdk], tenant: Member) -> None:
    refused = make_sdk(tenant.read_key).respond("conversations_create", body={"model": "gpt-4o"})
    assert (refused.status_code, refused.parsed.errors[0].code) == (403, "permission_denied")


def test_client__idempotency_key__replays(sdk: Sdk) -> None:
    body = {"model": "gpt-4o", "messages": _turn(1)}
    first, second = (sdk.respond("conversations_create", body=body, idempotency_key="once") for _ in range(2))
    assert first.parsed.id == second.parsed.id
    assert second.headers["Idempotency-Replayed"] == "true"
