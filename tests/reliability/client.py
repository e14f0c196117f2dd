"""One key's view of the API, for as long as it takes: answers get lost here, and servers are away."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

JSON = dict[str, Any]

PATIENCE_S = 300.0  # machines are shared: what is waited for comes, or never does
PAUSE_S = 0.3
IN_PROGRESS = "idempotency_in_progress"


class Unexpected(AssertionError):  # noqa: N818 -- it says what it was
    """An answer that no fault excuses."""


@dataclass
class Client:
    """Sends again what got no answer or a 503, under the same Idempotency-Key, until it is answered."""

    base: str
    key: str
    patience_s: float = PATIENCE_S  # how long a request is sent again
    attempts: int = 0  # requests sent
    lost: int = 0  # of these, without an answer
    refused: int = 0  # of these, answered with 503
    statuses: list[str] = field(default_factory=list)  # answers that were not expected

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        self.http = httpx.Client(base_url=self.base, headers=headers, timeout=75, trust_env=False)

    def send(
        self,
        method: str,
        path: str,
        body: JSON | None = None,
        *,
        key: str | None = None,
        params: Mapping[str, str | int] | None = None,
        also: tuple[int, ...] = (),
    ) -> httpx.Response:
        """The first answer below 300, or of a status in `also`. Raises Unexpected for any other."""
        deadline = time.monotonic() + self.patience_s
        headers = {"Idempotency-Key": key or uuid.uuid4().hex} if method == "POST" else {}
        while True:
            self.attempts += 1
            try:
                answer = self.http.request(method, path, json=body, headers=headers, params=params)
            except httpx.TransportError:
                self.lost += 1
            else:
                if answer.is_success or answer.status_code in also:
                    return answer
                if answer.status_code == 503:
                    self.refused += 1
                elif not (answer.status_code == 409 and IN_PROGRESS in answer.text):
                    self.statuses.append(f"{method} {answer.status_code}")
                    raise Unexpected(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
            if time.monotonic() > deadline:
                raise Unexpected(f"{method} {path}: no answer within {self.patience_s:.0f} s")
            time.sleep(PAUSE_S)

    def get(self, path: str, **params: str | int) -> Any:
        return self.send("GET", path, params=params).json()

    def post(self, path: str, body: JSON | None = None, *, key: str | None = None) -> Any:
        return self.send("POST", path, body or {}, key=key).json()

    def all(self, path: str, **params: str | int) -> list[Any]:
        """Every entry of a list, page by page."""
        found: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = self.get(path, limit=250, **params, **cursor)
            found += page["data"]
            if not page["next_cursor"]:
                return found
            cursor = {"cursor": page["next_cursor"]}

    def create(self, **fields: Any) -> str:
        """A conversation in a small window; its path."""
        made = self.post("/conversations", {"model": "gpt-4o", "context_window": 4000, **fields})
        return f"/conversations/{made['id']}"

    def append(self, path: str, *messages: JSON, key: str | None = None) -> Any:
        return self.post(f"{path}/messages", {"messages": list(messages)}, key=key)

    def context(self, path: str, **params: str | int) -> Any:
        return self.get(f"{path}/context", **params)

    def idle_context(self, path: str) -> Any:
        """The context once no compaction is live."""
        deadline = time.monotonic() + PATIENCE_S
        while (context := self.context(path, wait=20, wait_for="idle"))["compaction"] is not None:
            if time.monotonic() > deadline:
                raise AssertionError(f"still live: {context['compaction']}")
        return context

    def ask(self, path: str, **fields: Any) -> str:
        """Ask for a compaction; the path of its log entry."""
        return f"/compactions/{self.post(f'{path}/compactions', fields)['id']}"

    def ended(self, entry: str) -> Any:
        """A compaction's log entry, once it has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.get(entry))["finished_at"] is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"still {found['status']}: {found['passes']}")
            time.sleep(0.2)
        return found

    def log(self, path: str) -> list[Any]:
        """The compactions of a conversation, oldest first."""
        return self.all("/compactions", conversation=path.rpartition("/")[2])[::-1]
