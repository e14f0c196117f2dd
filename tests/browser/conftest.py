"""A real Chromium, signed in to the running service."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.contrib.auth.models import User

from compaction_service.local.stack import Stack
from tenants.scope import platform_scope

CHROMIUM = Path("/usr/bin/chromium")  # Debian's
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser. Playwright keeps an event loop running, which Django takes for asynchronous code."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not there: install Debian's chromium")
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, live: Stack) -> Iterator[Any]:
    """A page of the admin, signed in as somebody who may do everything. Fails for anything loaded from elsewhere."""
    name, password = f"reviewer-{uuid4()}", uuid4().hex
    with platform_scope():
        User.objects.create_superuser(name, password=password)
    context = browser.new_context(base_url=live.base_url, viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(10_000)
    trouble: list[str] = []

    def from_elsewhere(request: Any) -> None:
        if not request.url.startswith(live.base_url):
            trouble.append(request.url)

    def asked(dialog: Any) -> None:
        trouble.append(dialog.message)
        dialog.dismiss()

    opened.on("request", from_elsewhere)
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", asked)
    opened.goto("/admin/")
    opened.locator("[name=username]").fill(name)
    opened.locator("[name=password]").fill(password)
    opened.get_by_role("button", name="Log in").click()
    yield opened
    context.close()
    assert not trouble


@pytest.fixture
def compaction(api: httpx.Client) -> str:
    """An applied compaction of a conversation with hostile text, made through the API. Its id."""
    hostile = "<script>alert('owned')</script> \x00 \ud800 " + "x" * 2000
    body = {"model": "gpt-4o", "external_id": f"chat-{uuid4().hex[:8]}", "messages": _messages(hostile)}
    headers = {"Content-Type": "application/json"}
    created = api.post("/conversations", content=json.dumps(body).encode(), headers=headers).raise_for_status().json()
    asked = (
        api.post(f"/conversations/{created['id']}/compactions", json={"trigger": "manual", "wait": 30})
        .raise_for_status()
        .json()
    )
    deadline = time.monotonic() + 30
    while asked["status"] in ("queued", "running") and time.monotonic() < deadline:
        time.sleep(0.2)
        asked = api.get(f"/compactions/{asked['id']}").raise_for_status().json()
    assert asked["outcome"] == "applied", asked
    return str(asked["id"])


def _messages(hostile: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for turn in range(6):
        call = {"id": f"call-{turn}", "type": "function",
                "function": {"name": "read_file", "arguments": json.dumps({"path": f"src/app_{turn}.py"})}}  # fmt: skip
        found += [
            {"role": "user", "content": f"Please fix bug {turn} in src/app_{turn}.py. We decided to keep Python 3.11."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"call-{turn}",
                "content": f"def f_{turn}():\n    return {turn}\n" * 20,
            },
            {"role": "assistant", "content": f"Bug {turn} is fixed. Next I will run the tests of app_{turn}."},
        ]
    found[4]["content"] += hostile
    return found
