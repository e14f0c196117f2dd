from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from compaction_service.compactions import requests
from compaction_service.compactions.models import Compaction, Work


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker but the test's own takes the jobs: they are due tomorrow for everybody else."""
    enqueue = requests.enqueue

    def later(compaction: Compaction) -> None:
        enqueue(compaction)
        Work.objects.filter(pk=compaction.id).update(next_at=timezone.now() + timedelta(days=1))

    monkeypatch.setattr(requests, "enqueue", later)
