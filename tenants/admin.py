"""Tenants and keys for the platform's staff."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from tenants.models import ApiKey, PlatformKey, Tenant


class PlatformAdmin(ModelAdmin):  # type: ignore[misc]
    """Base of the admin of every model with a tenant: the rows of all tenants, under the platform role."""

    show_full_result_count = False  # counting all rows of a large table costs more than the page

    def get_queryset(self, _request: HttpRequest) -> QuerySet[Model]:
        manager = getattr(self.model, "unscoped", self.model._default_manager)  # noqa: SLF001
        queryset: QuerySet[Model] = manager.all()
        return queryset.order_by(*self.ordering) if self.ordering else queryset


class _NotMadeHere(PlatformAdmin):
    """Secrets are shown once, by the command or the API that makes a key."""

    readonly_fields = ("prefix", "last_used_at", "created_at")
    exclude = ("digest", "pepper")

    def has_add_permission(self, _request: HttpRequest, *_args: Any) -> bool:
        return False


@admin.register(Tenant)
class TenantAdmin(PlatformAdmin):
    list_display = ("name", "status", "weight", "created_at")
    list_filter = ("status",)
    search_fields = ("name",)
    exclude = ("summarizer_key",)
    ordering = ("-id",)


@admin.register(ApiKey)
class ApiKeyAdmin(_NotMadeHere):
    list_display = ("prefix", "name", "tenant", "scopes", "expires_at", "revoked_at", "last_used_at")
    list_select_related = ("tenant",)
    search_fields = ("prefix", "name", "tenant__name")
    ordering = ("-id",)


@admin.register(PlatformKey)
class PlatformKeyAdmin(_NotMadeHere):
    list_display = ("prefix", "name", "expires_at", "revoked_at", "last_used_at")
    ordering = ("-id",)
