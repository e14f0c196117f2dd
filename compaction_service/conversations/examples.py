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
CONVERSATION = OpenApiExample(
    "The conversation",
    response_only=True,
    value={
        "id": "01938f4e-7c1b-7def-8000-2f9b5d0c7a11",
        "external_id": "ticket-4711",
        "model": "gpt-4o",
        "format": "openai",
        "system": "You are a helpful agent.",
        "tools": None,
        "metadata": {},
        "policy": {"enabled": True, "preset": "navigator"},
        "policy_sources": {"enabled": "conversation", "preset": "conversation"},
        "message_count": 12,
        "last_position": 12,
        "meter": METER,
        "compaction": {"state": "idle", "live": None, "last": None},
        "created_at": "2026-01-31T12:00:00Z",
        "updated_at": "2026-01-31T12:05:00Z",
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
