"""Taking its force from whatever in a text could be read as our markup, or as a role of a chat template.

Texts of conversations are shown inside markup of ours: to a summariser, and to the agent, whose summary is one. They
may try to end it and go on as somebody else, also in letters that only look like ours, or with invisible ones between.
An opening bracket before such a name becomes `&lt;`; everything else stays as it is, so that code, shell commands and
paths can be quoted word for word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

# Read as roles or turns by many models, and by servers that expand chat templates. Only these cases: `List<User>` is
# code.
_ROLES = "system|sys|developer|assistant|user|tool|human|instructions|start_of_turn|end_of_turn|s"

_REACH = 64  # characters after a bracket that are looked at
_LONGEST = 40  # of them, those that are seen
_OPENING = "<\u02c2\u1438\u16b2\u2039\u227a\u2329\u276e\u2770\u27e8\u27ea\u29fc\u3008\u300a\ufe64\uff1c"
_BRACKETS = re.compile(f"[{_OPENING}]")
_ENDS = dict.fromkeys("\u02c3\u1433\u203a\u227b\u232a\u276f\u2771\u27e9\u27eb\u29fd\u3009\u300b\ufe65\uff1e", ">")
# Letters of other scripts that look like the ones in our names; what Unicode itself calls alike needs no line here.
_ALIKE = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u043a\u043c\u0442\u0433\u03b1\u03bf\u03b9\u03bd\u03c1\u03c4\u03c5\u03ba\u0578\u057d\u0585\u0570\u0131\u0261\u0251\u1d04\u1d07\u1d0d\u0280\ua731\u1d1b\u1d1c\u1d20"
        "\u0410\u0415\u041e\u0420\u0421\u0423\u0425\u0405\u0406\u0408\u041a\u041c\u0422\u0391\u0395\u039f\u0399\u039d\u03a1\u03a4\u03a5\u039a\u039c",
        "aeopcyxsijhdkmtraoivptuknuohigacemrstuvAEOPCYXSIJKMTAEOINPTYKM",
        strict=True,
    )
)
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800\u180e")
_STOPS = frozenset(_OPENING) | set(_ENDS) | {">"}
# Slashes of other kinds.
_SLASHES = frozenset("\u2044\u2215\u29f8\u2571\u3033\u29f5\ufe68\uff3c")


def disarming(names: Iterable[str]) -> Callable[[str], str]:
    """A function that takes its force from tags of these names, in any case, and from roles and control tokens."""
    either = f"(?i:{'|'.join(names)})(?!\\w)|(?:{_ROLES}|{_ROLES.upper()})\\s*>|\\|"
    plain = re.compile(rf"<(?=[\s/\\]{{0,16}}(?:{either}))")
    seen = re.compile(rf"[\s/\\]{{0,16}}(?:{either})")

    def disarm(text: str) -> str:
        if text.isascii():
            return plain.sub("&lt;", text)
        return _BRACKETS.sub(lambda found: "&lt;" if seen.match(_as_read(text, found.end())) else found[0], text)

    return disarm


def _as_read(text: str, start: int) -> str:
    """What a reader makes of the characters from `start` on."""
    out = ""
    for char in text[start : start + _REACH]:
        out += char if char.isascii() else _read(char)
        if char in _STOPS or len(out) > _LONGEST:
            break
    return out


@lru_cache(maxsize=4096)
def _read(char: str) -> str:
    """A character as the plain ones it looks like; nothing for one that is not seen."""
    if char in _ENDS:
        return ">"
    if char in _SLASHES:
        return "/"
    if char.isspace():
        return " "
    if char in _INVISIBLE or unicodedata.category(char) in ("Cf", "Cc", "Mn", "Me"):
        return ""
    plain = unicodedata.normalize("NFKD", _ALIKE.get(char, char))
    return "".join(_ALIKE.get(one, one) for one in plain if unicodedata.category(one) not in ("Mn", "Me", "Cf"))
