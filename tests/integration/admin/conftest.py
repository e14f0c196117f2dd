"""Staff, and a conversation with a compaction, made by the services that the API and the worker call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from compaction_service.compactions import claims, jobs, services
from compaction_service.compactions.models import LIVE, Compaction, Trigger
from compaction_service.compactions.services import Asked
from compaction_service.conversations.services import NewConversation, conversation_create
from tenants.scope import platform_scope, tenant_scope
from tests.conftest import Member

HOSTILE = "<script>alert('owned')</script>{{ 7*7 }}\u202egnp.exe \x00 \ud800 \x1b[31m" + "x" * 3000


@dataclass(frozen=True)
class Made:
    """A conversation of a test's tenant."""

    tenant: Member
    conversation: UUID

    def compact(self, **asked: Any) -> UUID:
        """Asks for a compaction and runs it to its end."""
        compaction = self.ask(**asked)
        self.run(compaction)
        return compaction

    def ask(self, **asked: Any) -> UUID:
        with tenant_scope(self.tenant.id):
            wanted = Asked(trigger=Trigger.MANUAL, requested_by="test", policy={"target": 0}, **asked)
            row, _ = services.compaction_request(self.tenant.tenant, str(self.conversation), wanted)
        return row.id

    def run(self, compaction: UUID) -> None:
        """Works until it has ended; the running service's worker may help."""
        deadline = time.monotonic() + 30
        while self.row(compaction).status in LIVE:
            if claim := claims.claim():
                jobs.run(claim)
            elif time.monotonic() > deadline:
                raise TimeoutError(str(compaction))

    def row(self, compaction: UUID) -> Compaction:
        with tenant_scope(self.tenant.id):
            return Compaction.objects.select_related("conversation").get(id=compaction)


def agent_messages(turns: int = 4, text: str = "") -> list[dict[str, Any]]:
    """Turns of an agent that calls a tool in each."""
    found: list[dict[str, Any]] = []
    for turn in range(turns):
        call = {"id": f"call-{turn}", "type": "function", "function": {"name": "grep", "arguments": '{"p": "a.py"}'}}
        found += [
            {"role": "user", "content": f"Please fix bug {turn} in src/app_{turn}.py. {text}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call-{turn}", "content": f"src/app_{turn}.py: found it. {text}" * 3},
            {"role": "assistant", "content": f"Bug {turn} is fixed in src/app_{turn}.py; the tests pass. {text}"},
        ]
    return found


@pytest.fixture
def make(tenant: Member) -> Callable[..., Made]:
    """Makes conversations of the test's tenant."""

    def make_one(messages: Sequence[dict[str, Any]] = (), **fields: Any) -> Made:
        fields = {"external_id": f"chat-{uuid4().hex[:8]}", "model": "gpt-4o", **fields}
        with tenant_scope(tenant.id):
            new = NewConversation(messages=messages or agent_messages(text="word " * 60), **fields)
            made = conversation_create(tenant=tenant.tenant, new=new)
        return Made(tenant, made.conversation.id)

    return make_one


@pytest.fixture
def made(make: Callable[..., Made]) -> Made:
    """A conversation of four turns, none compacted yet."""
    return make()


@pytest.fixture
def staff(db: None) -> Callable[..., Client]:
    """Logs in a member of the staff who has these permissions, as `app.codename`."""

    def log_in(*permissions: str, superuser: bool = False) -> Client:
        with platform_scope():
            user = User.objects.create(username=f"staff-{uuid4()}", is_staff=True, is_superuser=superuser)
            for name in permissions:
                app, codename = name.split(".")
                user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
            client = Client()
            client.force_login(user)
        return client

    return log_in


@pytest.fixture
def root(staff: Callable[..., Client]) -> Client:
    """Somebody who may do everything."""
    return staff(superuser=True)
