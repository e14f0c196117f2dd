"""What hostile requests are aimed at: a tenant with something of everything, made anew when it has been spoilt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.db import connections
from django.test import Client

from tenants import services
from tenants.models import Scope
from tenants.scope import platform_scope, tenant_scope
from tests.conftest import Member
from tests.footprint import tables

JSON = "application/json"


@dataclass
class World:
    """The tenant, its keys, and the ids that paths name."""

    member: Member
    platform_key: str
    other: UUID  # a tenant to be changed through /v1/admin
    ids: dict[str, list[str]] = field(default_factory=dict)

    def names(self) -> dict[str, list[str]]:
        return self.ids

    def furnish(self) -> None:
        """New rows for paths to name: the old ones may be erased, revoked, or very long by now."""
        client = Client(headers={"Authorization": f"Bearer {self.member.key}"})

        def post(path: str, body: Any) -> Any:
            return json.loads(client.post(f"/v1/{path}", json.dumps(body), content_type=JSON).content)

        talk = [{"role": role, "content": "word " * 40} for role in ("user", "assistant") * 4]
        external = f"fuzz-{uuid4()}"
        made = post("conversations", {"model": "gpt-4o", "external_id": external, "messages": talk})
        other = post("conversations", {"model": "claude-sonnet-4-5", "format": "anthropic", "messages": talk})
        asked = [post(f"conversations/{one['id']}/compactions", {}) for one in (made, other)]
        with tenant_scope(self.member.id):
            key = services.key_create([Scope.READ]).key
        self.ids = {
            "ref": [made["id"], other["id"], f"ext:{external}"],
            "position": ["1", "2", "8"],
            "compaction_id": [one["id"] for one in asked],
            "summary_id": [str(uuid4())],
            "key_id": [str(key.id)],
            "tenant_id": [str(self.other)],
            "name": ["gpt-4o", "openai/gpt-4o", "claude-sonnet-4-5"],
        }
        if cursor := json.loads(client.get("/v1/conversations?limit=1").content)["next_cursor"]:
            self.ids["cursor"] = [cursor]


def digest(*tenants: UUID) -> list[Any]:
    """Says whether any row of these tenants was added, changed or taken away. When a key was used does not count."""
    parts = [
        f"select '{table.name}', count(*), coalesce(sum(hashtextextended((to_jsonb(t) - 'last_used_at')::text, 0)), 0)"  # noqa: S608
        f" from {table.sql} t where {table.column} = any(%(tenants)s)"
        for table in tables()
    ]
    with platform_scope(), connections["platform"].cursor() as cursor:
        cursor.execute(" union all ".join(parts) + " order by 1", {"tenants": list(tenants)})
        return list(cursor.fetchall())


def make(member: Member, other: Member) -> World:
    """A furnished world."""
    with platform_scope():
        key = services.platform_key_create("fuzz")
    world = World(member, key, other.id)
    world.furnish()
    return world
