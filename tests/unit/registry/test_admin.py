"""The registry in the admin."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from compaction_service.registry import services
from compaction_service.registry.models import Model
from tenants.scope import platform_scope


@pytest.fixture
def staff(registry: None) -> Client:
    """A superuser's browser."""
    client = Client()
    with platform_scope():
        client.force_login(get_user_model().objects.create_superuser(f"admin-{uuid4().hex}", password=None))
    return client


def _form(model: Model, **changes: Any) -> dict[str, Any]:
    values = {name: getattr(model, name) for name in services.FIELDS}
    return {name: "" if value is None else value for name, value in {**values, **changes}.items()}


def test_admin__changed_window__is_an_override_of_that_field_alone(staff: Client, own_model: str) -> None:
    model = Model.objects.get(name=own_model)
    response = staff.post(f"/admin/registry/model/{model.pk}/change/", _form(model, max_output=123))
    assert response.status_code == 302, response.content
    model.refresh_from_db()
    assert (model.max_output, model.overridden) == (123, ["context_window", "max_output"])


def test_admin__list_and_search__show_models(staff: Client, own_model: str) -> None:
    assert own_model.encode() in staff.get("/admin/registry/model/", {"q": own_model}).content


def test_admin__clear_action__gives_litellms_values_back(staff: Client, own_model: str) -> None:
    with platform_scope():
        services.override_set("gpt-4o-mini", context_window=5)
    model = Model.objects.get(name="gpt-4o-mini")
    staff.post("/admin/registry/model/", {"action": "clear_overrides", "_selected_action": [model.pk]})
    model.refresh_from_db()
    assert (model.context_window, model.source) == (128_000, "litellm")
