"""What only a socket can send: slow, short, doubled and broken requests. The service answers others meanwhile."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from compaction_service.local.stack import Stack
from tests.conftest import Member

Send = Callable[..., bytes]
HELLO = '{"model": "gpt-4o"}'


@pytest.fixture
def send(live: Stack, tenant: Member) -> Iterator[Send]:
    """Sends bytes over a connection of their own, and reads until the server closes it or says nothing for `quiet` s.

    `%K` stands for the tenant's key.
    """
    where = urlsplit(live.base_url)

    def one(*pieces: str | bytes, pause: float = 0.0, quiet: float = 2.0) -> bytes:
        with socket.create_connection((str(where.hostname), where.port or 80), timeout=quiet) as connection:
            for number, piece in enumerate(pieces):
                time.sleep(pause if number else 0)
                raw = piece.encode("latin-1") if isinstance(piece, str) else piece
                try:
                    connection.sendall(raw.replace(b"%K", tenant.key.encode()))
                except OSError:
                    break  # refused already
            found = b""
            try:
                while chunk := connection.recv(65536):
                    found += chunk
            except OSError:
                pass
            return found

    yield one
    with httpx.Client(base_url=live.base_url, headers={"Authorization": f"Bearer {tenant.key}"}) as client:
        assert client.get("/v1/conversations", timeout=20).status_code == 200


def _statuses(raw: bytes) -> list[int]:
    return [int(line.split()[1]) for line in raw.split(b"\r\n") if line.startswith(b"HTTP/1.")]


KEY = "Authorization: Bearer %K\r\n"
HEAD = "POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %K\r\n"
TYPED = f"{HEAD}Content-Type: application/json\r\n"
BROKEN = {
    "no version": "GET /v1/models\r\n\r\n",
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
    "http/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "nul in a header": f"{HEAD}X-A: a\0b\r\n\r\n",
    "blank before the colon": f"{HEAD}X-A : b\r\n\r\n",
    "a header without end": HEAD + "X-A: " + "a" * 100_000,
    "a thousand headers": HEAD + "".join(f"X-{n}: 1\r\n" for n in range(1000)) + "\r\n",
    "a long line": "GET /v1/models?q=" + "a" * 100_000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "two lengths": f"{TYPED}Content-Length: 2\r\nContent-Length: 19\r\n\r\n{HELLO}",
    "length and chunks": f"{TYPED}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a negative length": f"{TYPED}Content-Length: -1\r\n\r\n{HELLO}",
    "a length of letters": f"{TYPED}Content-Length: ten\r\n\r\n{HELLO}",
    "a length of plus": f"{TYPED}Content-Length: +19\r\n\r\n{HELLO}",
    "chunks of letters": f"{TYPED}Transfer-Encoding: chunked\r\n\r\nzz\r\n{HELLO}\r\n0\r\n\r\n",
    "a chunk too long": f"{TYPED}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{HELLO}\r\n0\r\n\r\n",
    "an unknown coding": f"{TYPED}Transfer-Encoding: gzip\r\n\r\n{HELLO}",
    "an absolute target": f"GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n{KEY}\r\n",
    "no host": "GET /v1/models HTTP/1.1\r\nAuthorization: Bearer %K\r\n\r\n",
    "raw bytes in the path": f"GET /v1/conversations/ext:\xff\xfe HTTP/1.1\r\nHost: localhost\r\n{KEY}\r\n",
    "raw bytes in a name": f"{TYPED}Idempotency-Key: \xff\xfe\r\nContent-Length: 19\r\n\r\n{HELLO}",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_request__is_refused_and_never_a_5xx(send: Send, name: str) -> None:
    statuses = _statuses(send(BROKEN[name]))
    assert [status for status in statuses if status >= 500 and status != 501] == []
    assert [status for status in statuses if status < 300 and name not in ("no host", "an absolute target")] == []


def test_body__that_ends_early__stores_nothing(send: Send, api: httpx.Client) -> None:
    send(f"{TYPED}Content-Length: 1000\r\n\r\n{HELLO}", quiet=0.5)
    assert api.get("/conversations").json()["data"] == []


def test_bodies__that_come_slowly__do_not_keep_others_waiting(send: Send, api: httpx.Client, live: Stack) -> None:
    where = urlsplit(live.base_url)
    slow = [socket.create_connection((str(where.hostname), where.port or 80)) for _ in range(12)]
    try:
        for connection in slow:
            connection.sendall(b"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        started = time.monotonic()
        assert api.get("/conversations", timeout=30).status_code == 200
        assert time.monotonic() - started < 20
    finally:
        for connection in slow:
            connection.close()


def test_body__in_slow_pieces__is_taken_whole(send: Send) -> None:
    pieces = [f"{TYPED}Connection: close\r\nContent-Length: {len(HELLO)}\r\n\r\n", *HELLO]
    assert _statuses(send(*pieces, pause=0.03, quiet=20)) == [201]


def test_unread_body__of_an_unknown_path__does_not_stand_before_the_next_request(api: httpx.Client) -> None:
    for size in (20, 100_000):  # read with the headers, and not
        assert api.post("/nowhere", content=b"x" * size).status_code == 404
        assert api.get("/models", timeout=20).status_code == 200  # on the same connection


def test_second_request__hidden_in_a_body__is_not_answered(send: Send) -> None:
    hidden = "GET /v1/tenant HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %K\r\n\r\n"
    raw = f"{TYPED}Connection: close\r\nContent-Length: {len(hidden) + 40}\r\n\r\n{hidden}".encode()
    assert len(_statuses(send(raw, quiet=0.5))) <= 1


PATHS = [
    *("/v1/tenant", "/v1/conversations", "/v1/schema", "/v1/nothing", "/nowhere", "/healthz", "/readyz", "/metrics"),
    *("/docs", "/admin/login/", "/static/admin/css/base.css"),
]


@pytest.mark.parametrize("path", PATHS)
def test_head__on_a_kept_connection__has_no_body_before_the_next_answer(live: Stack, tenant: Member, path: str) -> None:
    where = urlsplit(live.base_url)
    own = f"Host: localhost\r\nAuthorization: Bearer {tenant.key}\r\n"
    raw = b""
    with socket.create_connection((str(where.hostname), where.port or 80), timeout=30) as connection:
        connection.sendall(f"HEAD {path} HTTP/1.1\r\n{own}\r\n".encode())
        while b"\r\n\r\n" not in raw:
            raw += connection.recv(1) or b"\r\n\r\n"
        # Whatever was sent of a body is read with the next answer.
        connection.sendall(f"GET /v1/nothing HTTP/1.1\r\nConnection: close\r\n{own}\r\n".encode())
        while chunk := connection.recv(65536):
            raw += chunk
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 ")
    assert rest.startswith(b"HTTP/1.1 404 ")


def test_answers_without_a_body__on_a_kept_connection__tell_no_length(send: Send, api: httpx.Client) -> None:
    made = api.post("/api-keys", json={"name": "short", "scopes": ["read"]}).json()
    path = f"/conversations/{api.post('/conversations', json={'model': 'gpt-4o'}).json()['id']}/context"
    etag = api.get(path).headers["ETag"]
    for number, start in (
        (204, f"DELETE /v1/api-keys/{made['id']} HTTP/1.1\r\n"),
        (304, f"GET /v1{path} HTTP/1.1\r\nIf-None-Match: {etag}\r\n"),
    ):
        raw = send(f"{start}Host: localhost\r\nConnection: close\r\n{KEY}\r\n", quiet=20)
        head, _, body = raw.partition(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {number} ".encode())
        assert b"content-length" not in head.lower()
        assert body == b""
