"""Every registered route, every method, with the key of a stranger: nothing of another tenant's comes back."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tenants import services
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.contract.document import operations
from tests.footprint import rows_of
from tests.inprocess import Service
from tests.integration.isolation.conftest import House, anonymous

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
WRITTEN = ("POST", "PUT", "PATCH", "DELETE", "PROPFIND")
JSON = "application/json"
# What a path names that belongs to a tenant. A model's name belongs to nobody.
OWNED = ("ref", "compaction_id", "summary_id", "key_id", "tenant_id", "object_id")
# Query parameters that name somebody's row, or find it by what it holds.
FILTERS = (
    "conversation={ref}", "conversation=ext:{external}", "external_id={external}", "metadata.mark={mark}", "q={mark}",
    "entity={mark}", "limit=250", "group_by=conversation&from=2020-01-01",
)  # fmt: skip


def _routes(patterns: list[Any], prefix: str = "/") -> list[str]:
    """Every route that a request can reach, the admin's and the pages without a key too."""
    found: list[str] = []
    for one in patterns:
        route = prefix + re.sub(r"[\^$]", "", str(one.pattern))
        if isinstance(one, URLResolver):
            found += _routes(one.url_patterns, route)
        elif isinstance(one, URLPattern):
            found.append(route)
    return found


def _paths(house: House) -> dict[str, str]:
    """Path -> route, with the ids of the house put in."""
    paths = {}
    for route in _routes(get_resolver().url_patterns):
        names = {
            **house.names,
            "object_id": house.names["ref"],
            "action": "revert",
            "url": "conversations/conversation/",
        }
        names |= {"content_type_id": "1", "app_label": "conversations", "id": "1"}
        path = _filled(route, names)
        paths[path] = route
        if "<str:ref>" in route:
            paths[path.replace(house.names["ref"], f"ext:{house.names['external']}")] = route
    return paths


def _filled(route: str, names: dict[str, str]) -> str:
    """The route with its parameters put in, those of regular expressions too."""
    return re.sub(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>", lambda found: names[found[1] or found[2]], route)


def _bodies() -> dict[tuple[str, str], str]:
    """The document's example for each operation, by method and route."""
    found = {}
    for one in operations():
        if media := one.body.get("requestBody", {}).get("content", {}).get(JSON):
            found[one.method, one.path] = json.dumps(next(iter(media["examples"].values()))["value"])
    return found


def _owned(route: str) -> bool:
    return any(f"{name}>" in route for name in OWNED)


def _text(response: Any) -> str:
    parts = b"".join(response.streaming_content) if response.streaming else response.content
    return f"{dict(response.headers)}{parts.decode(errors='replace')}"


def _of_house(house: House) -> list[str]:
    """Words that may not come back: the mark, and every id of the house that the caller did not name."""
    ids = {str(value) for rows in rows_of(house.member.id).values() for row in rows for value in _uuids(row)}
    return [house.mark, *(ids - set(house.names.values()))]


def _uuids(row: dict[str, Any]) -> list[UUID]:
    return [UUID(v) for v in row.values() if isinstance(v, str) and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4,12}){4}", v)]


def _walk(house: House, client: Client, key: str) -> list[str]:
    """Asks for everything; what came back that must not."""
    bodies, secrets, holes, asked = _bodies(), _of_house(house), [], 0
    for path, route in _paths(house).items():
        document = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
        for method in METHODS:
            body = bodies.get((method, document), "{}") if method in WRITTEN else ""
            response = client.generic(method, path, body, content_type=JSON)
            asked += 1
            text = _text(response)
            where = f"{key} {method} {route}: {response.status_code}"
            if response.status_code >= 500 or (_owned(route) and response.status_code < 300):
                holes.append(where)
            if [word for word in secrets if word in text.replace(house.names["external"], "")]:
                holes.append(f"{where}, with another tenant's words")
        for query in FILTERS if not _owned(route) else ():
            response = client.get(f"{path}?{query.format(**house.names, mark=house.mark)}")
            asked += 1
            echoed = _text(response).replace(house.names["external"], "").replace(f"{house.mark}", "", 1)
            if [word for word in secrets if word in echoed]:
                holes.append(f"{key} GET {route}?{query}: {response.status_code}, with another tenant's words")
    assert asked > 900, asked
    return holes


def test_routes__all_methods_with_a_strangers_keys__give_and_change_nothing(house: House, burglar: Service) -> None:
    before = rows_of(house.member.id)
    with tenant_scope(burglar.tenant_id):
        keys = {"admin": services.key_create(Scope.values).secret, "read": services.key_create([Scope.READ]).secret}
    holes = []
    for name, key in {**keys, "wrong": "ck_000000000000_" + "x" * 43, "none": None}.items():
        # DELETE and rotate of a stranger's own keys must not end the walk: its ids are never in the paths.
        holes += _walk(house, anonymous(key), name)
    assert holes == []
    assert rows_of(house.member.id) == before


def test_routes__platform_paths_with_a_tenants_key__are_a_401(house: House) -> None:
    client = anonymous(house.member.key)
    open_to_it = [
        f"{method} {path}"
        for path, route in _paths(house).items()
        if route.startswith("/v1/admin/")
        for method in ("GET", "POST", "PATCH", "DELETE")
        if client.generic(method, path, "{}", content_type=JSON).status_code != 401
    ]
    assert open_to_it == []


def test_lists__cursor_of_another_tenant__goes_on_in_ones_own_rows(house: House, burglar: Service) -> None:
    for _ in range(2):
        house.service.create()
        burglar.create()
    cursor = house.service.get("conversations?limit=1")["next_cursor"]
    mine = {row["id"] for row in burglar.get("conversations")["data"]}
    assert {row["id"] for row in burglar.get(f"conversations?cursor={cursor}")["data"]} <= mine
