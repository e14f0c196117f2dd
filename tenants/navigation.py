"""The admin's sidebar: what the signed-in member of the staff may view."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

# Group, then the label of its pages' models with title and icon (Material Symbols).
GROUPS = (
    ("Review", (
        ("compactions.compaction", "Compactions", "compress"),
        ("compactions.summary", "Summaries", "account_tree"),
        ("conversations.conversation", "Conversations", "forum"),
    )),
    ("Platform", (
        ("tenants.tenant", "Tenants", "apartment"),
        ("tenants.apikey", "Keys", "key"),
        ("tenants.auditevent", "Audit trail", "policy"),
        ("tenants.platformkey", "Platform keys", "vpn_key"),
        ("registry.model", "Models", "neurology"),
        ("compactions.work", "Jobs", "pending_actions"),
        ("compactions.breaker", "Breakers", "power_off"),
        ("usage.call", "Model calls", "receipt_long"),
        ("usage.day", "Daily sums", "calendar_month"),
        ("usage.month", "Budgets", "savings"),
    )),
    ("Staff", (
        ("tenants.member", "Members", "badge"),
        ("auth.user", "Users", "person"),
        ("auth.group", "Groups", "group"),
    )),
)  # fmt: skip


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups with the links the user has a permission for."""
    groups = []
    for title, pages in GROUPS:
        items = [
            {"title": name, "icon": icon, "link": reverse(f"admin:{label.replace('.', '_')}_changelist")}
            for label, name, icon in pages
            if _may_view(request, label)
        ]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


def _may_view(request: HttpRequest, label: str) -> bool:
    app, model = label.split(".")
    return any(request.user.has_perm(f"{app}.{right}_{model}") for right in ("view", "change"))
