"""The same requests in a big database: 2 million messages in 20,000 conversations (or as many as --stored says)."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from statistics import median

from tests.bench.figures import Figure, Figures, ratio, rounded
from tests.bench.requests import COPIED, append_one, conversation, in_turns, read_one
from tests.bench.service import Bench, Client

SMALL, EACH = 10_000, 100


def database(bench: Bench) -> Figures:
    """Append and context in a database of 10,000 messages, then in the big one; the worse of the two ratios."""
    with bench.web() as web, closing(Client(web.port, bench.key)) as client:
        _fill(bench, conversation(client, bench, 100), SMALL // EACH)
        before = _measured(client, bench)
        _fill(bench, conversation(client, bench, 100), (bench.stored - SMALL) // EACH)
        after = _measured(client, bench)
    ratios = {name: ratio(after[name], before[name]) for name in before}
    detail = {
        "messages": bench.stored,
        **ratios,
        **{f"{name}_ms": rounded(median(after[name]) * 1000) for name in after},
    }
    return {"big_database": Figure(max(ratios.values()), "ratio", "<= 1.3", detail)}


def _measured(client: Client, bench: Bench) -> dict[str, list[float]]:
    paths = conversation(client, bench, 100), conversation(client, bench, 100)
    read = in_turns(partial(read_one, client), paths, 200)
    appended = in_turns(partial(append_one, client), paths, 200)
    return {"append": [*appended[0], *appended[1]], "context": [*read[0], *read[1]]}


def _fill(bench: Bench, path: str, conversations: int) -> None:
    """Copy a conversation with its messages so many times."""
    identifier = path.removeprefix("conversations/")
    with bench.owner() as db:
        columns = [
            str(row[0])
            for row in db.execute(
                "select column_name from information_schema.columns where table_name = 'conversations_conversation'"
                " and column_name not in ('id', 'external_id')"
            )
        ]
        names = ", ".join(columns)
        db.execute("create temp table copied (id uuid)")
        db.execute(
            "with made as (insert into conversations_conversation (id, " + names + ")"  # noqa: S608
            f" select gen_random_uuid(), {names} from conversations_conversation, generate_series(1, %s)"
            " where id = %s returning id) insert into copied select id from made",
            [conversations, identifier],
        )
        values = COPIED.replace("conversation_id", "copied.id", 1)
        db.execute(
            f"insert into conversations_message (position, {COPIED})"  # noqa: S608
            f" select position, {values} from copied, conversations_message where conversation_id = %s",
            [identifier],
        )
        db.execute("drop table copied")
        db.execute("vacuum analyze conversations_message")
        db.execute("vacuum analyze conversations_conversation")
