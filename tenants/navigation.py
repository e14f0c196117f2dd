"""The admin's sidebar: what the signed-in member of the staff may view."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst

# Group, then the models of its pages with icons (Material Symbols); a page is called as its model is everywhere.
GROUPS = (
    ("Review", (
        ("compactions.compaction", "compress"),
        ("compactions.summary", "account_tree"),
        ("conversations.conversation", "forum"),
    )),
    ("Platform", (
        ("tenants.tenant", "apartment"),
        ("tenants.apikey", "key"),
        ("tenants.auditevent", "policy"),
        ("tenants.platformkey", "vpn_key"),
        ("registry.model", "neurology"),
        ("compactions.work", "pending_actions"),
        ("compactions.breaker", "power_off"),
        ("usage.call", "receipt_long"),
        ("usage.day", "calendar_month"),
        ("usage.month", "savings"),
    )),
    ("Staff", (
        ("tenants.member", "badge"),
        ("auth.user", "person"),
        ("auth.group", "group"),
    )),
)  # fmt: skip


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups with the links the user has a permission for."""
    groups = []
    for title, pages in GROUPS:
        items = [
            {"title": _name(label), "icon": icon, "link": reverse(f"admin:{label.replace('.', '_')}_changelist")}
            for label, icon in pages
            if _may_view(request, label)
        ]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


def _name(label: str) -> str:
    return capfirst(str(apps.get_model(label)._meta.verbose_name_plural))  # noqa: SLF001


def _may_view(request: HttpRequest, label: str) -> bool:
    app, model = label.split(".")
    return any(request.user.has_perm(f"{app}.{right}_{model}") for right in ("view", "change"))
