"""Paths below /v1."""

from __future__ import annotations

from django.urls import path

from compaction_service.registry import platform_views, views

urlpatterns = [
    path("admin/models/sync", platform_views.AdminModelSync.as_view()),
    path("admin/models/<path:name>", platform_views.AdminModelView.as_view()),
    path("models", views.ModelsView.as_view(), name="models"),
    path("models/<path:name>", views.ModelView.as_view(), name="model"),
]
