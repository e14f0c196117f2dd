"""Paths below /v1."""

from __future__ import annotations

from django.urls import path

from compaction_service.compactions import platform_views, views

urlpatterns = [
    path("conversations/<str:ref>/compactions", views.ConversationCompactions.as_view()),
    path("conversations/<str:ref>/summaries", views.SummaryList.as_view()),
    path("conversations/<str:ref>/stats", views.ConversationStats.as_view()),
    path("admin/compactions", platform_views.AdminCompactions.as_view()),
    path("admin/compactions/<uuid:compaction_id>", platform_views.AdminCompaction.as_view()),
    path("admin/summaries", platform_views.AdminSummaries.as_view()),
    path("admin/summaries/<uuid:summary_id>", platform_views.AdminSummary.as_view()),
    path("compactions", views.CompactionList.as_view()),
    path("compactions/<uuid:compaction_id>", views.CompactionDetail.as_view()),
    path("compactions/<uuid:compaction_id>/cancel", views.CompactionCancel.as_view()),
    path("compactions/<uuid:compaction_id>/revert", views.CompactionRevert.as_view()),
    path("summaries/<uuid:summary_id>", views.SummaryDetail.as_view()),
    path("summaries/<uuid:summary_id>/messages", views.SummaryMessages.as_view()),
    path("tools/compact", views.CompactTool.as_view()),
]
