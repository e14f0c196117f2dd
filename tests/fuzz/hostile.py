"""Hostile requests, made from the OpenAPI document and a seed: what a client should never send, and might."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.contract.document import JSON_TYPE, Operation, operations

BIG = 10**400
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, BIG, -(2**63) - 1, 0.5,
    -0.0, 1e308, 5e-324, "", " ", "\0", "\ud800", "\udfff\ud800", "a\0b", "x" * 300, "x" * 70_000, "💥" * 50,
    "\u202egnp", "../../etc/passwd", "%s%n%x", "{{7*7}}", "' or 1=1 --", "\r\nX-Evil: 1", "NaN", "-1", "1e999",
    "2026-01-01", "9999-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+14:00", "2026-02-30T00:00:00Z",
    "10000-01-01T00:00:00Z", "00000000-0000-0000-0000-000000000000", "ext:", [], {}, [[]], {"": ""}, [None],
    [1, "a", {}], {"a" * 2000: 1}, {"\0": "\0"}, {"__proto__": {}}, ["x"] * 300,
]  # fmt: skip
TEXTS = [v for v in VALUES if isinstance(v, str)] + ["٣", "+1", "1_0", "0x10", "1.0", "-0", "9" * 30, "true"]
RAW_BODIES = [
    b"", b" ", b"null", b"[]", b'""', b"0", b"{", b"}", b"[" * 5000, b'{"a":' * 500 + b"1" + b"}" * 500, b"\xff\xfe",
    b'{"a":"\xff"}', b'\xef\xbb\xbf{"a":1}', b"NaN", b'{"a":1}{"a":2}', b'{"a":1,}', b'{"model":"gpt-4o","model":7}',
    b"9" * 5000, b'{"a":1e99999}', b"\0" * 64, b"<a/>", b"a=1&b=2", b'{"messages":' + b"[" * 190 + b"]" * 190 + b"}",
]  # fmt: skip
TYPES = [JSON_TYPE] * 60 + [
    "", "text/plain", "application/xml", "multipart/form-data", "multipart/form-data; boundary=", "application/json; x",
    "application/json;charset=utf-16", "a" * 500, "application/x-www-form-urlencoded", "*/*", "\xff",
]  # fmt: skip
HEADERS: list[tuple[str, list[str]]] = [
    ("Idempotency-Key", ["", "k", "same", "x" * 255, "x" * 256, "\x7f", "\xe9", "a b", "\t"]),
    ("X-Request-Id", ["", "ok-1", "x" * 5000, "\xff", "<script>", "a b"]),
    ("If-None-Match", ["*", "", '"x"', "x" * 3000, "\xff", 'W/"1"']),
    ("Accept", ["", "text/html", "application/xml;q=0.1", "*/*;q=nan", "x" * 3000, "\xff"]),
    ("Cookie", ["sessionid=x", "sessionid=" + "x" * 4000, "=;=;=", "csrftoken=\xff", "a" * 4000]),
    ("Host", ["evil.example", "localhost:99999", "[::1", "\xff", "a b"]),
    ("Authorization", ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer \xff", "Bearer ck_" + "a" * 5000,
                       "Bearer ck_000000000000_" + "x" * 43, "Bearer cp_000000000000_" + "x" * 43]),
    ("X-Forwarded-For", ["127.0.0.1", "x" * 3000]),
    ("X-Forwarded-Proto", ["https", "\xff"]),
    ("X-Forwarded-Host", ["evil.example"]),
    ("X-HTTP-Method-Override", ["DELETE"]),
    ("Content-Encoding", ["gzip", "br", "\xff"]),
    ("Expect", ["200-ok"]),
    ("Range", ["bytes=0-1", "bytes=9-1", "\xff"]),
    ("Accept-Language", ["de", "x" * 3000, "\xff"]),
]  # fmt: skip
METHODS = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "get", "X" * 20]
# Messages of every kind beside the document's few examples: what is read most closely.
_PIXEL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}}
_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
OPENAI: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "hello"}, _PIXEL, {"type": "file", "file": {"file_id": "f"}}],
    },
    {"role": "assistant", "content": None, "tool_calls": [_CALL], "refusal": None},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}]},
    {"role": "assistant", "content": "done", "audio": {"id": "a"}, "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "x"},
    {"role": "developer", "content": "x", "name": "d"},
]
ANTHROPIC: list[Any] = [
    {
        "role": "user",
        "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVB"}}],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "look"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}]}],
    },
    {"role": "assistant", "content": "done"},
    {
        "role": "user",
        "content": [{"type": "document", "source": {"type": "text", "data": "d", "media_type": "text/plain"}}],
    },
]
USAGES: list[Any] = [
    {"prompt_tokens": 900, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}},
    {"input_tokens": 900, "output_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1},
]
TAKE_MESSAGES = ("conversations_create", "messages_append", "tokens_count")
ALPHABET = string.ascii_letters + string.digits


@dataclass
class Request:
    """What goes over the wire. `target` is what stands in the request line, as bytes in Latin-1."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.target[:300]} {dict(list(self.headers.items())[:6])} {self.body[:400]!r}"


class Hostile:
    """A source of requests. `names` gives what paths may name, asked anew for each request."""

    def __init__(self, seed: int, names: Callable[[], dict[str, list[str]]], key: str, platform_key: str) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- the same requests for the same seed
        self.names = names
        self.key, self.platform_key = key, platform_key
        self.operations = operations()

    def next(self) -> Request:
        """One request: of an operation of the document, with something wrong about it (now and then with nothing)."""
        pick = self.random
        one = pick.choice(self.operations)
        key = self.platform_key if one.path.startswith("/v1/admin") else self.key
        request = Request(one.method, self._path(one), {"Authorization": f"Bearer {key}"})
        if pick.random() < (0.6 if one.method == "GET" else 0.15):
            request.target += self._query(one)
        if one.method not in ("GET", "HEAD") or pick.random() < 0.05:
            request.body = self._body(one)
            request.headers["Content-Type"] = pick.choice(TYPES)
        if pick.random() < 0.3:
            for name, values in pick.sample(HEADERS, pick.randint(1, 3)):
                request.headers[name] = pick.choice(values)
        if pick.random() < 0.04:
            request.method = pick.choice(METHODS)
        return request

    def _path(self, one: Operation) -> str:
        pick, names = self.random, self.names()
        path = one.path
        for parameter in one.parameters:
            if parameter["in"] == "path":
                known = names.get(parameter["name"], ["1"])
                good = pick.random() < 0.8
                value = pick.choice(known) if good else self._encoded(pick.choice(TEXTS))
                path = path.replace("{" + parameter["name"] + "}", value)
        if pick.random() < 0.03:
            path += pick.choice(
                ["/", "//", "/..", "%00", "%ff", "%", ";a=1", "/%2e%2e/", "?" * 3, "#x", ".json", "\xff"]
            )
        return path

    def _query(self, one: Operation) -> str:
        pick = self.random
        known = [p["name"] for p in one.parameters if p["in"] == "query"] + ["metadata.a", "from", "cursor", "limit"]
        names = self.names()
        parts = []
        for _ in range(pick.choice([1, 1, 1, 2, 3, 8])):
            name = pick.choice(known) if pick.random() < 0.9 else self._encoded(pick.choice(TEXTS))[:200]
            value = pick.choice([*TEXTS, *names["ref"], *names.get("cursor", []), self._cursor(), "1", "0", "fit"])
            parts.append(
                f"{name}={self._encoded(value)[:3000]}" if pick.random() < 0.95 else self._encoded(value)[:200]
            )
        if pick.random() < 0.01:
            parts *= 600
        return "?" + "&".join(parts)

    def _cursor(self) -> str:
        pick = self.random
        inner = pick.choice(["id:", "position:", "pk:", "created_at:", "", "id", ":"]) + str(pick.choice(TEXTS))[:80]
        raw = base64.urlsafe_b64encode(inner.encode(errors="surrogatepass")).decode()
        return pick.choice([raw, raw.rstrip("="), raw + "=", raw[:-1], "".join(pick.choices(ALPHABET + "-_=", k=20))])

    def _encoded(self, text: str) -> str:
        raw = text.encode(errors="surrogatepass")
        if self.random.random() < 0.05:
            return text.encode(errors="replace").decode("latin-1").translate(dict.fromkeys(range(33), "+"))  # as it is
        return quote(raw, safe="")

    def _body(self, one: Operation) -> bytes:
        pick = self.random
        if pick.random() < 0.08:
            return pick.choice(RAW_BODIES)
        media = one.body.get("requestBody", {}).get("content", {}).get(JSON_TYPE)
        examples = [one["value"] for one in media["examples"].values()] if media else [{}]
        value = json.loads(json.dumps(pick.choice(examples)))
        if one.id in TAKE_MESSAGES and pick.random() < 0.6:
            value = {**value, "messages": self._messages()}
            if one.id == "messages_append":
                value = {"messages": value["messages"], "usage": pick.choice(USAGES), "context_version": "1"}
        properties = media["schema"] if media else {}
        for _ in range(pick.choice([0, 0, 1, 1, 1, 2, 4])):
            value = self._mutated(value, self._fields(properties))
        text = json.dumps(value, ensure_ascii=pick.random() < 0.7)
        raw = text.encode(errors="surrogatepass")
        chance = pick.random()
        if chance < 0.03:
            return raw[: pick.randrange(len(raw) + 1)]
        if chance < 0.06 and raw:
            at = pick.randrange(len(raw))
            return raw[:at] + bytes([pick.randrange(256)]) + raw[at + 1 :]
        if chance < 0.08 and raw.startswith(b"{") and len(raw) > 2:
            return raw[:-1] + b"," + raw[1:]  # every key twice
        if chance < 0.09:
            return b'{"messages": [' + b",".join([raw] * 200) + b"]}"
        return raw

    def _messages(self) -> list[Any]:
        """A talk, in order or not, of one provider or of both."""
        pick = self.random
        source = pick.choice([OPENAI, OPENAI, ANTHROPIC, OPENAI + ANTHROPIC])
        count = pick.choice([1, 2, 4, len(source)])
        return source[:count] if pick.random() < 0.6 else pick.choices(source, k=count)

    def _fields(self, schema: Any) -> list[str]:
        from tests.contract.document import document

        if "$ref" in schema:
            schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return list(schema.get("properties", {}))

    def _mutated(self, value: Any, fields: list[str]) -> Any:
        """The value with one node replaced, added, taken away, or buried deep."""
        pick = self.random
        if isinstance(value, dict) and (not value or pick.random() < 0.3):
            name = pick.choice([*fields, "x", "\0", "\ud800", "id", "__class__", ""]) if fields else "x"
            return {**value, name: self._value()}
        if isinstance(value, dict) and pick.random() < 0.9:
            name = pick.choice(list(value))
            if pick.random() < 0.1:
                return {key: one for key, one in value.items() if key != name}
            return {**value, name: self._mutated(value[name], [])}
        if isinstance(value, list) and value and pick.random() < 0.85:
            at = pick.randrange(len(value))
            if pick.random() < 0.15:
                return value + value[at : at + 1] * pick.choice([1, 1, 30])
            return [*value[:at], self._mutated(value[at], []), *value[at + 1 :]]
        return self._value()

    def _value(self) -> Any:
        pick = self.random
        if pick.random() < 0.06:
            deep: Any = pick.choice(VALUES)
            for _ in range(pick.choice([5, 100, 199, 201, 400])):
                deep = [deep] if pick.random() < 0.5 else {"a": deep}
            return deep
        return pick.choice(VALUES)
