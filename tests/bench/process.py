"""The web process itself: how much memory it takes, and how long it needs to start."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median

from tests.bench.figures import Figure, Figures, ratio, rounded
from tests.bench.requests import append_one, conversation, message, read_one
from tests.bench.service import Bench, Client

STARTS = 3


def started(bench: Bench) -> Figures:
    """From the start of the web server until it answers, against the same server with an empty Django project."""
    folder = Path(tempfile.mkdtemp(prefix="compaction-empty-"))
    try:
        subprocess.run([sys.executable, "-m", "django", "startproject", "empty", str(folder)], check=True)
        ours: list[float] = []
        empty: list[float] = []
        for _ in range(STARTS):
            with bench.web(settings="empty.settings", module="empty.wsgi", cwd=folder, ready="/nothing") as web:
                empty.append(web.started_s)
            with bench.web() as web:
                ours.append(web.started_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    detail = {"ours_s": rounded(median(ours)), "empty_s": rounded(median(empty)), "starts": STARTS}
    return {"web_start": Figure(ratio(ours, empty), "ratio", "<= 2.5", detail)}


def memory(bench: Bench) -> Figures:
    """Resident memory of the web process after 1,000 requests of many kinds."""
    with bench.web() as web, closing(Client(web.port, bench.key)) as client:
        before = web.rss_mb()
        path = conversation(client, bench, 100)
        for number in range(200):
            append_one(client, path, number)
            read_one(client, path, number)
            client.call("GET", path)
            client.call("GET", f"{path}/messages?limit=50")
            client.call("POST", "count-tokens", {"model": "gpt-4o", "messages": [message(0)], "format": "openai"})
        after = web.rss_mb()
    return {"web_rss_mb": Figure(rounded(after), "MB", "<= 240", {"at_start_mb": rounded(before), "requests": 1000})}
