"""The ledger and the daily sums in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from compaction_service.usage.models import Call, Day, Month
from tenants.limits import limits_of
from tenants.platform_admin import AgeFilter, ReadOnlyAdmin, TenantFilter, column, id_matches, times


class StatusFilter(admin.SimpleListFilter):
    """How calls ended. The statuses are few and known: nothing is looked up."""

    title = "status"
    parameter_name = "status"

    def lookups(self, _request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in ("ok", "failed", "late")]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(status=self.value()) if self.value() else queryset


class _LedgerAdmin(ReadOnlyAdmin):
    list_select_related = ("tenant",)
    search_fields = ("id",)  # shows the box; get_search_results does the work
    search_help_text = "Beginning of a conversation's id"

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        return queryset.filter(id_matches(search_term, "conversation_id") or Q(pk__in=[])), False


@admin.register(Call)
class CallAdmin(_LedgerAdmin):
    """Every call to a model, failed and late ones too."""

    list_display = (
        times("created_at", "made"), "tenant", "model", "status_label", "error", "tokens_in", "tokens_out", "cost",
        "duration_ms", "compaction_id",
    )  # fmt: skip
    list_filter = (StatusFilter, AgeFilter, TenantFilter)
    list_only = (
        "created_at", "model", "status", "error", "tokens_in", "tokens_out", "cost", "duration_ms", "compaction_id",
        "tenant__name",
    )  # fmt: skip

    @column("status", label={"ok": "success", "failed": "danger", "late": "warning"})
    def status_label(self, call: Call) -> str:
        return call.status


@admin.register(Day)
class DayAdmin(_LedgerAdmin):
    """What was used, by conversation, day and model."""

    list_display = ("day", "tenant", "conversation_id", "model", "messages", "tokens", "applied", "tokens_saved",
                    "calls", "llm_tokens_in", "llm_tokens_out", "cost")  # fmt: skip
    list_filter = (AgeFilter, TenantFilter)
    list_only = (
        "day", "conversation_id", "model", "messages", "tokens", "applied", "tokens_saved", "calls", "llm_tokens_in",
        "llm_tokens_out", "cost", "tenant__name",
    )  # fmt: skip


@admin.register(Month)
class MonthAdmin(ReadOnlyAdmin):
    """What tenants with a budget spent, by month."""

    list_display = ("month", "tenant", "cost", "limit", times("exhausted_at", "first refused a call"))
    list_filter = (AgeFilter, TenantFilter)
    list_select_related = ("tenant",)
    list_only = ("month", "cost", "exhausted_at", "tenant__name", "tenant__limits")

    @column("limit now")
    def limit(self, row: Month) -> str:
        found = limits_of(row.tenant.limits).monthly_budget
        return "none" if found is None else f"{found:,}"
