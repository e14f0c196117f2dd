from __future__ import annotations

import json

from compaction_service.compactions import jobs
from compaction_service.compactions.models import Work
from compaction_service.conversations.models import Conversation
from tenants.scope import tenant_scope


def u(t):
    return {"role": "user", "content": t}


def a(t):
    return {"role": "assistant", "content": t}


def conv(service, path):
    with tenant_scope(service.tenant_id):
        return Conversation.objects.get(id=path.removeprefix("conversations/"))


def big(n=400):
    return " ".join(f"word{i} and path src/m{i}.py" for i in range(n))


def test_usage_huge(service):
    p = service.create(model="claude-3-5-sonnet-20241022")
    service.append(p, u(big()), a("hi"))
    v = service.context(p)["context_version"]
    r = service.post(
        f"{p}/messages", {"messages": [u("x")], "usage": {"prompt_tokens": 10**400}, "context_version": v}, status=None
    )
    assert "errors" not in r, r


def test_overflow_factor(service):
    p = service.create()
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    for _ in range(6):
        service.post(f"{p}/compactions", {"trigger": "overflow", "overflow": {"input_tokens": 2**31 - 1}}, status=None)
    assert conv(service, p).factor <= 3


def test_nul_paths(service):
    p = service.create()
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {
                    "name": "write",
                    "arguments": json.dumps(
                        {"path": "src/a\x00b.py", "file": "x\ud800.py", "q": "un\x00 /etc/pa\x00sswd"}
                    ),
                },
            }
        ],
    }
    service.append(
        p,
        u("please \x00 read \ud800 src/a.py " + big(300)),
        call,
        {"role": "tool", "tool_call_id": "c1", "content": "out \x00 \ud800 /usr/lib/x\x00.so"},
        a("done"),
        u("next"),
        a("ok"),
    )
    done = service.compact(p)
    assert done["outcome"] == "applied", done


def test_resummarize_passes(service, models, model):
    service.summarizer(models, model)
    p = service.create(policy={"resummarize_max_passes": 1, "summary_max_tokens": 64})
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    done = service.compact(p)
    print([(x["kind"], x["status"], x["tokens_out"], x["error"]) for x in done["passes"]])
    print(done["outcome"], done["fallback_reason"])


def test_tenant_reserve(service):
    p = service.create()
    service.append(p, u("a"), a("b"))
    service.patch("tenant", {"policy": {"reserve_output_tokens": 100000}})
    print(service.get("conversations", status=None))
    print(service.post(f"{p}/messages", {"messages": [u("x")]}, status=None))


def test_policy_null(service):
    p = service.create()
    print(service.patch(p, {"policy": {"foo": None}}, status=None).get("errors"))


def test_ext_nul(service):
    print(service.get("conversations/ext:%00", status=None))
    print(service.get("conversations?metadata.%00=1", status=None))
    print(service.get("conversations?external_id=%00", status=None))


def test_rounding(service):
    p = service.create(model="claude-3-5-sonnet-20241022", context_window=2000, policy={"reserve_output_tokens": 0})
    c = conv(service, p)
    with tenant_scope(service.tenant_id):
        Conversation.objects.filter(id=c.id).update(factor=0.33, calibrated=True)
    service.append(p, *[m for i in range(60) for m in (u(big(25)), a("fine"))])
    worst = 0
    for w in range(40):
        ctx = service.context(p, reserve_output_tokens=str(w))
        worst = max(worst, ctx["meter"]["tokens"] - (2000 - w))
    assert worst <= 0, worst


def test_etag_preset(service):
    p = service.create()
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    service.compact(p)
    r1 = service.client.get(f"/v1/{p}/context")
    service.patch("tenant", {"policy": {"preset": "three_layer"}})
    r2 = service.client.get(f"/v1/{p}/context", headers={"If-None-Match": r1["ETag"]})
    r3 = service.client.get(f"/v1/{p}/context")
    print(
        r2.status_code,
        r1.content == r3.content,
        json.loads(r3.content)["messages"][0]["content"][:40],
        json.loads(r1.content)["meter"]["tokens"],
        json.loads(r3.content)["meter"],
    )


def test_poison(service, monkeypatch):
    p = service.create()
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    asked = service.post(f"{p}/compactions", {}, status=202)

    def boom(*_):
        raise KeyError("poison")

    monkeypatch.setattr(jobs, "step_of", boom)
    from datetime import timedelta

    for n in range(40):
        service.clock.forward(timedelta(seconds=2))
        cl = service.claim()
        if cl is None:
            break
        try:
            jobs.run(cl)
        except jobs.Crashed:
            pass
    d = service.get(f"compactions/{asked['id']}")
    assert d["status"] == "failed", (n, d["status"], [x["status"] for x in d["passes"]])


def test_poison_plan(service, monkeypatch):
    p = service.create()
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    asked = service.post(f"{p}/compactions", {}, status=202)

    def boom(*_):
        raise KeyError("poison")

    monkeypatch.setattr(jobs, "open_job", boom)
    from datetime import timedelta

    for n in range(40):
        service.clock.forward(timedelta(seconds=2))
        cl = service.claim()
        if cl is None:
            break
        try:
            jobs.run(cl)
        except jobs.Crashed:
            pass
    d = service.get(f"compactions/{asked['id']}")
    assert d["status"] == "failed", (n, d["status"], [x["status"] for x in d["passes"]])


def test_smallint(service):
    p = service.create()
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    asked = service.post(f"{p}/compactions", {}, status=202)
    Work.objects.filter(pk=asked["id"]).update(attempts=32767)
    assert service.claim()


def test_pin_masked(service):
    p = service.create(policy={"keep_tool_results": 0, "mask_min_reclaim_tokens": 0})
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "write", "arguments": "{}"}}],
    }
    service.append(p, u("q"), call, {"role": "tool", "tool_call_id": "c1", "content": big(100)}, a("done"))
    service.append(p, u("q"), a("done"))
    print(service.context(p)["masked"])
    service.patch(f"{p}/messages/3", {"pinned": True})
    print(service.context(p)["masked"])


def test_unknown_model_list(service):
    p = service.create()
    with tenant_scope(service.tenant_id):
        Conversation.objects.filter(id=p.split("/")[1]).update(model="gone-model-xyz", context_window=None)
    print(service.get("conversations", status=None).get("errors"))


def test_long_key_name(service):
    k = service.post("api-keys", {"name": "n" * 200, "scopes": ["write"]})
    p = service.create()
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    r = service.client.post(
        f"/v1/{p}/compactions",
        data="{}",
        content_type="application/json",
        headers={"Authorization": "Bearer " + k.get("secret", k.get("key", ""))},
    )
    print(r.status_code, r.content[:200])


def test_transparency(service):
    p = service.create(policy={"transparency": "silent"})
    service.append(p, u(big()), a("hi"), u("x"), a("y"))
    d = service.compact(p)
    print({k: str(v)[:30] for k, v in d.items() if v})
