"""Examples of the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

METER = {
    "tokens": 412,
    "limit": 102400,
    "window": 128000,
    "utilization": 0.004,
    "method": "exact",
    "window_source": "registry",
    "breakdown": {"system": 11, "tools": 0, "summaries": 0, "carried": 0, "tail": 401},
}
CREATE = OpenApiExample(
    "A conversation",
    request_only=True,
    value={
        "external_id": "ticket-4711",
        "model": "gpt-4o",
        "system": "You are a helpful agent.",
        "policy": {"enabled": True, "preset": "navigator"},
    },
)
_ID = "01938f4e-7c1b-7def-8000-2f9b5d0c7a11"
_NODE = "01938f51-02aa-7c4e-8000-6c1d2f9b7e30"
_CONVERSATION = {
    "id": _ID,
    "external_id": "ticket-4711",
    "model": "gpt-4o",
    "format": "openai",
    "system": "You are a helpful agent.",
    "tools": None,
    "metadata": {"team": "support"},
    "policy": {"enabled": True, "preset": "navigator", "threshold": 0.8},
    "policy_sources": {"enabled": "conversation", "preset": "conversation", "threshold": "conversation"},
    "message_count": 12,
    "last_position": 12,
    "meter": METER,
    "compaction": {"state": "idle", "live": None, "last": None},
    "created_at": "2026-01-31T12:00:00Z",
    "updated_at": "2026-01-31T12:05:00Z",
}
_STORED = {"position": 12, "role": "assistant", "tokens": 31, "created_at": "2026-01-31T12:05:00Z"}
_MESSAGE = {
    **_STORED,
    "pinned": False,
    "abandoned": False,
    "external_id": None,
    "occurred_at": None,
    "metadata": {},
    "message": {"role": "assistant", "content": "The refund is on its way."},
}
_CONTEXT = {
    "system": None,
    "messages": [
        {"role": "system", "content": "You are a helpful agent."},
        {"role": "user", "content": "This is a summary of the earlier part of this conversation ..."},
        {"role": "user", "content": "And when will it arrive?"},
    ],
    "tools": None,
    "meter": METER,
    "fits": True,
    "degraded": False,
    "context_version": "14",
    "summaries": [_NODE],
    "covered": {"from": 1, "to": 10},
    "carried": [],
    "masked": [],
    "compaction": None,
}
CONVERSATION = OpenApiExample("The conversation", response_only=True, value=_CONVERSATION)
CONVERSATIONS = OpenApiExample(
    "A page", response_only=True, value={"data": [_CONVERSATION], "next_cursor": "aWQ6MDE5MzhmNGU"}
)
UPDATE = OpenApiExample(
    "Another model, and one field of the policy back to its default",
    request_only=True,
    value={"model": "gpt-4.1", "policy": {"threshold": None}},
)
RECEIPT = OpenApiExample(
    "The receipt",
    response_only=True,
    value={
        "id": _ID,
        "erased_at": "2026-02-01T08:00:00Z",
        "counts": {
            "messages": 12,
            "summaries": 1,
            "passes": 1,
            "compactions": 1,
            "queued_work": 0,
            "idempotency_answers": 2,
        },
    },
)
APPENDED = OpenApiExample(
    "Stored; a compaction was started",
    response_only=True,
    value={
        "messages": [_STORED],
        "last_position": 12,
        "meter": METER,
        "compaction": {"id": "01938f50-1111-7aaa-8000-1b2c3d4e5f60", "status": "queued", "trigger": "threshold"},
    },
)
MESSAGE = OpenApiExample("The original", response_only=True, value=_MESSAGE)
MESSAGES = OpenApiExample("The last page", response_only=True, value={"data": [_MESSAGE], "next_cursor": None})
PIN = OpenApiExample("Pin it", request_only=True, value={"pinned": True})
CONTEXT = OpenApiExample("A context with a summary", response_only=True, value=_CONTEXT)
COUNT = OpenApiExample(
    "A question with its system prompt",
    request_only=True,
    value={
        "model": "gpt-4o",
        "system": "You are a helpful agent.",
        "messages": [{"role": "user", "content": "And when will it arrive?"}],
    },
)
COUNTED = OpenApiExample(
    "Its tokens",
    response_only=True,
    value={
        "tokens": 24,
        "method": "exact",
        "model": "gpt-4o",
        "breakdown": {"system": 13, "tools": 0, "messages": 11},
    },
)
FORK = OpenApiExample(
    "From before the wrong turn",
    request_only=True,
    value={"position": 8, "external_id": "ticket-4711-b"},
)
ERASED = OpenApiExample(
    "The receipt",
    response_only=True,
    value={
        "id": "01938f4e-7c1b-7def-8000-2f9b5d0c7a11",
        "erased_at": "2026-01-31T12:06:00Z",
        "counts": {"messages": 4, "stubs_left": 0, "summaries": 1, "compactions": 1, "idempotency_answers": 2},
        "message_count": 8,
        "last_position": 12,
        "meter": METER,
        "compaction": None,
    },
)
APPEND = OpenApiExample(
    "A response with a tool call, and its result",
    request_only=True,
    value={
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path": "README.md"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "# Compaction service"},
        ],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 40},
        "context_version": "7",
    },
)
