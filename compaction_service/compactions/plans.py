"""From a conversation's rows to an engine plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from compaction_service.compactions.models import Summary as Node
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.selectors import Shown, active_nodes, shown_entries
from compaction_service.conversations.terms import Terms
from compaction_service.engine import formats, planning
from compaction_service.engine.strategies import rolls
from compaction_service.engine.types import Entry, Plan

LEAST_BOUND = 64  # tokens: nothing can be said in less
ROUNDING = 5  # tokens: each of the five parts of a meter is rounded up by itself


@dataclass(frozen=True)
class Unsaved:
    """What an append changes and has not written yet: new messages, and masks and synthetic tokens by position."""

    messages: Sequence[Entry] = ()
    masks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    abandoned: Mapping[int, int] = field(default_factory=dict)

    def onto(self, stored: Shown) -> Shown:
        """What is shown once it is written."""
        return Shown(stored.carried, (*(self._changed(entry) for entry in stored.tail), *self.messages))

    def _changed(self, entry: Entry) -> Entry:
        if entry.position in self.masks:
            entry = replace(entry, masked=self.masks[entry.position])
        if entry.position in self.abandoned:
            entry = replace(entry, abandoned=True, extra_tokens=self.abandoned[entry.position])
        return entry


@dataclass(frozen=True)
class Planned:
    """A plan with what it was made from."""

    plan: Plan
    shown: Shown
    nodes: Sequence[Node]


def plan_for(
    conversation: Conversation,
    terms: Terms,
    *,
    up_to: int | None = None,
    before: int | None = None,
    keep: bool = False,
    unsaved: Unsaved | None = None,
) -> Planned:
    """What a compaction of the conversation would do now (semantics 5). Reads no bodies, changes nothing.

    `keep`: take `up_to` as it is, for an apply that must cover what was planned and give up no more. `unsaved`: what
    the append that asks is about to write.
    """
    stored = shown_entries(conversation, bodies=False)
    shown = stored if unsaved is None else unsaved.onto(stored)
    nodes = active_nodes(conversation)
    policy, limits = terms.policy, terms.limits
    chain_tokens, rolling = sum(node.tokens for node in nodes), rolls(policy.strategy)
    plan = planning.plan(
        shown.tail,
        shown.carried,
        preserve_recent_turns=policy.preserve_recent_turns,
        keep_last_user_request=policy.keep_last_user_request,
        keep_first_user_request=policy.keep_first_user_request,
        target=0 if keep else policy.target,
        limit=terms.raw(limits.limit),
        room=terms.raw(limits.window - limits.reserve),
        fixed_tokens=conversation.system_tokens + conversation.tools_tokens,
        kept_summaries_tokens=0 if rolling else chain_tokens,
        replaced_summaries_tokens=chain_tokens if rolling else 0,
        ratio=policy.target_compression_ratio,
        bound=max(1, terms.raw(limits.bound)),
        up_to=up_to,
        before=before,
    )
    return Planned(plan, shown, nodes)


def summary_bound(conversation: Conversation, terms: Terms, planned: Planned) -> int:
    """The most tokens (as the meter shows them) the summary of a plan may have, 64 at least.

    The bound of semantics 2, and no more than leaves the context within window - reserve, where a smaller summary can.
    """
    plan, limits = planned.plan, terms.limits
    empty = formats.get(conversation.format).summary_message("", terms.policy.summary_prefix)
    beside = plan.predicted_tokens - plan.summary_target + terms.counter.message(conversation.format, empty)
    room = limits.window - limits.reserve - terms.shown(beside) - ROUNDING
    return max(LEAST_BOUND, min(limits.bound, room))
