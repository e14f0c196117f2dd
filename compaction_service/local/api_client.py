"""The public API as an agent product calls it: bearer key, idempotency keys, retries, cursors."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx

JSON = dict[str, Any]
Params = Mapping[str, str | int]

TIMEOUT_S = 75  # above the longest `wait` of the API
ATTEMPTS = 7
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
PAGE = 250  # the most a list answers with
TRY_AGAIN = frozenset({429, 502, 503, 504})
HERE = frozenset({"127.0.0.1", "localhost", "::1"})


class ApiFailure(Exception):  # noqa: N818 - what the API said, not what this program did
    """The API refused, or did not answer; the message says what it said."""


class Api:
    """One key's view of a running service. `base` ends in `/v1`."""

    def __init__(self, base: str, key: str, transport: httpx.BaseTransport | None = None) -> None:
        self.base = base.rstrip("/")
        try:
            host = httpx.URL(self.base).host
            self._client = httpx.Client(
                headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
                timeout=TIMEOUT_S,
                transport=transport,
                trust_env=host not in HERE,  # a proxy of the environment does not reach this machine's own service
            )
        except (httpx.InvalidURL, UnicodeEncodeError) as exc:
            raise ApiFailure(f"The address or key of the API cannot be used: {exc}") from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def get(self, path: str, params: Params | None = None, *, attempts: int = ATTEMPTS) -> JSON:
        return self._send("GET", path, attempts, params=params)

    def post(self, path: str, body: JSON) -> JSON:
        """Safe to send again after a lost answer: every POST has an idempotency key."""
        # Escaped to ASCII, because recorded texts may hold lone surrogates.
        content = json.dumps(body).encode()
        return self._send("POST", path, ATTEMPTS, content=content, headers={"Idempotency-Key": str(uuid4())})

    def all(self, path: str, params: Params | None = None) -> list[JSON]:
        """Every entry of a list, page by page."""
        found: list[JSON] = []
        asked = {"limit": PAGE, **(params or {})}
        while True:
            page = self.get(path, asked)
            found += page["data"]
            if not page["next_cursor"]:
                return found
            asked["cursor"] = page["next_cursor"]

    def _send(self, method: str, path: str, attempts: int, **request: Any) -> JSON:
        pause, failure = FIRST_PAUSE_S, ""
        for attempt in range(1, attempts + 1):
            wait = pause
            try:
                response = self._client.request(method, f"{self.base}/{path}", **request)
            except (httpx.UnsupportedProtocol, httpx.InvalidURL) as exc:
                raise ApiFailure(f"{self.base} is no address of an API: {exc}") from exc
            except httpx.TransportError as exc:
                failure = f"No answer from {self.base}: {exc or type(exc).__name__}"
            else:
                if response.is_success:
                    return _object(response)
                failure = f"{method} {path} was answered with {response.status_code}: {_said(response)}"
                after = response.headers.get("Retry-After", "")
                if response.status_code not in TRY_AGAIN and not after:
                    raise ApiFailure(failure)
                wait = float(after) if after.isdecimal() else pause
            if attempt < attempts:
                time.sleep(min(wait, LONGEST_PAUSE_S))
                pause *= 2
        raise ApiFailure(failure)


def _object(response: httpx.Response) -> JSON:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ApiFailure(f"{response.request.url} does not answer as this API: no JSON object.")
    return body


def _said(response: httpx.Response) -> str:
    """The errors of the API's one shape, else the start of the body."""
    try:
        body = response.json()
        errors = [f"{e['attr']}: {e['detail']}" if e.get("attr") else str(e["detail"]) for e in body["errors"]]
    except (ValueError, TypeError, KeyError):
        return response.text[:300]
    numbers = f" {json.dumps(body['numbers'])}" if "numbers" in body else ""
    return f"{' '.join(errors)}{numbers} (request {body.get('request_id')})"
