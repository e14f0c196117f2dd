"""Paths below /v1."""

from __future__ import annotations

from django.urls import path

from compaction_service.usage import views

urlpatterns = [path("usage", views.UsageView.as_view())]
