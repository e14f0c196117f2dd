"""What tenants share besides the database: tasks, messages, keys in the cache, memory of the processes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from contextvars import copy_context
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connections
from redis import Redis

from compaction_service.compactions import wakeup
from compaction_service.compactions.models import Work
from compaction_service.routers import current_alias
from tenants.limits import limits_of
from tenants.models import Tenant
from tenants.scope import NoTenantInScope, TenantModel, WrongScope, current_tenant, platform_scope, tenant_scope
from tests.footprint import rows_of, tables
from tests.inprocess import Clock, Service
from tests.integration.isolation.conftest import House
from tests.model_server import Control
from worker.app import app

# Memory that outlives a request, and why no tenant's things are in it.
CACHES = {
    "compaction_service.api.docs.document": "the OpenAPI document",
    "compaction_service.api.health._files": "the migrations' names",
    "compaction_service.api.cache.client": "connections",
    "compaction_service.api.serializers._shared": "serializers without data",
    "compaction_service.checks.assert_safe_role": "nothing: that it passed",
    "compaction_service.compactions.wakeup._sender": "connections",
    "compaction_service.conversations.state._update": "statements",
    "compaction_service.engine.markup._read": "a character -> the plain ones it looks like",
    "compaction_service.env._local_values": "settings",
    "compaction_service.tokens.messages._count_name": "text -> its count; pure, so it tells nobody anything",
    "compaction_service.tokens.messages.counter_for": "counters by encoding and factor",
}
KEYS = re.compile(
    r"login:[\w.:]+|rate:[0-9a-f-]{36}:\d+|_kombu\.binding\w*\.\w+|compactions|default|unacked\w*|celery\w*"
)


def _tasks() -> dict[str, Any]:
    importlib.import_module("worker.tasks")
    return {name: task for name, task in app.tasks.items() if not name.startswith("celery.")}


def test_tasks__all__take_no_argument_that_could_name_a_tenant() -> None:
    found = _tasks()
    assert len(found) >= 5
    taken = [one for task in found.values() for one in inspect.signature(task.run).parameters.values()]
    assert {one.kind for one in taken} <= {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@pytest.mark.parametrize("name", ["idempotency.purge", "conversations.expire"])
def test_tasks__message_with_arguments__does_what_it_does_without(house: House, name: str) -> None:
    """A worker takes messages of other versions: what it does not know of them says nothing to it."""
    before = rows_of(house.member.id)
    _tasks()[name](house.names["tenant_id"], tenant_id=house.names["tenant_id"])
    assert current_tenant() is None
    assert rows_of(house.member.id) == before


def test_tasks__run_for_two_tenants__leave_no_scope_and_no_row_between_them(
    house: House, burglar: Service, clock: Clock, models: Control
) -> None:
    own = f"model-{burglar.tenant_id}"
    models.script(own, "honest", key="burglars-key")
    burglar.patch("tenant", {"summarizer": {"model": own, "api_base": models.base_url, "api_key": "burglars-key"}})
    turns = [{"role": role, "content": "word " * 200} for role in ("user", "assistant") * 5]
    path = burglar.create(messages=turns)
    burglar.post(f"{path}/compactions", status=202)
    burglar.patch(path, {"model": "gpt-4"})

    for _ in range(30):
        for name, task in _tasks().items():
            if name != "compactions.sweep":  # it would wake the workers of other tests
                copy_context().run(task)
                assert (current_tenant(), current_alias.get()) == (None, "default"), name
        if not Work.objects.filter(tenant_id__in=[house.member.id, burglar.tenant_id]).exists():
            break
    else:
        pytest.fail("work is left")

    assert _strangers() == []
    assert house.mark not in str(rows_of(burglar.tenant_id))
    assert str(burglar.tenant_id) not in str(rows_of(house.member.id))
    calls = [(call["model"], call["key_ok"], house.mark in str(call)) for call in models.calls()]
    assert {one for one in calls if one[0] in (own, house.mark)} == {(own, True, False), (house.mark, True, True)}


def _strangers() -> list[str]:
    """Rows that name another tenant's conversation or compaction, over all tables."""
    found = []
    with platform_scope(), connections["platform"].cursor() as cursor:
        for table in tables():
            cursor.execute("select column_name from information_schema.columns where table_name = %s", [table.name])
            columns = {row[0] for row in cursor.fetchall()}
            for column, target in (
                ("conversation_id", "conversations_conversation"),
                ("compaction_id", "compactions_compaction"),
            ):
                if column in columns:
                    cursor.execute(
                        f"select count(*) from {table.sql} t join {target} o on o.id = t.{column}"  # noqa: S608
                        " where o.tenant_id <> t.tenant_id"
                    )
                    if cursor.fetchone() != (0,):
                        found.append(f"{table.name}.{column}")
    return found


def test_managers__without_a_scope__raise_for_every_model_of_a_tenant(db: None) -> None:
    models = [model for model in apps.get_models() if issubclass(model, TenantModel)]
    assert len(models) >= 9
    for model in models:
        for ask in ("all", "count", "first", "exists", "iterator", "create"):
            with pytest.raises(NoTenantInScope):
                getattr(model.objects, ask)()


def test_redis__after_requests_of_two_tenants__keys_name_their_tenant_and_values_no_text(
    house: House, burglar: Service
) -> None:
    for tenant_id in (house.member.id, burglar.tenant_id):
        with platform_scope():
            Tenant.objects.filter(id=tenant_id).update(limits={"requests_per_minute": 1000})
    assert limits_of({"requests_per_minute": 1000}).requests_per_minute == 1000
    for service in (house.service, burglar):
        service.append(service.create(), {"role": "user", "content": house.mark})
    wakeup.wake()

    counters: set[UUID] = set()
    for url in {settings.CACHE_URL, settings.BROKER_URL}:
        redis = Redis.from_url(url)
        for key in redis.scan_iter(count=1000):
            name = key.decode()
            assert KEYS.fullmatch(name), name
            value = str(redis.dump(key))
            assert house.mark not in value, name
            assert str(house.member.id) not in value, name
            if name.startswith("rate:"):
                counters.add(UUID(name.split(":")[1]))
                assert redis.ttl(key) > 0, name
        redis.close()
    assert {house.member.id, burglar.tenant_id} <= counters


def test_rate__used_up_by_one_tenant__is_another_tenants_whole(house: House, burglar: Service) -> None:
    with platform_scope():
        Tenant.objects.filter(id__in=[house.member.id, burglar.tenant_id]).update(limits={"requests_per_minute": 3})
    answers = [burglar.call("GET", "tenant", status=None) for _ in range(10)]
    assert [one for one in answers if one.get("errors", [{}])[0].get("code") == "throttled"]
    house.service.get("tenant")


def test_caches_in_memory__all_of_ours__are_known_to_hold_nothing_of_a_tenant() -> None:
    found = set()
    for package in ("compaction_service", "tenants", "worker"):
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            if ".migrations" in module.name or ".gunicorn" in module.name or ".wsgi" in module.name:
                continue
            loaded = importlib.import_module(module.name)
            found |= {
                f"{module.name}.{name}"
                for name, value in vars(loaded).items()
                if hasattr(value, "cache_info") and getattr(value, "__module__", module.name) == module.name
            }
    assert found - set(CACHES) == set()


def test_scope__of_another_tenant_inside_one__raises(house: House, burglar: Service) -> None:
    with pytest.raises(WrongScope), tenant_scope(house.member.id), tenant_scope(burglar.tenant_id):
        pass
