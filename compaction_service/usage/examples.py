"""Examples of the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

USAGE = OpenApiExample(
    "One day",
    response_only=True,
    value={
        "from": "2026-01-31",
        "to": "2026-01-31",
        "group_by": "day",
        "data": [
            {
                "key": "2026-01-31",
                "messages": 1840,
                "tokens": 612_400,
                "compactions": {"applied": 9, "skipped": 0, "irreducible": 1, "failed": 0, "cancelled": 0, "stale": 0},
                "tokens_saved": 402_117,
                "calls": 12,
                "llm_tokens_in": 455_020,
                "llm_tokens_out": 7_310,
                "cost": 0.07264,
            }
        ],
        "next_cursor": None,
    },
)
