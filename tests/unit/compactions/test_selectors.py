from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.db import connection, connections
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction_service.compactions.models import Compaction
from compaction_service.compactions.selectors import _name_with
from compaction_service.engine import jsontext
from tenants.scope import tenant_scope
from tests.inprocess import Service


def logged(service: Service, path: str, **fields: Any) -> str:
    with tenant_scope(service.tenant_id):
        values = {"status": "succeeded", "outcome": "applied", "finished_at": timezone.now(), "trigger": "manual"}
        row = Compaction.objects.create(
            conversation_id=UUID(path.removeprefix("conversations/")), requested_by="test", strategy="sliding",
            policy={}, **{**values, **fields},
        )  # fmt: skip
    return str(row.id)


def found(service: Service, **params: Any) -> list[str]:
    return [row["id"] for row in service.get(f"compactions?{urlencode(params)}")["data"]]


def test_list__each_filter__finds_what_it_says(service: Service) -> None:
    path, other = service.create(external_id="a:b?c=d"), service.create()
    first = logged(service, path, from_position=1, to_position=10, summary="Refund 100% of it", entities=["src/a_b.py"])
    second = logged(service, path, outcome="stale", status="failed", trigger="overflow")
    third = logged(service, other, from_position=5, to_position=5, summary="refund 1000 of it", entities=["src/acb.py"])
    assert found(service) == [third, second, first]
    assert found(service, conversation=path.removeprefix("conversations/")) == [second, first]
    assert found(service, conversation="ext:a:b?c=d") == [second, first]
    assert found(service, status="failed") == found(service, outcome="stale") == [second]
    assert found(service, trigger="overflow") == [second]
    assert found(service, position=5) == [third, first]
    assert found(service, position=6) == [first]
    assert found(service, q="REFUND") == [third, first]
    now = timezone.now()
    assert found(service, created_after=(now - timedelta(hours=1)).isoformat()) == [third, second, first]
    assert found(service, created_before=(now - timedelta(hours=1)).isoformat()) == []


@pytest.mark.parametrize(("q", "hits"), [("100%", 1), ("100_", 0), ("%", 1), ("_", 0), ("\\", 0), ("'; --", 0)])
def test_list__wildcards_in_the_text__are_characters(service: Service, q: str, hits: int) -> None:
    path = service.create()
    logged(service, path, summary="Refund 100% of it")
    logged(service, path, summary="refund 1000 of it")
    assert len(found(service, q=q)) == hits


@pytest.mark.parametrize(
    ("entity", "hits"),
    [("a_b", 1), ("A_B", 1), ("a%", 0), (".*", 0), ("[", 0), ("]", 1), (",", 0), ('"', 1), ('","', 0), ("\\", 1),
     ("\\d", 1), ("größe ß", 1), ("(", 0), ("+{}", 0), ("b.py", 2), ("two\nlines", 1), ("\t", 0), ("x" * 3000, 0)],
)  # fmt: skip
def test_list__entity__is_looked_for_inside_names_only(service: Service, entity: str, hits: int) -> None:
    path = service.create()
    logged(service, path, entities=["src/a_b.py", 'say "hi"', "C:\\dir"])
    logged(service, path, entities=["src/acb.py", "größe ß"])
    logged(service, path, entities=["x]y", "two\nlines"])
    logged(service, path, entities=[])
    assert len(found(service, entity=entity)) == hits


STORABLE = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it only lets the test at the database
@given(names=st.lists(STORABLE, max_size=3), entity=STORABLE)
def test_name_with__any_text__matches_exactly_the_lists_with_it_in_a_name(
    db: None, names: list[str], entity: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select %s ~ %s", [jsontext.dumps(names), _name_with(entity)])
        assert cursor.fetchone() == (any(entity in name for name in names),)


@pytest.mark.parametrize(
    "params",
    ["q=%00", "entity=%00", "entity=%ED%A0%80", "conversation=%00", "status=x", "outcome=", "trigger=threshold%27",
     "position=0", "position=-1", "position=1e3", "position=99999999999", "created_after=yesterday",
     "created_before=2026-01-01", "limit=0", "cursor=x"],
)  # fmt: skip
def test_list__hostile_value__is_a_400_or_finds_nothing(service: Service, params: str) -> None:
    logged(service, service.create())
    response = service.client.get(f"/v1/compactions?{params}")
    assert response.status_code == 400 or (response.status_code, response.json()["data"]) == (200, [])


@pytest.mark.parametrize("by_conversation", [False, True])
def test_list__long_log__is_read_by_its_index_from_the_newest(service: Service, by_conversation: bool) -> None:
    paths = [service.create() for _ in range(2)]
    copies = """
        insert into compactions_compaction (id, tenant_id, conversation_id, status, outcome, reason, trigger,
          requested_by, request_id, strategy, policy, focus, instructions, carried, work, model, method,
          fallback_reason, summary, sections, dropped_content, entities, notes, keeps_texts, llm_tokens_in,
          llm_tokens_out, cost, review, created_at, finished_at)
        select gen_random_uuid(), tenant_id, conversation_id, status, outcome, reason, trigger, requested_by,
          request_id, strategy, policy, focus, instructions, carried, work, model, method, fallback_reason, summary,
          sections, dropped_content, entities, notes, keeps_texts, llm_tokens_in, llm_tokens_out, cost, review,
          created_at, finished_at from compactions_compaction, generate_series(1, 3000) where id = %s
    """
    for path in paths:
        row = logged(service, path)
        with tenant_scope(service.tenant_id), connection.cursor() as cursor:
            cursor.execute(copies, [row])
    with connections["owner"].cursor() as cursor:
        cursor.execute("analyze compactions_compaction")
    with tenant_scope(service.tenant_id):
        rows = Compaction.objects.order_by("-id")
        if by_conversation:
            rows = rows.filter(conversation_id=paths[0].removeprefix("conversations/"))
        plan = json.loads(rows[:51].explain(format="json"))
    assert ("compaction_by_conversation" if by_conversation else "compaction_of_tenant") in json.dumps(plan)
    assert not {"Sort", "Seq Scan"} & set(_kinds(plan[0]["Plan"]))


def _kinds(node: dict[str, Any]) -> list[str]:
    return [node["Node Type"], *(kind for child in node.get("Plans", ()) for kind in _kinds(child))]
