"""The client that `make client` generates, made into a folder of the test's own and imported."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.contract.document import PATH, operation

CONFIG = Path(__file__).with_name("client.yaml")
PACKAGE = "compaction_client"


def generate(folder: Path) -> ModuleType:
    """Generate the client from the committed document; any warning of the generator is a failure."""
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning"]
    options = ["--path", str(PATH), "--config", str(CONFIG), "--output-path", str(folder)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    return importlib.import_module(PACKAGE)


class Sdk:
    """The generated client with one key. `sdk.call("messages_append", ref, body=...)` gives the generated answer."""

    def __init__(self, package: ModuleType, base_url: str, key: str) -> None:
        self.models = importlib.import_module(f"{package.__name__}.models")
        self.client: Any = package.AuthenticatedClient(base_url=base_url, token=key, timeout=70)

    def respond(self, operation_id: str, *path: Any, body: Any = None, **parameters: Any) -> Any:
        """Status, headers and parsed body. `body` is a mapping, made into the operation's own model."""
        tag = operation(operation_id).body["tags"][0].replace("-", "_")
        module = importlib.import_module(f"{PACKAGE}.api.{tag}.{operation_id}")
        if body is not None:
            parameters["body"] = getattr(self.models, _body_model(operation_id)).from_dict(body)
        return module.sync_detailed(*path, client=self.client, **parameters)

    def call(self, operation_id: str, *path: Any, **parameters: Any) -> Any:
        """The parsed body: a model of the answer, or an `Error`."""
        return self.respond(operation_id, *path, **parameters).parsed


def _body_model(operation_id: str) -> str:
    schema = operation(operation_id).body["requestBody"]["content"]["application/json"]["schema"]
    return str(schema["$ref"].rpartition("/")[2])
