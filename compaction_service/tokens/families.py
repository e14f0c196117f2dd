"""How each family of models counts: nearest encoding, factor, and what a request costs besides its text (semantics 3).

The figures were fitted to the usage that providers charged for recorded requests; calibration corrects them per
conversation. A family is named in a tokenizer string, `<encoding>` or `<encoding>/<family>`, which the registry stores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compaction_service.tokens.encodings import CL100K, O200K
from compaction_service.tokens.media import FAMILIES as MEDIA
from compaction_service.tokens.media import Media

# Tools that run at Anthropic bring their own instructions; by the beginning of their type.
_ANTHROPIC_TOOLS = {
    "bash": 245,
    "code_execution": 4150,
    "computer": 735,
    "memory": 1070,
    "text_editor": 700,
    "web_fetch": 1700,
    "web_search": 1700,
}


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens of the provider that no text of the request accounts for."""

    request: int = 3  # once: the reply's opening
    system: int = 4
    message: int = 4  # three, and the role
    call: int = 6
    result: int = 3
    tools: int = 5  # once, when there are tools: between OpenAI's 3 with a system message and 7 without
    as_typescript: bool = True  # how tools are written; else as JSON
    server_tools: Mapping[str, int] = field(default_factory=dict)  # each, when it is among the tools


_CHAT = Overhead()
_CLAUDE_3 = Overhead(system=0, call=30, result=22, tools=330, as_typescript=False, server_tools=_ANTHROPIC_TOOLS)
_CLAUDE = replace(_CLAUDE_3, tools=500)
_OPEN = Overhead(call=12, result=6, tools=60, as_typescript=False)

_CHARGES = ("request", "system", "message", "call", "result", "tools")


@dataclass(frozen=True, slots=True)
class Family:
    """What a tokenizer string stands for. `exact`: the encoding is the models' own."""

    encoding: str
    overhead: Overhead
    media: Media
    factor: float = 1.0
    exact: bool = False

    def at(self, factor: float) -> Family:
        """The same with another factor, and the overhead in raw tokens: divided by it."""
        cost = self.overhead
        raw = {name: round(getattr(cost, name) / factor) for name in _CHARGES}
        server_tools = {name: round(tokens / factor) for name, tokens in cost.server_tools.items()}
        return replace(self, factor=factor, overhead=replace(cost, server_tools=server_tools, **raw))


_FAMILIES: dict[str, Family] = {
    **{
        f"{O200K}/{name}": Family(O200K, _CHAT, MEDIA[name], exact=True)
        for name in ("gpt-4o-mini", "o1", "gpt-5", "computer-use", "gpt-4.1-mini", "gpt-4.1-nano", "o4-mini", "gpt-5.2")
    },
    O200K: Family(O200K, _CHAT, MEDIA["openai"], exact=True),
    CL100K: Family(CL100K, _CHAT, MEDIA["openai"], exact=True),
    f"{CL100K}/claude-3": Family(CL100K, _CLAUDE_3, MEDIA["anthropic"], 1.10),
    f"{CL100K}/claude-4.5": Family(CL100K, _CLAUDE, MEDIA["anthropic"], 1.10),
    f"{CL100K}/claude-4.7": Family(CL100K, _CLAUDE, MEDIA["anthropic-large"], 1.35),
    f"{O200K}/gemini": Family(O200K, _CHAT, MEDIA["gemini"], 1.05),
    f"{O200K}/gpt-oss": Family(O200K, _CHAT, MEDIA["openai"], 1.0),
    f"{O200K}/deepseek": Family(O200K, _OPEN, MEDIA["openai"], 1.04),
    f"{O200K}/qwen": Family(O200K, _OPEN, MEDIA["openai"], 1.05),
    f"{CL100K}/llama": Family(CL100K, _OPEN, MEDIA["openai"], 1.02),
    f"{CL100K}/mistral": Family(CL100K, _OPEN, MEDIA["openai"], 1.08),
    f"{O200K}/other": Family(O200K, _OPEN, MEDIA["openai"], 1.10),
}
TOKENIZERS = tuple(_FAMILIES)

_TIER = "(?:[a-z]{4,9}-)?"  # claude-opus-4-6, but claude-4-6-opus too
# Read from above: the first pattern that occurs in a model's name decides.
_BY_NAME = tuple(
    (re.compile(pattern), tokenizer)
    for pattern, tokenizer in (
        (r"gpt-?oss", f"{O200K}/gpt-oss"),
        (r"gpt-?3\.?5|gpt-4(?![.o]|\d)", CL100K),
        (r"gpt-4o-mini", f"{O200K}/gpt-4o-mini"),
        (r"gpt-4\.1-mini|gpt-5\S*-mini", f"{O200K}/gpt-4.1-mini"),
        (r"gpt-4\.1-nano|gpt-5\S*-nano", f"{O200K}/gpt-4.1-nano"),
        (r"gpt-5\.(?:[2-9]|\d\d)|gpt-[6-9]", f"{O200K}/gpt-5.2"),
        (r"gpt-5", f"{O200K}/gpt-5"),
        (r"(?<![a-z0-9])o4-mini", f"{O200K}/o4-mini"),
        (r"(?<![a-z0-9])o[13](?![a-z0-9])", f"{O200K}/o1"),
        (r"computer-use", f"{O200K}/computer-use"),
        (r"gpt-4|(?<![a-z0-9])o4(?![a-z0-9])", O200K),
        (rf"claude-(?:{_TIER}(?:4[.-]?(?:[789]|[1-9]\d)|[5-9])(?!\d)|fable|mythos)", f"{CL100K}/claude-4.7"),
        (rf"claude-{_TIER}4[.-]?[56](?!\d)", f"{CL100K}/claude-4.5"),
        (r"claude", f"{CL100K}/claude-3"),
        (r"gemini|gemma|palm", f"{O200K}/gemini"),
        (r"deepseek", f"{O200K}/deepseek"),
        (r"qwen|qwq", f"{O200K}/qwen"),
        (r"llama|nemotron", f"{CL100K}/llama"),
        (r"mi[sx]tral|codestral|devstral|magistral|pixtral", f"{CL100K}/mistral"),
    )
)


def tokenizer_for(model: str) -> str:
    """The tokenizer string of a model, from its name (any provider's prefix, any case)."""
    name = model.lower()
    return next((tokenizer for pattern, tokenizer in _BY_NAME if pattern.search(name)), f"{O200K}/other")


def family(tokenizer: str) -> Family:
    """What a tokenizer string stands for. Raises ValueError for one not in `TOKENIZERS`."""
    found = _FAMILIES.get(tokenizer)
    if found is None:
        raise ValueError(f"unknown tokenizer {tokenizer!r}: one of {', '.join(TOKENIZERS)}")
    return found
