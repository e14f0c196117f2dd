"""A real model: SmolLM2-135M behind llama.cpp's OpenAI-compatible server, from wheels in a folder of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.inprocess import clock, service  # noqa: F401 -- fixtures

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".data/llm/bin/python"
NAME = "smollm2"
WINDOW = 8192
START = 120.0  # seconds until it answers at most


@dataclass(frozen=True)
class Server:
    """What a tenant's `summarizer` is set to."""

    base_url: str
    name: str = NAME


@pytest.fixture(scope="session")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server, started once."""
    if not PYTHON.exists():
        pytest.fail("The model is not installed: run `make test-llm`.")
    weights = next((PYTHON.parents[1] / "lib").rglob("*.gguf"))
    port = _free_port()
    command = [
        PYTHON, "-m", "llama_cpp.server", "--model", weights, "--model_alias", NAME, "--n_ctx", WINDOW,
        "--host", "127.0.0.1", "--port", port,
    ]  # fmt: skip
    with (tmp_path_factory.mktemp("llm") / "server.log").open("w") as log:
        process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log)
        try:
            server = Server(f"http://127.0.0.1:{port}/v1")
            _wait(process, server)
            yield server
        finally:
            process.terminate()
            process.wait(30)


def _wait(process: subprocess.Popen[bytes], server: Server) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        assert process.poll() is None, "the model's server ended"
        try:
            if httpx.get(f"{server.base_url}/models", timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise AssertionError("the model's server does not answer")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
