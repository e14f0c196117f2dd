"""A conversation's life in random order: append, compact, revert, pin, mask; the invariants hold after each step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compaction_service.engine.exchanges import exchange_at, group
from compaction_service.engine.formats import anthropic, openai
from compaction_service.engine.formats.base import NO_RESULT, Format, summary_text
from compaction_service.engine.planning import carried_after_pin, plan
from compaction_service.engine.projection import Parts, part_tokens, render
from compaction_service.engine.types import Call, Entry, Summary
from tests.unit.engine import strategies, strategies_anthropic
from tests.unit.engine.context_rules import openai_violations
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies import OVERHEAD, Step, Store, count, steps, summary
from tests.unit.engine.strategies_anthropic import AnthropicStore, flat, says_nothing


@dataclass(frozen=True)
class Compaction:
    """What a revert needs, and the context to come back to; `undisturbed` until anything else happens."""

    nodes: tuple[Summary, ...]
    covered_to: int
    carried: tuple[int, ...]
    messages: list[Any]
    changes: int


class OpenAILifecycle(RuleBasedStateMachine):
    fmt: Format = openai
    new_store: type[Store] = Store

    def __init__(self) -> None:
        super().__init__()
        self.synthetic_tokens = self.body_tokens(self.fmt.synthetic_result(Call("x", "bash"), NO_RESULT))
        self.store = self.new_store(self.synthetic_tokens)
        self.nodes: tuple[Summary, ...] = ()
        self.covered_to = 0
        self.carried: tuple[int, ...] = ()
        self.applied: list[Compaction] = []
        self.changes = 0  # appends, pins and masks so far

    @property
    def entries(self) -> list[Entry]:
        return self.store.entries

    def parts(self) -> Parts:
        return Parts(
            system="Be brief.",
            summaries=self.nodes,
            carried=tuple(self.entries[position - 1] for position in self.carried),
            tail=tuple(self.entries[self.covered_to :]),
        )

    def messages(self) -> list[Any]:
        return render(self.fmt, self.parts()).messages

    def body_tokens(self, body: Any) -> int:
        return strategies.body_tokens(body)

    def violations(self, messages: list[Any]) -> list[str]:
        return openai_violations(messages)

    def can_be_shown(self, entry: Entry) -> bool:  # noqa: ARG002 - every message
        return True

    def extends(self, after: list[Any], before: list[Any], appended: bool) -> bool:
        """`after` shows what `before` did and more behind it, or may show it in another order (invariant 6)."""
        newest = self.entries[-1] if appended else None
        moved = newest and newest.facts.answers and after[-1] is not newest.body
        return bool(moved) or after[: len(before)] == before

    @rule(played=st.lists(steps, min_size=2, max_size=8))
    def append(self, played: list[Step]) -> None:
        for step in played:
            before, length = self.messages(), len(self.entries)
            self.store.step(step)
            after = self.messages()
            assert self.extends(after, before, len(self.entries) > length)
        self.changes += 1

    @rule(
        k=st.integers(0, 3),
        last=st.booleans(),
        first=st.booleans(),
        share=st.sampled_from([0, 0.1, 0.5]),
        rolling=st.booleans(),
        up_to=st.one_of(st.none(), st.integers(0, 60)),
    )
    def compact(self, k: int, last: bool, first: bool, share: float, rolling: bool, up_to: int | None) -> None:
        parts = self.parts()
        nodes_tokens = sum(node.tokens for node in self.nodes)
        result = plan(
            parts.tail,
            parts.carried,
            preserve_recent_turns=k,
            keep_last_user_request=last,
            keep_first_user_request=first,
            target=share,
            limit=500,
            room=600,
            fixed_tokens=0,
            kept_summaries_tokens=0 if rolling else nodes_tokens,
            replaced_summaries_tokens=nodes_tokens if rolling else 0,
            ratio=8,
            bound=200,
            up_to=up_to,
        )
        assert [*result.covered, *result.kept] == [entry.position for entry in parts.tail]
        if result.to_position is None:
            assert result.predicted_tokens == self.tokens() - self.tokens_made_up()
            return
        self.applied.append(Compaction(self.nodes, self.covered_to, self.carried, self.messages(), self.changes))
        begins = self.nodes[0].from_position if rolling and self.nodes else self.covered_to + 1
        node = summary("abc " * (result.summary_target - OVERHEAD), begins, result.to_position)
        self.nodes = (node,) if rolling else (*self.nodes, node)
        self.covered_to, self.carried = result.to_position, result.carried
        assert result.predicted_tokens == self.tokens() - self.tokens_made_up()

    @precondition(lambda self: self.applied)
    @rule()
    def revert(self) -> None:
        undone = self.applied.pop()
        self.nodes, self.covered_to, self.carried = undone.nodes, undone.covered_to, undone.carried
        if undone.changes == self.changes:
            assert self.messages() == undone.messages

    @precondition(lambda self: self.store.entries)
    @rule(number=st.integers(0, 200), pinned=st.booleans())
    def pin(self, number: int, pinned: bool) -> None:
        position = 1 + number % len(self.entries)
        self.store.pin(position, pinned)
        if position <= self.covered_to:
            exchange = group(self.entries)[exchange_at(group(self.entries), position - 1)]
            members = self.entries[exchange.start : exchange.end]
            self.carried = carried_after_pin(self.carried, members)
            assert ({entry.position for entry in members} <= set(self.carried)) or not pinned
        self.applied.clear()  # the carried sets of earlier compactions know nothing of this pin
        self.changes += 1

    @precondition(lambda self: self.store.entries)
    @rule(number=st.integers(0, 200))
    def mask(self, number: int) -> None:
        index = number % len(self.entries)
        exchanges = group(self.entries)
        if exchanges[exchange_at(exchanges, index)].seen:
            self.entries[index] = replace(self.entries[index], masked=self.entries[index].mask_all().masked)
        self.changes += 1

    @invariant()
    def every_message_is_live_or_covered_by_exactly_one_node(self) -> None:
        covered = [p for node in self.nodes for p in range(node.from_position, node.to_position + 1)]
        assert covered == list(range(1, self.covered_to + 1))
        assert set(self.carried) <= set(covered)
        assert list(self.carried) == sorted(set(self.carried))

    @invariant()
    def context_is_valid_and_shows_what_it_should(self) -> None:
        rendered = render(self.fmt, self.parts())
        assert self.violations(rendered.messages) == []
        live = range(self.covered_to + 1, len(self.entries) + 1)
        wanted = [p for p in (*self.carried, *live) if self.can_be_shown(self.entries[p - 1])]
        assert sorted(p for origin in rendered.origins for p in origin) == wanted
        pinned = {entry.position for entry in self.entries[: self.covered_to] if entry.pinned}
        assert pinned <= set(self.carried)

    @invariant()
    def tokens_are_those_of_what_is_rendered(self) -> None:
        assert self.tokens() == self.recount()

    def recount(self) -> int:
        """The tokens of what is rendered but the system message; a summary by its text, as its node has them."""
        messages = [message for message in self.messages() if message["role"] != "system"]
        labels = sum(count(summary_text(node.text)) - count(node.text) for node in self.nodes)
        return sum(map(self.body_tokens, messages)) - labels

    def tokens(self) -> int:
        counted = part_tokens(self.parts(), system_tokens=0, tools_tokens=0, synthetic_tokens=self.synthetic_tokens)
        return sum(counted.values())

    def tokens_made_up(self) -> int:
        """Of the synthetic results of open calls, which a plan leaves out."""
        counted = part_tokens(self.parts(), system_tokens=0, tools_tokens=0, synthetic_tokens=0)
        return self.tokens() - sum(counted.values())


class AnthropicLifecycle(OpenAILifecycle):
    fmt: Format = anthropic
    new_store: type[Store] = AnthropicStore

    def body_tokens(self, body: Any) -> int:
        return strategies_anthropic.body_tokens(body)

    def violations(self, messages: list[Any]) -> list[str]:
        return anthropic_violations(messages, self.parts().system)

    def can_be_shown(self, entry: Entry) -> bool:
        return not says_nothing(entry.body)

    def extends(self, after: list[Any], before: list[Any], appended: bool) -> bool:
        """Block by block; results go before what else is in their turn, and system messages behind it."""
        shown = [*self.parts().carried, *self.parts().tail]
        said = (i for i, e in enumerate(shown, 1) if e.facts.role == "assistant" and not says_nothing(e.body))
        turn = shown[max(said, default=0) :]
        newest, others = (turn[-1], turn[:-1]) if appended and turn else (None, [])
        moved = newest and any(
            entry.facts.role == "system" or (newest.facts.answers and (entry.facts.request or not entry.facts.answers))
            for entry in others
        )
        return bool(moved) or flat(after)[: len(flat(before))] == flat(before)

    @invariant()
    def tokens_are_those_of_what_is_rendered(self) -> None:
        """At most: merged messages have one overhead, and some texts cannot be shown."""
        system = sum(self.body_tokens(message) for message in self.messages() if message["role"] == "system")
        assert self.recount() + system <= self.tokens()


settings_ = settings(max_examples=50, stateful_step_count=30, deadline=None)
OpenAILifecycle.TestCase.settings = AnthropicLifecycle.TestCase.settings = settings_
test_openai_context__any_life__keeps_the_invariants = OpenAILifecycle.TestCase
test_anthropic_context__any_life__keeps_the_invariants = AnthropicLifecycle.TestCase
