"""Secrets taken out of a text before a model sees it or a log keeps it (semantics 7). Opt-in by tenant.

What is looked for has a form of its own: keys and tokens with a known beginning, private keys, passwords in URLs and
in assignments, e-mail addresses, card numbers (Luhn). A secret without such a form is not found: this lowers what
leaks, and promises nothing. Every pattern has bounded, possessive repeats, so the time is linear in the text, whatever
it holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compaction_service.engine.summary.span import Part, SpanMessage

MOST_TOKEN = 4096  # characters of one token; the rest of a longer run goes with the next match

_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# Beginnings that providers document, then enough of the alphabet they use.
_API_KEY = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"sk-(?:ant-|proj-|svcacct-|or-v1-|lf-)?[A-Za-z0-9_-]{16,200}+"
    r"|(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9+/=]{16,200}+"
    r"|gh[pousr]_[A-Za-z0-9]{30,255}+|github_pat_[A-Za-z0-9_]{22,255}+|gl(?:pat|dt|rt|ptt|soat)-[A-Za-z0-9_.-]{20,255}+"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,255}+|xapp-[A-Za-z0-9-]{10,255}+"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,2000}+|GOCSPX-[A-Za-z0-9_-]{20,60}+"
    r"|hf_[A-Za-z0-9]{20,100}+|npm_[A-Za-z0-9]{30,100}+|pypi-[A-Za-z0-9_-]{30,500}+|dckr_pat_[A-Za-z0-9_-]{20,100}+"
    r"|SG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,64}+|key-[0-9a-f]{32}(?![0-9a-f])"
    r"|do[opr]_v1_[a-f0-9]{32,128}+|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|sq0(?:atp|csp)-[A-Za-z0-9_-]{20,60}+"
    r"|(?:gsk|xai|nvapi|r8|pplx|dapi|lin_api|secret|ntn|tvly|fw|pat)[_-][A-Za-z0-9_-]{24,200}+"
    r"|c[kp]_[0-9a-f]{12}_[A-Za-z0-9_-]{43}"
    r")"
)
_JWT = re.compile(
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4096}+\.eyJ[A-Za-z0-9_-]{8,4096}+(?:\.[A-Za-z0-9_-]{0,4096}+)?"
)
_BEARER = re.compile(r"(?i)(?<![A-Za-z])((?:bearer|basic)[ \t]{1,4}+)([A-Za-z0-9._~+/=-]{16,4096}+)")
_URL = re.compile(
    r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{1,20}+://[^\s/:@\"'<>]{0,200}+:)([^\s/@\"'<>]{1,200}+)(?=@)"
)
# A name that says what it holds, as code, JSON (escaped or not), YAML, headers and shells write it; then its value.
_ASSIGNED = re.compile(
    r"(?i)((?:passw(?:or)?d|passphrase|pwd|secret|token(?!iz)|api[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret"
    r"|auth[_-]?token|connection[_-]?string|credentials?)[A-Za-z0-9_-]{0,20}+\\{0,3}+[\"']?+\s{0,3}+(?:=>|:=|=|:)\s{0,3}+)"
    r"(?:\\{0,3}+([\"'])([^\"'\\\r\n]{4,1000}+)|([^\s\"'\\,;)}\]]{6,1000}+))"
)
_PASSWORD = re.compile(r"(?i)passw|passphrase|pwd")
_EMAIL_LOCAL = re.compile(r"[\w.%+'-]{1,64}+\Z")
_EMAIL_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_CARD = re.compile(
    r"(?<![0-9A-Za-z_.-])(?:[2-6][0-9]{12,18}"
    r"|[2-6][0-9]{3}([ -])[0-9]{4,6}\1[0-9]{4,5}(?:\1[0-9]{4})?(?:\1[0-9]{1,3})?)"
    r"(?![0-9A-Za-z_-]|\.[0-9])",
    re.ASCII,
)
_PLACEHOLDER = re.compile(
    r"(?i)\$|<|\{|\[|%|os\.|env|getenv|process\.|none|null|true|false|undefined|xxx|\*{3}|your|example"
)


@dataclass
class Redactor:
    """Takes secrets out of texts, and counts them by kind."""

    counts: Counter[str] = field(default_factory=Counter)

    def text(self, text: str) -> str:
        """The text with `[redacted: <kind>]` for each secret."""
        text = self._private_keys(text)
        text = self._each(_JWT, "token", text)
        text = self._each(_API_KEY, "api_key", text)
        text = self._each(_BEARER, "token", text, _bearer)
        text = self._each(_URL, "password", text, lambda found: (found[1], found[2], ""))
        text = self._each(_ASSIGNED, "secret", text, _assigned)
        text = self._each(_CARD, "card", text, _card)
        return self._emails(text)

    def value(self, value: Any) -> Any:
        """The same for every text in a JSON value; keys stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in value.items()}
        return [self.value(one) for one in value] if isinstance(value, list) else value

    def span(self, messages: Sequence[SpanMessage]) -> tuple[SpanMessage, ...]:
        """The messages, with the texts of their parts redacted; the messages themselves stay."""
        return tuple(replace(one, parts=tuple(map(self._part, one.parts))) for one in messages)

    def _part(self, part: Part) -> Part:
        text = self.text(part.text)
        return part if text == part.text else replace(part, text=text)  # type: ignore[type-var]  # all are dataclasses

    def _mark(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"[redacted: {kind}]"

    def _each(self, pattern: re.Pattern[str], kind: str, text: str, parts: Callable[..., Any] | None = None) -> str:
        """Every match replaced; `parts` gives what stays before, the secret, what stays behind; or None for none."""

        def one(found: re.Match[str]) -> str:
            split = parts(found) if parts else ("", found[0], "")
            return found[0] if split is None else f"{split[0]}{self._mark(kind)}{split[2]}"

        return pattern.sub(one, text)

    def _private_keys(self, text: str) -> str:
        """From each beginning to its end; without one, to the end of the text: a key that was cut is one still."""
        out, start = [], 0
        while begin := _PRIVATE_KEY.search(text, start):
            end = _END.search(text, begin.end())
            out += [text[start : begin.start()], self._mark("private_key")]
            start = end.end() if end else len(text)
        return "".join([*out, text[start:]])

    def _emails(self, text: str) -> str:
        """Each @ is looked at from both sides: a search for what may stand before one would begin at every letter."""
        out, start, at = [], 0, text.find("@")
        while at >= 0:
            local = _EMAIL_LOCAL.search(text, max(start, at - 64), at)
            domain = _EMAIL_DOMAIN.match(text, at + 1)
            end = at + 1
            if local and domain and local[0] != "git":  # git@host:path is an address of code
                out += [text[start : local.start()], self._mark("email")]
                start = end = domain.end()
            at = text.find("@", end)
        return "".join([*out, text[start:]])


def _bearer(found: re.Match[str]) -> tuple[str, str, str] | None:
    """Words can follow "basic" and "bearer"; tokens hold digits, capitals within, or signs."""
    token = found[2]
    return (found[1], token, "") if any(not c.islower() for c in token.strip(".-")[1:]) else None


def _assigned(found: re.Match[str]) -> tuple[str, str, str] | None:
    """What is assigned to a password, whatever it looks like; to the rest, what looks made by a machine. Nothing that
    stands for a value: a variable, a template, stars."""
    value = found[3] or found[4]
    if _PLACEHOLDER.match(value) or value.startswith("[redacted"):
        return None
    made = len(value) >= 12 and any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and " " not in value
    chosen = _PASSWORD.search(found[1]) and (found[3] or not value.isalpha())  # "password: required" tells nothing
    if not made and not chosen:
        return None
    before = found[0][: found.start(3) - found.start()] if found[3] else found[1]
    return before, value, ""


def _card(found: re.Match[str]) -> tuple[str, str, str] | None:
    digits = [int(digit) for digit in found[0] if digit.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return None
    doubled = [digit if n % 2 == 0 else sum(divmod(2 * digit, 10)) for n, digit in enumerate(reversed(digits))]
    return ("", found[0], "") if sum(doubled) % 10 == 0 else None
