"""Driving the API in this process against the real database, with the jobs run by hand."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models
from django.test import Client
from django.utils import timezone

from compaction_service.compactions import jobs, leases
from compaction_service.compactions.models import Summary, Work
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.recounting import recount
from compaction_service.conversations.state import STATE
from compaction_service.conversations.terms import terms_of
from compaction_service.engine.admit import Ledger
from compaction_service.tokens.messages import counter_for
from tenants.models import Tenant
from tenants.scope import TenantModel, tenant_scope
from tests.conftest import Member
from tests.unit.engine.context_rules import openai_violations
from tests.unit.engine.context_rules_anthropic import anthropic_violations

# Small enough that a dozen messages are worth a summary.
SMALL: dict[str, Any] = {
    "model": "gpt-4o",
    "context_window": 4000,
    "policy": {"reserve_output_tokens": 500, "summary_max_tokens": 200, "target": 0},
}


COUNTER = counter_for("o200k_base", 1.0)


def client(key: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*ids: str, secret: str = "") -> dict[str, Any]:
    made = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": json.dumps({"q": secret})}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(id_: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": text}


def as_anthropic(message: dict[str, Any]) -> dict[str, Any]:
    """What the functions above make, in Anthropic's format."""
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [block]}
    made = message.get("tool_calls", ())
    uses = [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
         "input": json.loads(call["function"]["arguments"])}
        for call in made
    ]  # fmt: skip
    return {"role": message["role"], "content": uses or message["content"]}


@dataclass
class Driver:
    """One conversation of one tenant."""

    member: Member
    client: Client
    id: str
    format: str = "openai"

    @classmethod
    def create(cls, member: Member, **fields: Any) -> Driver:
        made = client(member.key).post("/v1/conversations", {**SMALL, **fields}, content_type="application/json")
        assert made.status_code == 201, made.content
        return cls(member, client(member.key), made.json()["id"], made.json()["format"])

    @property
    def path(self) -> str:
        return f"/v1/conversations/{self.id}"

    def of(self, id_: str) -> Driver:
        return Driver(self.member, self.client, id_, self.format)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.client.post(path, body, content_type="application/json", headers=headers)

    def append(self, *messages: Any, **fields: Any) -> Any:
        given = [as_anthropic(one) for one in messages] if self.format == "anthropic" else messages
        return self.post(f"{self.path}/messages", {"messages": given, **fields})

    def erase(self, position: int) -> Any:
        return self.client.delete(f"{self.path}/messages/{position}")

    def rewind(self, position: int) -> Any:
        return self.client.delete(f"{self.path}/messages?from={position}")

    def fork(self, position: int, **fields: Any) -> Any:
        return self.post(f"{self.path}/fork", {"position": position, **fields})

    def get(self) -> Any:
        return self.client.get(self.path).json()

    def context(self) -> Any:
        answer = self.client.get(f"{self.path}/context")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def originals(self) -> dict[int, Any]:
        listed = self.client.get(f"{self.path}/messages?limit=250").json()["data"]
        return {one["position"]: one["message"] for one in listed}

    def chain(self) -> list[Any]:
        nodes: list[Any] = self.client.get(f"{self.path}/summaries?limit=250").json()["data"]
        return sorted(nodes, key=lambda node: node["id"])

    def compaction(self, id_: str) -> Any:
        return self.client.get(f"/v1/compactions/{id_}").json()

    def compact(self, **fields: Any) -> Any:
        """Ask for a compaction and run it to its end."""
        asked = self.post(f"{self.path}/compactions", fields)
        assert asked.status_code in (200, 202), asked.content
        run_jobs(self.member)
        return self.compaction(asked.json()["id"])

    def check(self) -> None:
        """The invariants of semantics 1, and that the running state is what a fresh count gives."""
        with tenant_scope(self.member.id):
            row = Conversation.objects.get(id=self.id)
            kept = {name: getattr(row, name) for name in STATE}
            standing = Message.objects.filter(conversation_id=row.id).exclude(body="")
            originals = list(standing.filter(erased_at=None).order_by("position"))
            nodes = list(Summary.objects.filter(conversation_id=row.id, state="active").order_by("from_position"))
            over = [p for node in nodes for p in range(node.from_position, node.to_position + 1)]
            positions = list(standing.order_by("position").values_list("position", flat=True))
            recount(row, terms_of(row, Tenant.objects.get(id=self.member.id).policy))
            fresh = {name: getattr(row, name) for name in STATE}
        assert len(over) == len(set(over)), "active nodes overlap"
        assert [p for p in positions if p <= row.covered_to] == [p for p in positions if p in set(over)]
        assert set(row.carried) <= {p for p in positions if p <= row.covered_to}
        sums = [name for name in STATE if name.endswith(("_tokens", "_chars"))]
        assert {name: kept[name] for name in sums} == {name: fresh[name] for name in sums}
        assert kept["stored_tokens"] == sum(one.tokens for one in originals)
        assert kept["message_count"] == len(originals)
        old, new = Ledger.from_dict(kept["ledger"]), Ledger.from_dict(fresh["ledger"])
        assert (old.open_calls, old.last, old.unanswered_request) == (new.open_calls, new.last, new.unanswered_request)
        context = self.context()
        anthropic = self.format == "anthropic"
        rules = anthropic_violations if anthropic else openai_violations
        assert rules(context["messages"]) == []
        if not context["degraded"]:
            counted = sum(COUNTER.message(self.format, message) for message in context["messages"])
            spared = self.get()["meter"]["tokens"] - COUNTER.system(self.format, None) - counted
            assert spared >= 0 if anthropic else spared == 0

    def texts(self) -> str:
        return texts_of(self.member)


def texts_of(member: Member) -> str:
    """Everything that is stored as text or JSON in any row of the tenant, in one string."""
    found = []
    with tenant_scope(member.id), connection.cursor() as cursor:
        for model in apps.get_models():
            if not issubclass(model, TenantModel):
                continue
            columns = [
                f.column
                for f in model._meta.concrete_fields
                if isinstance(f, models.TextField | models.CharField | models.JSONField)
            ]
            for column in columns:
                cursor.execute(f'select "{column}"::text from "{model._meta.db_table}" where "{column}" is not null')  # noqa: S608
                found += [value for (value,) in cursor.fetchall()]
    return "\n".join(found)


def claim_of(member: Member) -> leases.Claim | None:
    """Claim the tenant's oldest piece of work, as a worker would; no other worker takes it then."""
    with tenant_scope(member.id):
        work = Work.objects.select_for_update().filter(tenant_id=member.id).order_by("created_at").first()
        if work is None:
            return None
        fence = uuid.uuid4()
        Work.objects.filter(pk=work.pk).update(fence=fence, lease_until=timezone.now() + leases.LEASE)
        return leases.Claim(work.pk, member.id, fence, 1)


def run_jobs(member: Member) -> None:
    """Run the tenant's jobs until none is left."""
    while (claim := claim_of(member)) is not None:
        jobs.run(claim)
