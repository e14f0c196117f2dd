from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from compaction_service.llm.transport import Exchange, GuardedTransport, on_the_wire


@dataclass
class TlsServer:
    port: int
    names: list[str | None] = field(default_factory=list)  # asked for in the handshakes
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TlsServer]:
    """An HTTPS server for the name `localhost`, whose certificate the transport is told to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def do_POST(self) -> None:
            seen.headers.append({k.lower(): v for k, v in self.headers.items()})
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.send_header("Set-Cookie", "a=b")
            self.end_headers()
            self.wfile.write(b"{}")

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # refused handshakes are part of the tests
    seen = TlsServer(server.server_address[1])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    context.sni_callback = lambda _, asked, __: seen.names.append(asked)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def exchange(seconds: float = 5.0, *, allow_local: bool = True) -> Exchange:
    return Exchange(time.monotonic() + seconds, allow_local, frozenset({"x-mine"}))


def test_transport__https__connects_to_the_address_and_names_the_host(tls: TlsServer) -> None:
    this = exchange()
    with httpx.Client(transport=GuardedTransport()) as client, on_the_wire(this):
        answer = client.post(
            f"https://localhost:{tls.port}/v1", json={}, headers={"X-Mine": "1", "X-Other": "2", "Cookie": "c=d"}
        )

    assert (answer.status_code, answer.json(), this.status) == (200, {}, 200)
    assert tls.names == ["localhost"]
    assert "set-cookie" not in answer.headers
    (headers,) = tls.headers
    assert headers["host"] == f"localhost:{tls.port}"
    assert headers["x-mine"] == "1"
    assert "x-other" not in headers
    assert "cookie" not in headers
    assert (headers["accept-encoding"], headers["connection"]) == ("identity", "close")


def test_transport__certificate_of_another_name__is_refused(tls: TlsServer) -> None:
    with (
        httpx.Client(transport=GuardedTransport()) as client,
        on_the_wire(exchange()),
        pytest.raises(httpx.ConnectError),
    ):
        client.post(f"https://127.0.0.1:{tls.port}/v1", json={})

    assert tls.headers == []


def test_transport__outside_of_a_call__sends_nothing(tls: TlsServer) -> None:
    with httpx.Client(transport=GuardedTransport()) as client, pytest.raises(httpx.UnsupportedProtocol):
        client.post(f"https://localhost:{tls.port}/v1", json={})

    assert tls.names == []


def test_transport__second_attempt_of_a_call__is_not_made(tls: TlsServer) -> None:
    with httpx.Client(transport=GuardedTransport()) as client, on_the_wire(exchange()):
        client.post(f"https://localhost:{tls.port}/v1", json={})
        assert client.post(f"https://localhost:{tls.port}/v1", json={}).status_code == 200

    assert len(tls.headers) == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_transport__loopback_not_allowed__is_refused_unconnected(tls: TlsServer, scheme: str, method: str) -> None:
    this = exchange(allow_local=False)
    with httpx.Client(transport=GuardedTransport()) as client, on_the_wire(this), pytest.raises(httpx.TransportError):
        client.request(method, f"{scheme}://localhost:{tls.port}/v1")

    assert this.refused
    assert tls.names == []


@pytest.mark.parametrize("allow_local", [False, True])
def test_transport__plain_http_elsewhere__is_refused_unconnected(
    allow_local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 80))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [entry])
    this = exchange(allow_local=allow_local)
    with httpx.Client(transport=GuardedTransport()) as client, on_the_wire(this), pytest.raises(httpx.TransportError):
        client.post("http://models.example/v1", json={})

    assert this.refused


def test_transport__no_time_left__does_not_connect(tls: TlsServer) -> None:
    this = exchange(seconds=0.0)
    with httpx.Client(transport=GuardedTransport()) as client, on_the_wire(this), pytest.raises(httpx.TimeoutException):
        client.post(f"https://localhost:{tls.port}/v1", json={})

    assert this.timed_out
    assert tls.names == []
