"""The URL map. Each app lists its own paths below /v1; paths have no trailing slash."""

from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from compaction_service.api import docs, health

APPS = [
    "tenants",
    "compaction_service.registry",
    "compaction_service.conversations",
    "compaction_service.compactions",
    "compaction_service.usage",
]

urlpatterns = [
    path("", RedirectView.as_view(url="/docs")),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    path("v1/schema", docs.schema, name="schema"),
    path("docs", docs.DocsView.as_view(), name="docs"),
    *(path("v1/", include(f"{app}.urls")) for app in APPS if find_spec(f"{app}.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "compaction_service.api.handlers.handler400"
handler403 = "compaction_service.api.handlers.handler403"
handler404 = "compaction_service.api.handlers.handler404"
handler500 = "compaction_service.api.handlers.handler500"
