"""Tenants, keys and staff for the platform's operators."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from tenants import limits
from tenants.models import ApiKey, AuditEvent, Member, PlatformKey, Tenant
from tenants.platform_admin import (
    AgeFilter,
    PlatformAdmin,
    ReadOnlyAdmin,
    TenantFilter,
    admin_url,
    column,
    noted,
    times,
)
from tenants.scope import platform_scope

# Pages of one tenant's rows, by app: this app knows no other's models.
PAGES = {
    "Conversations": "conversations_conversation",
    "Compactions": "compactions_compaction",
    "Jobs": "compactions_work",
    "Budgets": "usage_month",
    "Api keys": "tenants_apikey",
    "Model calls": "usage_call",
    "Audit events": "tenants_auditevent",
}


KEY_TIMES = (times("expires_at", "expires"), times("last_used_at", "last used"))


class TenantForm(forms.ModelForm):  # type: ignore[type-arg]  # no generic at run time
    def clean_limits(self) -> dict[str, Any]:
        given = self.cleaned_data["limits"]
        if not isinstance(given, dict):
            raise forms.ValidationError("Must be an object.")
        try:
            limits.check(given)
        except limits.LimitError as error:
            raise forms.ValidationError(str(error)) from None
        return {name: value for name, value in given.items() if value is not None}


@admin.register(Tenant)
class TenantAdmin(PlatformAdmin):
    """Status, limits and weight are the platform's to set; policy and summarizer are the tenant's own."""

    form = TenantForm
    list_display = ("name", "status_label", "keys", "own_limits", "weight", times("created_at", "made"))
    list_filter = ("status",)
    search_fields = ("name__istartswith", "id__exact")
    search_help_text = "Beginning of a name"
    actions = None
    fields = ("name", "status", "limits", "weight", "pages", "policy", "summarizer", "redaction", "retention_days",
              "created_at")  # fmt: skip
    readonly_fields = ("pages", "policy", "summarizer", "redaction", "retention_days", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        alive = ApiKey.unscoped.filter(tenant_id=OuterRef("id"), revoked_at=None).order_by().values("tenant_id")
        count = Subquery(alive.annotate(count=Count("id")).values("count"), output_field=IntegerField())
        found: QuerySet[Any] = super().get_queryset(request).annotate(key_count=count).defer("summarizer_key")
        return found

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return queryset.filter(name__istartswith=search_term.strip()) if search_term else queryset, False

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        action = "limits.changed" if change else "tenant.created"
        noted(request, obj, action, form.changed_data if change else ())

    @column("status", label={"active": "success", "suspended": "danger"})
    def status_label(self, tenant: Tenant) -> str:
        return tenant.status

    @column("keys")
    def keys(self, tenant: Any) -> str:
        return format_html(
            '<a href="{}?tenant={}">{}</a>', admin_url(ApiKey, "changelist"), tenant.id, tenant.key_count or 0
        )

    @column("own limits")
    def own_limits(self, tenant: Tenant) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in tenant.limits.items())

    @column("pages")
    def pages(self, tenant: Tenant) -> str:
        links = ((reverse(f"admin:{name}_changelist"), tenant.id, title) for title, name in PAGES.items())
        return format_html_join(" · ", '<a class="review-link" href="{}?tenant={}">{}</a>', links)


class _KeyAdmin(ReadOnlyAdmin):
    """Keys are made by the API or a command, which show the secret once; here they can be revoked."""

    exclude = ("digest", "pepper")
    actions = ("revoke",)

    @column("state", label={"valid": "success", "expired": "warning", "revoked": "danger"})
    def state(self, key: ApiKey | PlatformKey) -> str:
        if key.revoked_at is not None:
            return "revoked"
        return "expired" if key.expires_at is not None and key.expires_at <= timezone.now() else "valid"

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        allowed: bool = request.user.has_perm(f"tenants.change_{self.opts.model_name}")
        return allowed

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        with platform_scope():  # an action has no transaction of its own
            alive = list(queryset.order_by().filter(revoked_at=None).select_for_update(of=("self",)))
            queryset.order_by().filter(pk__in=[key.pk for key in alive]).update(revoked_at=timezone.now())
            for key in alive:
                noted(request, key, "key.revoked" if isinstance(key, ApiKey) else "platform_key.revoked")
        self.message_user(request, f"{len(alive)} keys revoked.")


@admin.register(ApiKey)
class ApiKeyAdmin(_KeyAdmin):
    list_display = ("prefix", "name", "tenant", "scopes", "state", *KEY_TIMES)
    list_filter = (TenantFilter,)
    list_select_related = ("tenant",)
    list_only = ("prefix", "name", "scopes", "expires_at", "revoked_at", "last_used_at", "tenant__name")
    search_fields = ("prefix__startswith",)
    search_help_text = "Beginning of a key's prefix"


@admin.register(Member)
class MemberAdmin(PlatformAdmin):
    """Which users belong to a tenant, and what they may do there. The platform's staff give the roles."""

    list_display = ("user", "tenant", "role", times("created_at", "since"))
    list_filter = ("role", TenantFilter)
    list_select_related = ("tenant", "user")
    list_only = ("role", "created_at", "tenant__name", "user__username")
    raw_id_fields = ("user", "tenant")
    fields = ("user", "tenant", "role")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        noted(request, obj, "member.changed", form.changed_data)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        noted(request, obj, "member.removed")
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for one in queryset:
            noted(request, one, "member.removed")
        super().delete_queryset(request, queryset)


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Who did what; a tenant reads its own under GET /v1/audit. Events of no tenant are the platform's."""

    list_display = (times("created_at", "when"), "whose", "actor", "action", "target", "changed")
    list_filter = (AgeFilter, TenantFilter)
    list_only = ("created_at", "actor", "action", "target", "changed")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        name = Subquery(
            Tenant.objects.filter(id=OuterRef("tenant_id")).values("name")
        )  # a join would lose those of none
        found: QuerySet[Any] = super().get_queryset(request).annotate(tenant_name=name)
        return found

    @column("tenant")
    def whose(self, event: Any) -> str:
        return event.tenant_name or "the platform"


@admin.register(PlatformKey)
class PlatformKeyAdmin(_KeyAdmin):
    list_display = ("prefix", "name", "state", *KEY_TIMES)


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[misc, type-arg]
    """Staff."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):  # type: ignore[misc]
    """Staff who may do the same."""
