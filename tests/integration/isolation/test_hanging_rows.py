"""What one tenant's session cannot do to another tenant's rows, in raw SQL under the application role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection

from tenants.scope import tenant_scope
from tests.inprocess import Service

CHAT = [{"role": role, "content": "word " * 300} for role in ("user", "assistant", "user", "assistant")]
# A row that takes a place which the first tenant needs next: a position, the one live compaction, the one active node.
SQUATS = {
    "message": """
        insert into conversations_message (conversation_id, position, tenant_id, role, body, calls, answers, request,
          turn, tokens, chars, extra_tokens, masked, pinned, abandoned, digest, metadata, created_at)
        values (%(conversation)s, 5, %(me)s, 'user', '{}', '[]', '[]', true, 1, 1, 1, 0, '{}', false, false, 'x', '{}',
          now())""",
    "compaction": """
        insert into compactions_compaction (id, conversation_id, tenant_id, status, outcome, reason, trigger,
          requested_by, strategy, policy, focus, instructions, carried, work, model, method, fallback_reason, summary,
          sections, dropped_content, entities, notes, llm_tokens_in, llm_tokens_out, cost, review, created_at)
        values (gen_random_uuid(), %(conversation)s, %(me)s, 'queued', '', '', 'manual', 'x', 'sliding', '{}', '', '',
          '{}', '{}', '', '', '', '', '[]', '[]', '[]', '[]', 0, 0, 0, 'unreviewed', now())""",
}


@pytest.mark.parametrize("squat", SQUATS)
def test_raw_sql__a_row_that_hangs_on_anothers_conversation__is_refused(
    service: Service, make_tenant: Callable[[], Any], squat: str
) -> None:
    path = service.create()
    service.append(path, *CHAT)
    me = make_tenant().id

    with pytest.raises(IntegrityError), tenant_scope(me), connection.cursor() as cursor:
        cursor.execute(SQUATS[squat], {"conversation": path.removeprefix("conversations/"), "me": me})

    service.append(path, *CHAT)
    assert service.compact(path)["outcome"] == "applied"


def test_raw_sql__anothers_work__is_neither_seen_nor_taken_away(
    service: Service, make_tenant: Callable[[], Any]
) -> None:
    path = service.create()
    service.append(path, *CHAT)
    asked = service.post(f"{path}/compactions", status=202)

    with tenant_scope(make_tenant().id), connection.cursor() as cursor:
        cursor.execute("select count(*) from compactions_work")
        assert cursor.fetchone() == (0,)
        cursor.execute("delete from compactions_work")

    service.work_off()
    assert service.get(f"compactions/{asked['id']}")["outcome"] == "applied"
