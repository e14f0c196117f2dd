"""`token_counter: chars4`: lengths of the messages as compact, unescaped JSON, summed, divided by 4, floored once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction_service.conversations.models import Conversation
from compaction_service.conversations.terms import terms_of
from compaction_service.conversations.terms import trigger_tokens as counted
from compaction_service.engine.formats.base import NO_RESULT
from tenants.scope import tenant_scope
from tests.inprocess import Service

SYSTEM = 'Be "brief".\n東京 \U0001f600'
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
ODD = ("é\u2028", "\x00\x1f", "\ud800", "😀", '"\\"', "plain text", "</script>")

pieces = st.lists(st.sampled_from(ODD), min_size=1, max_size=4).map("".join)
step = st.tuples(st.sampled_from(["talk", "round", "pinned round", "compact"]), pieces, st.integers(1, 60))


def length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def trigger_tokens(service: Service, path: str) -> int:
    with tenant_scope(service.tenant_id):
        row = Conversation.objects.get(id=path.removeprefix("conversations/"))
        return counted(row, terms_of(row, {}))


def act(service: Service, path: str, number: int, kind: str, text: str, times: int) -> None:
    if kind == "compact":
        service.compact(path)
        return
    if kind == "talk":
        messages: list[Any] = [{"role": "user", "content": text}, {"role": "assistant", "content": text * times}]
    else:
        call = {"id": f"c{number}", "type": "function", "function": {"name": "bash", "arguments": json.dumps([text])}}
        messages = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text * times},
            {"role": "assistant", "content": "Done."},
        ]
    service.append(path, *messages, details=[{"pinned": kind == "pinned round"} for _ in messages])


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(step, min_size=3, max_size=12), preset=st.booleans())
def test_chars4__masked_carried_and_summaries__is_what_the_rendered_messages_come_to(
    service: Service, steps: list[Any], preset: bool
) -> None:
    masks = {"mask_tool_results": True, "mask_min_reclaim_tokens": 0, "keep_tool_results": 1, "mask_min_chars": 20}
    policy = {"token_counter": "chars4", **masks, **({"preset": "three_layer"} if preset else {"target": 0})}
    path = service.create(policy=policy, system=SYSTEM, tools=TOOLS, context_window=100_000)

    for number, (kind, text, times) in enumerate(steps):
        act(service, path, number, kind, text, times)
        context = service.context(path)
        stored = [m for m in context["messages"] if m.get("content") != NO_RESULT]
        shown = stored[1:] if preset else [*stored, TOOLS]  # three_layer: without system and tools
        assert trigger_tokens(service, path) == sum(map(length, shown)) // 4
