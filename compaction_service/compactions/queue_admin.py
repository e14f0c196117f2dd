"""The queue in the admin: live jobs, and circuit breakers that are not closed and clean."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from compaction_service.compactions import queue
from compaction_service.compactions.models import Breaker, Compaction, Work
from tenants.models import Tenant
from tenants.platform_admin import ReadOnlyAdmin, TenantFilter, admin_url, column, times

# Where a job is, by the database's clock; queue.py counts by the same conditions.
STATES: dict[str, Q] = {
    "queued": Q(lease_until=None, next_at__lte=Now()),
    "later": Q(lease_until=None, next_at__gt=Now()),
    "running": Q(lease_until__gt=Now()),
    "expired": Q(lease_until__lte=Now()),
}
LABELS = {"queued": "info", "later": "warning", "running": "success", "expired": "danger"}
PRIORITIES = {0: "threshold", 1: "manual", 2: "tool_call", 3: "overflow"}


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, _request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in STATES]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = STATES.get(self.value() or "")
        return queryset if wanted is None else queryset.filter(wanted)


@admin.register(Work)
class JobAdmin(ReadOnlyAdmin):
    """Every live job, newest first; above them the queue by tenant."""

    ordering: ClassVar[Any] = ("-compaction_id",)
    list_display = (
        times("created_at", "asked"), "tenant_name", "state", "urgency", "due", "attempts", "compaction_link",
    )  # fmt: skip
    list_filter = (StateFilter, TenantFilter)
    list_display_links = None
    list_before_template = "admin/compactions/work/queue.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        name = Subquery(Tenant.objects.filter(id=OuterRef("tenant_id")).values("name"))
        found: QuerySet[Any] = super().get_queryset(request).annotate(tenant_name=name, at=Now())
        return found

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        found = queue.by_tenant()
        names = dict(Tenant.objects.filter(id__in=[one.tenant_id for one in found]).values_list("id", "name"))
        rows = [(names.get(one.tenant_id, one.tenant_id), one) for one in found]
        page: HttpResponse = super().changelist_view(request, {**(extra_context or {}), "queues": rows})
        return page

    @column("tenant")
    def tenant_name(self, job: Any) -> str:
        return job.tenant_name or str(job.tenant_id)

    @column("state", label=LABELS)
    def state(self, job: Any) -> str:
        if job.lease_until is None:
            return "later" if job.next_at > job.at else "queued"
        return "running" if job.lease_until > job.at else "expired"

    @column("priority")
    def urgency(self, job: Work) -> str:
        return PRIORITIES.get(job.priority, str(job.priority))

    @column("due or lease")
    def due(self, job: Any) -> str:
        at: datetime = job.lease_until or job.next_at
        seconds = round((at - job.at).total_seconds())
        return f"in {seconds:,} s" if seconds > 0 else f"{-seconds:,} s ago"

    @column("compaction")
    def compaction_link(self, job: Work) -> str:
        page = admin_url(Compaction, "change", job.pk)
        return format_html('<a class="review-link" href="{}">{}</a>', page, str(job.pk)[:13])


@admin.register(Breaker)
class BreakerAdmin(ReadOnlyAdmin):
    """Models that failed lately, by tenant."""

    list_display = (
        "tenant",
        "model",
        "state",
        "failures",
        times("opened_at", "opened"),
        times("changed_at", "changed"),
    )
    list_filter = (TenantFilter,)
    list_select_related = ("tenant",)
    list_only = ("model", "failures", "opened_at", "probed_at", "changed_at", "tenant__name")
    exclude = ("key",)

    @column("state", label={"closed": "success", "probing": "warning", "open": "danger"})
    def state(self, row: Breaker) -> str:
        if row.opened_at is None:
            return "closed"
        return "probing" if row.probed_at is not None else "open"
