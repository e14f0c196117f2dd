"""The cost of a request: by the length of the conversation, in round trips, and in CPU."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import psycopg

from tests.bench.figures import INFORMATION, Figure, Figures, ratio, rounded
from tests.bench.service import EMPTY, Bench, Client, Web

LIVE = 60  # messages of the live tail
SENTENCE = "The plan is to change the route because nothing else works for the user now. "
KILOBYTE = (SENTENCE * 14)[:1000]
WINDOW = 1_000_000  # nothing here is to be compacted by itself
BATCH, ROUNDS = 400, 5
CLIENTS = 8
COPIED = (
    "conversation_id, tenant_id, role, body, calls, answers, request, turn, tokens, chars, extra_tokens, masked,"
    " pinned, abandoned, digest, external_id, occurred_at, metadata, created_at, erased_at, thinking_tokens,"
    " thinking_chars"
)


def message(number: int) -> dict[str, str]:
    return {"role": "user" if number % 2 == 0 else "assistant", "content": KILOBYTE}


def append_body(number: int) -> bytes:
    return json.dumps({"messages": [message(number)]}).encode()


def conversation(client: Client, bench: Bench, length: int) -> str:
    """A conversation of `length` messages, of which all but LIVE are covered by one summary; its path.

    Made by requests, but for the covered messages beyond the first few: those rows are written by SQL.
    """
    few = 100 - LIVE
    path = client.create(context_window=WINDOW)
    client.append(path, *(message(n) for n in range(few)))
    done = client.call("POST", f"{path}/compactions", {"up_to": few, "preserve_recent_turns": 0, "wait": 60})
    if done["outcome"] != "applied":
        raise RuntimeError(f"not compacted: {done}")
    if length > 100:
        with bench.owner() as db:
            lengthen(db, path.removeprefix("conversations/"), few, length - 100)
    client.append(path, *(message(n) for n in range(LIVE)))
    return path


def lengthen(db: psycopg.Connection[Any], identifier: str, covered: int, more: int) -> None:
    """Write `more` covered messages behind the last covered one, each a copy of the first."""
    db.execute(
        f"insert into conversations_message (position, {COPIED})"  # noqa: S608
        f" select n, {COPIED} from conversations_message, generate_series(%s::int, %s::int) n"
        " where conversation_id = %s and position = 1",
        [covered + 1, covered + more, identifier],
    )
    db.execute(
        "update conversations_conversation set last_position = last_position + %(more)s,"
        " message_count = message_count + %(more)s, covered_to = covered_to + %(more)s where id = %(id)s",
        {"more": more, "id": identifier},
    )
    db.execute(
        "update compactions_summary set to_position = to_position + %s where conversation_id = %s", [more, identifier]
    )
    db.execute("vacuum analyze conversations_message")


def timed(act: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def flat(bench: Bench) -> Figures:
    """Appending to and reading a conversation of 100,000 messages against one of 100, in turns, by one client."""
    with bench.web() as web, closing(Client(web.port, bench.key)) as client:
        long, short = conversation(client, bench, 100_000), conversation(client, bench, 100)
        read = in_turns(partial(read_one, client), (long, short), 300)
        appended = in_turns(partial(append_one, client), (long, short), 600)
    detail = {"long": 100_000, "short": 100, "live tail": LIVE, "measured": "medians, in turns"}
    return {
        "append_flat": Figure(ratio(*appended), "ratio", "<= 1.15", detail),
        "context_flat": Figure(ratio(*read), "ratio", "<= 1.15", detail),
    }


def read_one(client: Client, path: str, _number: int) -> bytes:
    return client.raw("GET", f"/v1/{path}/context")


def append_one(client: Client, path: str, number: int) -> bytes:
    return client.raw("POST", f"/v1/{path}/messages", append_body(number))


def in_turns(act: Callable[[str, int], Any], paths: tuple[str, str], count: int) -> tuple[list[float], list[float]]:
    """Seconds of `count` requests to each of two conversations, the order changing."""
    spent: dict[str, list[float]] = {path: [] for path in paths}
    for number in range(count):
        for path in paths if number % 2 else paths[::-1]:
            spent[path].append(timed(partial(act, path, number)))
    return spent[paths[0]], spent[paths[1]]


def cpu(bench: Bench) -> Figures:
    """CPU of the web process for an append and a context, each over that of the empty view, in turns."""
    with bench.web() as web, closing(Client(web.port, bench.key)) as client:
        path = conversation(client, bench, 100)
        target = conversation(client, bench, 100)
        acts: dict[str, Callable[[int], Any]] = {
            "empty": lambda _: client.raw("GET", EMPTY),
            "append": partial(append_one, client, target),
            "context": partial(read_one, client, path),
        }
        spent: dict[str, list[float]] = {name: [] for name in acts}
        for act in acts.values():
            _cpu_ms(web, act, 50)
        for _ in range(ROUNDS):
            for name, act in acts.items():
                spent[name].append(_cpu_ms(web, act, BATCH))
    detail = {f"{name}_ms": [rounded(value) for value in values] for name, values in spent.items()}
    return {
        "append_cpu": Figure(ratio(spent["append"], spent["empty"]), "ratio", "<= 3", detail),
        "context_cpu": Figure(ratio(spent["context"], spent["empty"]), "ratio", "<= 3", detail),
    }


def _cpu_ms(web: Web, act: Callable[[int], Any], count: int) -> float:
    """CPU milliseconds of the web process for each of `count` requests."""
    before = web.cpu_s()
    for number in range(count):
        act(number)
    return (web.cpu_s() - before) / count * 1000


def queries(bench: Bench) -> Figures:
    """Round trips of the two requests besides BEGIN, SET and COMMIT, counted in this process's own Django."""
    from django.db import connections
    from django.test import Client as Inside

    with bench.web() as web, closing(Client(web.port, bench.key)) as client:
        path = conversation(client, bench, 100_000)
    inside = Inside(SERVER_NAME="127.0.0.1", headers={"Authorization": f"Bearer {bench.key}"})
    seen: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if "set_config" not in str(sql):
            seen.append(str(sql))
        return execute(sql, params, many, context)

    def counted(act: Callable[[], Any]) -> int:
        act()  # once before: the key's last use is written once a minute
        seen.clear()
        with connections["default"].execute_wrapper(note):
            answer = act()
        if answer.status_code >= 300:
            raise RuntimeError(answer.content)
        return len(seen)

    body = json.loads(append_body(0))
    appended = counted(lambda: inside.post(f"/v1/{path}/messages", body, content_type="application/json"))
    read = counted(lambda: inside.get(f"/v1/{path}/context"))
    connections.close_all()
    return {
        "append_queries": Figure(appended, "round trips", "<= 6", {"messages": 100_000}),
        "context_queries": Figure(read, "round trips", "<= 4", {"messages": 100_000}),
    }


def floor(bench: Bench) -> Figures:
    """Appends a second over HTTP by eight clients, against the same rows written by bare psycopg."""
    with bench.web() as web, closing(Client(web.port, bench.key)) as client:
        paths = [client.create(context_window=WINDOW) for _ in range(CLIENTS)]
        clients = [Client(web.port, bench.key) for _ in range(CLIENTS)]
        ours = _per_second([partial(append_one, c, p, 0) for c, p in zip(clients, paths, strict=True)])
        writers = [_writer(bench, path.removeprefix("conversations/")) for path in paths]
        bare = _per_second(writers)
    detail = {"appends_per_s": rounded(ours), "bare_per_s": rounded(bare), "clients": CLIENTS}
    return {"append_vs_floor": Figure(rounded(ours / bare), "ratio", INFORMATION, detail)}


def _per_second(acts: list[Callable[[], Any]], seconds: float = 4.0) -> float:
    done = [0] * len(acts)
    until = time.perf_counter() + seconds

    def run(index: int) -> None:
        while time.perf_counter() < until:
            acts[index]()
            done[index] += 1

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / seconds


def _writer(bench: Bench, identifier: str) -> Callable[[], None]:
    """Writes what an append writes, with nothing else: the message, the conversation's row, the day's sums."""
    db = psycopg.connect(bench.stack.env["DATABASE_URL"])
    positions = iter(range(1_000_000, 2_000_000))
    columns = COPIED.replace("body", "%s::text", 1)
    insert = (
        f"insert into conversations_message (position, {COPIED}) select %s, {columns}"  # noqa: S608
        " from conversations_message where conversation_id = %s and position = 1"
    )

    def write() -> None:
        db.execute(insert, [next(positions), json.dumps(message(0)), identifier])
        db.execute(
            "update conversations_conversation set revision = revision + 1, updated_at = now() where id = %s",
            [identifier],
        )
        db.execute("update usage_day set messages = messages + 1 where conversation_id = %s", [identifier])
        db.commit()

    return write
