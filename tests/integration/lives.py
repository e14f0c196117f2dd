"""Messages of a random life, in both formats: what a client may send at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hypothesis import strategies as st

from tests.unit.engine.strategies_anthropic import REDACTED, SEARCH, THINKING, text

Message = dict[str, Any]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
DOCUMENT = {"type": "document", "title": "Report", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}

WORDS = ("plan", "route", "gate", "src/app.py", "4711", "Zürich", "東京", "and", "the", "user", "because", "works")
ODD = ("\x00", "\ud800", "{braces} %s %(x)d", "😀" * 30, "<|endoftext|>", "n" * 900)
IDS = ("a", "b", "c", "call|1.x")  # few, so that they come again; one that not every provider takes
TOOLS = ("bash", "read_file")

texts = st.one_of(
    st.sampled_from(ODD),
    st.integers(min_value=1, max_value=120).map(lambda n: " ".join(WORDS[(n * k * k) % len(WORDS)] for k in range(n))),
)
results = st.one_of(texts, st.integers(min_value=300, max_value=2500).map(lambda n: "line of output 42\n" * (n // 5)))
shapes = st.integers(min_value=0, max_value=3)


class Speaker(Protocol):
    """How one format says what happens in a life. `shape` picks one of a few ways to say it."""

    @property
    def models(self) -> tuple[str, ...]: ...
    def asks(self, said: str, shape: int) -> Message: ...
    def answers(self, said: str, shape: int) -> Message: ...
    def calls(self, ids: Sequence[str], tool: str, shape: int) -> Message: ...
    def returns(self, ids: Sequence[str], said: str, shape: int) -> list[Message]: ...


@dataclass(frozen=True)
class OpenAI:
    models: tuple[str, ...] = ("gpt-4o", "gpt-4o-mini")

    def asks(self, said: str, shape: int) -> Message:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}}
        parts = [{"type": "text", "text": said}, image]
        return {"role": "user", "content": parts if shape == 1 else said}

    def answers(self, said: str, shape: int) -> Message:
        refusal = {"role": "assistant", "content": None, "refusal": said}
        return refusal if shape == 1 else {"role": "assistant", "content": said}

    def calls(self, ids: Sequence[str], tool: str, shape: int) -> Message:
        function = {"name": tool, "arguments": '{"x": 1}'}
        made = [{"id": id_, "type": "function", "function": function} for id_ in ids]
        return {"role": "assistant", "tool_calls": made} | (
            {} if shape == 1 else {"content": (None, "", "I look.")[shape % 3]}
        )

    def returns(self, ids: Sequence[str], said: str, shape: int) -> list[Message]:
        parts = [{"type": "text", "text": said}]
        return [{"role": "tool", "tool_call_id": id_, "content": parts if shape == 1 else said} for id_ in ids]


@dataclass(frozen=True)
class Anthropic:
    models: tuple[str, ...] = ("claude-opus-5-5", "claude-opus-4-5")  # one binds thinking, one does not

    def asks(self, said: str, shape: int) -> Message:
        return {"role": "user", "content": (said, [text(said)], [text(said), IMAGE], [DOCUMENT, text(said)])[shape]}

    def answers(self, said: str, shape: int) -> Message:
        spoken = (said, [THINKING, text(said)], [REDACTED, THINKING, text(said)], [*SEARCH, text(said)])[shape]
        return {"role": "assistant", "content": spoken}

    def calls(self, ids: Sequence[str], tool: str, shape: int) -> Message:
        made = [{"type": "tool_use", "id": id_, "name": tool, "input": {"x": 1}} for id_ in ids]
        before = ([], [THINKING], [THINKING, text("I look.")], [REDACTED])[shape]
        return {"role": "assistant", "content": [*before, *made]}

    def returns(self, ids: Sequence[str], said: str, shape: int) -> list[Message]:
        """All in one message, as agents send them; perhaps with a word of the user's."""
        content = [text(said), IMAGE] if shape == 1 else said
        found = [{"type": "tool_result", "tool_use_id": id_, "content": content} for id_ in ids]
        return [{"role": "user", "content": [*found, *([text("Quickly!")] if shape == 2 else [])]}]


SPEAKERS: dict[str, Speaker] = {"openai": OpenAI(), "anthropic": Anthropic()}
