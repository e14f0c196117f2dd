from __future__ import annotations

from typing import Any

import pytest

from compaction_service.compactions import requests


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker but the test's own takes the jobs: they are due tomorrow for everybody else."""
    enqueue = requests.enqueue

    def later(compaction: Any) -> None:
        from datetime import timedelta

        from django.utils import timezone

        from compaction_service.compactions.models import Work

        enqueue(compaction)
        Work.objects.filter(pk=compaction.id).update(next_at=timezone.now() + timedelta(days=1))

    monkeypatch.setattr(requests, "enqueue", later)
