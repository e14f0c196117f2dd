"""Paths below /v1."""

from __future__ import annotations

from django.urls import path

from compaction_service.conversations import context_views, message_views, views

urlpatterns = [
    path("conversations", views.ConversationList.as_view()),
    path("conversations/<str:ref>", views.ConversationDetail.as_view()),
    path("conversations/<str:ref>/messages", message_views.MessageList.as_view()),
    path("conversations/<str:ref>/messages/<int:position>", message_views.MessageDetail.as_view()),
    path("conversations/<str:ref>/fork", views.Fork.as_view()),
    path("conversations/<str:ref>/transcript", views.Transcript.as_view()),
    path("conversations/<str:ref>/context", context_views.ContextDetail.as_view()),
    path("count-tokens", views.TokenCount.as_view()),
]
