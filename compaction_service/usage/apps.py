"""The app's name for Django."""

from __future__ import annotations

from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "compaction_service.usage"

    def ready(self) -> None:
        from compaction_service.usage.budgets import budget_shown
        from tenants.usage import usage_source

        usage_source(lambda: {"budget": budget_shown()})
