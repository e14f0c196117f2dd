"""Examples of the OpenAPI document."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from compaction_service.engine import compact_tool

_ID = "01938f50-1111-7aaa-8000-1b2c3d4e5f60"
_CONVERSATION = "01938f4e-7c1b-7def-8000-2f9b5d0c7a11"
_TEXT = "## Overall Goal\n\nRefund order #4711.\n\n## Next Steps\n\n- [x] Refund\n- [ ] Tell the arrival date"
_SECTIONS = [
    {"heading": "Overall Goal", "text": "Refund order #4711."},
    {"heading": "Next Steps", "items": [{"text": "Refund", "done": True}, {"text": "Tell the arrival", "done": False}]},
]
_PASS = {
    "kind": "summary",
    "number": 1,
    "status": "succeeded",
    "model": "gpt-4o-mini",
    "tokens_in": 3120,
    "tokens_out": 214,
    "cost": 0.00059640,
    "error": None,
    "from_position": 1,
    "to_position": 10,
    "started_at": "2026-01-31T12:05:00.4Z",
    "duration_ms": 2140,
}
_QUEUED: dict[str, Any] = {
    "id": _ID,
    "conversation": _CONVERSATION,
    "status": "queued",
    "outcome": None,
    "reason": None,
    "trigger": "manual",
    "requested_by": "key:ci",
    "strategy": "sliding",
    "policy": {"enabled": True, "strategy": "sliding", "threshold": 0.8},
    "focus": "the refund",
    "instructions": None,
    "from_position": None,
    "to_position": None,
    "from_turn": None,
    "to_turn": None,
    "model": None,
    "method": None,
    "fallback_reason": None,
    "context_before": None,
    "context_after": None,
    "tokens_in": None,
    "tokens_out": None,
    "compression_ratio": None,
    "target_reached": None,
    "summary": None,
    "sections": [],
    "dropped_content": [],
    "entities": [],
    "notes": [],
    "passes": [],
    "llm_tokens_in": 0,
    "llm_tokens_out": 0,
    "cost": 0,
    "queued_ms": None,
    "duration_ms": None,
    "review": "unreviewed",
    "reverted_at": None,
    "created_at": "2026-01-31T12:05:00Z",
    "started_at": None,
    "finished_at": None,
}
_DONE = {
    **_QUEUED,
    "status": "succeeded",
    "outcome": "applied",
    "from_position": 1,
    "to_position": 10,
    "from_turn": 1,
    "to_turn": 3,
    "model": "gpt-4o-mini",
    "method": "llm",
    "context_before": {
        "tokens": 3301,
        "breakdown": {"system": 13, "tools": 0, "summaries": 0, "carried": 0, "tail": 3288},
    },
    "context_after": {
        "tokens": 402,
        "breakdown": {"system": 13, "tools": 0, "summaries": 241, "carried": 0, "tail": 148},
    },
    "tokens_in": 3140,
    "tokens_out": 241,
    "compression_ratio": 13.03,
    "target_reached": True,
    "summary": _TEXT,
    "sections": _SECTIONS,
    "dropped_content": [{"kind": "identifier", "text": "INV-2291", "position": 4}],
    "entities": ["#4711"],
    "passes": [_PASS],
    "llm_tokens_in": 3120,
    "llm_tokens_out": 214,
    "cost": 0.00059640,
    "queued_ms": 38,
    "duration_ms": 2201,
    "started_at": "2026-01-31T12:05:00.4Z",
    "finished_at": "2026-01-31T12:05:02.6Z",
}
_NODE = {
    "id": "01938f51-02aa-7c4e-8000-6c1d2f9b7e30",
    "conversation": _CONVERSATION,
    "compaction": _ID,
    "level": 0,
    "from_position": 1,
    "to_position": 10,
    "from_turn": 1,
    "to_turn": 3,
    "text": _TEXT,
    "sections": _SECTIONS,
    "tokens": 241,
    "method": "llm",
    "parent": None,
    "children": [],
    "entities": ["#4711"],
    "state": "active",
    "created_at": "2026-01-31T12:05:02.6Z",
}
ASK = OpenApiExample("With a focus, waiting for it", request_only=True, value={"focus": "the refund", "wait": 20})
ASKED = OpenApiExample("Not ended yet", response_only=True, status_codes=["202"], value={**_QUEUED, "joined": False})
ENDED = OpenApiExample(
    "Ended while waiting", response_only=True, status_codes=["200"], value={**_DONE, "joined": False}
)
DRY_RUN = OpenApiExample(
    "A dry run",
    response_only=True,
    status_codes=["200"],
    value={
        "dry_run": True,
        "plan": {
            "span": {"from": 1, "to": 10},
            "irreducible": None,
            "kept": [11, 12],
            "carried": [],
            "tokens": 3301,
            "predicted_tokens": 561,
            "target_reached": True,
            "summary_target": 400,
            "model": "gpt-4o-mini",
            "chunks": 1,
            "estimated_cost": 0.00075,
        },
    },
)
COMPACTION = OpenApiExample("An applied one", response_only=True, value=_DONE)
COMPACTIONS = OpenApiExample("The last page", response_only=True, value={"data": [_DONE], "next_cursor": None})
CANCELLED = OpenApiExample(
    "The cancelled one",
    response_only=True,
    value={
        **_QUEUED,
        "status": "cancelled",
        "outcome": "cancelled",
        "reason": "requested",
        "finished_at": "2026-01-31T12:05:01Z",
    },
)
REVERTED = OpenApiExample("The undone one", response_only=True, value={**_DONE, "reverted_at": "2026-01-31T12:09:00Z"})
SUMMARY = OpenApiExample("An active node", response_only=True, value=_NODE)
SUMMARIES = OpenApiExample("The last page", response_only=True, value={"data": [_NODE], "next_cursor": None})
STATS = OpenApiExample(
    "After two compactions",
    response_only=True,
    value={
        "conversation": _CONVERSATION,
        "compactions": 2,
        "live": 0,
        "reverted": 0,
        "outcomes": {"applied": 1, "skipped": 0, "irreducible": 1, "failed": 0, "cancelled": 0, "stale": 0},
        "tokens_in": 3140,
        "tokens_out": 241,
        "compression_ratio": 13.03,
        "duration_ms": 2201,
        "llm_tokens_in": 3120,
        "llm_tokens_out": 214,
        "cost": 0.00059640,
        "entities": ["#4711"],
        "oldest": "2026-01-31T12:05:00Z",
        "newest": "2026-01-31T12:30:00Z",
    },
)
TOOLS = [
    OpenApiExample(f"In {name} format", response_only=True, value=compact_tool.definition(fmt))
    for fmt, name in (("openai", "OpenAI's"), ("anthropic", "Anthropic's"))
]

_TENANT = "01938f40-0000-7aaa-8000-000000000001"
PLATFORM_COMPACTION = OpenApiExample("An applied one", response_only=True, value={"tenant": _TENANT, **_DONE})
PLATFORM_SUMMARY = OpenApiExample("An active node", response_only=True, value={"tenant": _TENANT, **_NODE})


def _listed(whole: dict[str, Any], *names: str) -> OpenApiExample:
    """The last page of a list that leaves texts out."""
    row = {"tenant": _TENANT, **{name: whole[name] for name in names}}
    return OpenApiExample("The last page", response_only=True, value={"data": [row], "next_cursor": None})


PLATFORM_COMPACTIONS = _listed(
    {**_DONE, "reason": "", "fallback_reason": ""},
    "id", "conversation", "status", "outcome", "reason", "trigger", "strategy", "model", "method", "fallback_reason",
    "from_position", "to_position", "tokens_in", "tokens_out", "llm_tokens_in", "llm_tokens_out", "cost", "review",
    "created_at", "started_at", "finished_at",
)  # fmt: skip
PLATFORM_SUMMARIES = _listed(
    _NODE,
    "id", "conversation", "compaction", "level", "from_position", "to_position", "tokens", "method", "parent", "state",
    "created_at",
)  # fmt: skip
