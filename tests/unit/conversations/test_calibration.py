from __future__ import annotations

import pytest

from compaction_service.conversations import calibration
from compaction_service.conversations.models import Conversation
from tenants.scope import tenant_scope
from tests.inprocess import Service

TEXT = " ".join(f"step {n} changed src/module_{n}.py" for n in range(200))


@pytest.mark.parametrize("reported", [10**400, -(10**400), True, 10**15], ids=["huge", "negative", "true", "large"])
def test_append__usage_with_an_absurd_number__is_stored_and_the_factor_stays_in_bounds(
    service: Service, reported: int
) -> None:
    path = service.create(model="claude-3-5-sonnet-20241022")
    service.append(path, {"role": "user", "content": TEXT}, {"role": "assistant", "content": "Yes."})
    version = service.context(path)["context_version"]

    service.append(path, {"role": "user", "content": "Go."}, usage={"prompt_tokens": reported}, context_version=version)

    with tenant_scope(service.tenant_id):
        row = Conversation.objects.get(id=path.removeprefix("conversations/"))
    assert calibration.LOWEST <= row.factor <= calibration.HIGHEST


def test_overflow__reported_again_and_again__the_factor_stays_in_bounds(service: Service) -> None:
    path = service.create()
    service.append(path, *({"role": role, "content": TEXT} for role in ("user", "assistant", "user", "assistant")))

    for _ in range(5):
        asked = {"trigger": "overflow", "overflow": {"input_tokens": 2**31 - 1}}
        service.post(f"{path}/compactions", asked, status=202)

    with tenant_scope(service.tenant_id):
        row = Conversation.objects.get(id=path.removeprefix("conversations/"))
    assert row.factor == calibration.HIGHEST
