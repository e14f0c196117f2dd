"""Examples of the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

BUDGET = {
    "month": "2026-01-01",
    "limit": 250.0,
    "spent": 12.50731,
    "reserved": 0.0042,
    "remaining": 237.48849,
    "exhausted_at": None,
}
USAGE = OpenApiExample(
    "One day",
    response_only=True,
    value={
        "from": "2026-01-31",
        "to": "2026-01-31",
        "group_by": "day",
        "budget": BUDGET,
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
