"""Examples of the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

_LIMITS = {
    "requests_per_minute": 600,
    "max_body_bytes": 33_554_432,
    "max_message_bytes": None,
    "conversations": None,
    "stored_tokens": None,
    "compactions_in_flight": 64,
    "monthly_budget": 250.0,
}
_TENANT = {"id": "01938f40-0000-7aaa-8000-000000000001", "name": "acme", "status": "active"}
_CREATED = {"created_at": "2026-01-02T09:00:00Z"}
_KEY = {
    "id": "01938f41-0000-7aaa-8000-000000000002",
    "name": "ci",
    "prefix": "k3v9xq2m7t1a",
    "scopes": ["read", "write"],
    "expires_at": None,
    "last_used_at": "2026-01-31T12:05:00Z",
    **_CREATED,
}
TENANT = OpenApiExample(
    "The tenant",
    response_only=True,
    value={
        **_TENANT,
        "policy": {"enabled": True, "threshold": 0.8},
        "summarizer": {
            "model": "gpt-4o-mini",
            "fallback_models": [],
            "api_base": None,
            "api_key_set": True,
            "extra_headers": {},
        },
        "redaction": False,
        "retention_days": 90,
        "limits": _LIMITS,
        "usage": {"conversations": 1204, "stored_tokens": 9_181_220},
        **_CREATED,
    },
)
CHANGE = OpenApiExample(
    "A summarizer, and compaction for all conversations",
    request_only=True,
    value={"summarizer": {"model": "gpt-4o-mini", "api_key": "sk-..."}, "policy": {"enabled": True}},
)
KEYS = OpenApiExample("The last page", response_only=True, value={"data": [_KEY], "next_cursor": None})
KEY_CREATE = OpenApiExample("A key for an agent", request_only=True, value={"name": "ci", "scopes": ["read", "write"]})
ROTATE = OpenApiExample("The old one works for an hour", request_only=True, value={"overlap_seconds": 3600})
ISSUED = OpenApiExample(
    "The key, shown this once",
    response_only=True,
    value={**_KEY, "last_used_at": None, "key": "ck_k3v9xq2m7t1a_<43 characters>"},
)
AUDIT = OpenApiExample(
    "The last page",
    response_only=True,
    value={
        "data": [
            {
                "id": "01938f42-0000-7aaa-8000-000000000003",
                "action": "tenant.changed",
                "actor": "key:ci",
                "target": "",
                "changed": ["policy.threshold", "retention_days"],
                "request_id": "0198c0ffee007000a000000000000001",
                **_CREATED,
            }
        ],
        "next_cursor": None,
    },
)
PLATFORM_TENANT = OpenApiExample(
    "The tenant", response_only=True, value={**_TENANT, "weight": 1, "limits": _LIMITS, **_CREATED}
)
PLATFORM_TENANTS = OpenApiExample(
    "The last page", response_only=True, value={"data": [PLATFORM_TENANT.value], "next_cursor": None}
)
ERASED = OpenApiExample(
    "The receipt",
    response_only=True,
    value={
        "id": _TENANT["id"],
        "erased_at": "2026-02-01T09:00:00Z",
        "counts": {"conversations_conversation": 1204, "conversations_message": 98_112, "tenants_tenant": 1},
    },
)
PLATFORM_CREATE = OpenApiExample(
    "A tenant with a budget", request_only=True, value={"name": "acme", "limits": {"monthly_budget": 250}}
)
PLATFORM_ISSUED = OpenApiExample(
    "The tenant and its first key",
    response_only=True,
    value={**PLATFORM_TENANT.value, "key": "ck_k3v9xq2m7t1a_<43 characters>"},
)
SUSPEND = OpenApiExample("Suspend it", request_only=True, value={"status": "suspended"})
