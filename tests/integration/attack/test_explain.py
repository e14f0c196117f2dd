from __future__ import annotations

import time

from django.db import connections
from django.db.models import Q

from compaction_service.compactions import claims
from compaction_service.conversations.models import Conversation, Message
from tenants.scope import platform_scope, tenant_scope


def test_explain(service):
    others = [service.create() for _ in range(20)]
    p = service.create()
    cid = p.split("/")[1]
    ins = """insert into conversations_message (conversation_id, position, tenant_id, role, body, calls, answers, request, turn, tokens, chars, extra_tokens, masked, pinned, abandoned, digest, metadata, created_at)
      select %s, g, %s, case when g%%2=1 then 'user' else 'assistant' end, '{"role":"user","content":"'||repeat('x',800)||'"}', '[]','[]', g%%2=1, g/2, 200, 830, 0, '{}', false, false, '\\x00', '{}', now() from generate_series(1,%s) g"""
    with platform_scope():
        c = connections["platform"].cursor()
        for o in others:
            c.execute(ins, [o.split("/")[1], service.tenant_id, 1000])
        c.execute(ins, [cid, service.tenant_id, 200000])
        c.execute(
            "update conversations_conversation set last_position=200000, message_count=200000, tail_tokens=12000, summary_tokens=0, covered_to=199940, carried='{1,3,199901}', ledger=ledger where id=%s",
            [cid],
        )
    o = connections["owner"].cursor()
    o.execute("analyze")
    with tenant_scope(service.tenant_id):
        row = Conversation.objects.get(id=cid)
        shown = Q(position__gt=row.covered_to) | Q(position__in=row.carried)
        qs = Message.objects.filter(shown, conversation_id=row.id).order_by("position")
        print("SHOWN", qs.explain(analyze=True))
        print(
            "TAIL",
            Message.objects.filter(conversation_id=row.id, position__gt=199940)
            .order_by("position")
            .explain(analyze=True),
        )
        print("REF", Conversation.objects.filter(external_id="abc").explain(analyze=True))
        print(
            "LIST",
            Message.objects.filter(conversation_id=row.id, erased_at=None, position__gt=100000)
            .order_by("position")[:51]
            .explain(analyze=True),
        )
        t = time.time()
        print(
            Message.objects.filter(conversation_id=row.id, position__lte=199940).filter(pinned=True).exists(),
            time.time() - t,
        )
    t = time.time()
    service.append(p, {"role": "user", "content": "x"})
    print("append", time.time() - t)
    t = time.time()
    service.append(p, {"role": "assistant", "content": "x"})
    print("append", time.time() - t)
    t = time.time()
    service.context(p)
    print("context", time.time() - t)
    t = time.time()
    service.patch(f"{p}/messages/3", {"pinned": True})
    print("pin covered", time.time() - t)
    # claims
    with connections["default"].cursor() as c:
        c.execute(
            "insert into compactions_work (compaction_id, tenant_id, priority, next_at, attempts, created_at) select gen_random_uuid(), %s, 0, now() - interval '1 min', 0, now() from generate_series(1,10000)",
            [service.tenant_id],
        )
        o.execute("analyze compactions_work")
        c.execute("explain analyze " + claims._CLAIM, {"now": claims.timezone.now()})
        print("\n".join(r[0] for r in c.fetchall()))
        t = time.time()
        for _ in range(50):
            claims.claim()
        print("claim ms", (time.time() - t) / 50 * 1000)
        c.execute("delete from compactions_work where tenant_id=%s", [service.tenant_id])
