from __future__ import annotations

from typing import Any

import pytest

from compaction_service.compactions import jobs, states
from compaction_service.compactions.models import Pass, PassStatus
from compaction_service.compactions.states import Beaten, NotAllowed, move
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.integration.test_faults import chat


@pytest.mark.parametrize("end", [PassStatus.SUCCEEDED, PassStatus.FAILED])
def test_pass__ended__goes_nowhere(end: PassStatus) -> None:
    for to in PassStatus:
        with pytest.raises(NotAllowed):
            move(Pass(status=end), to)


def test_pass__queued__cannot_succeed_without_having_run() -> None:
    assert states.PASS[PassStatus.QUEUED] == {PassStatus.RUNNING, PassStatus.FAILED}


def test_move__somebody_was_first__is_told_and_nothing_is_written(service: Service) -> None:
    service.post(f"{chat(service)}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        one: Any = jobs.begin(claim)
        Pass.objects.filter(pk=one.pk).update(status=PassStatus.FAILED)
        with pytest.raises(Beaten):
            move(one, PassStatus.SUCCEEDED, error="written")
        found = Pass.objects.get(pk=one.pk)
    assert (found.status, found.error) == ("failed", "")
