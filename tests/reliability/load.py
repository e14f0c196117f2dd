"""Clients under load, and what the service owes them: a ledger of what was acknowledged."""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.reliability.client import Client, Unexpected

MARK = re.compile(r"\[m:([0-9a-f]{32})\]")
WORDS = (
    "The build of module {n} failed in step {n}7 since src/part_{n}.py read the wrong table; the user wants it mended. "
)
PATIENCE_S = 1200.0  # a client that is never answered is a fault; on a busy machine web starts for minutes


def talk(turns: int, *, words: int = 4) -> list[Any]:
    """Plain turns, about 50 tokens times `words` each."""
    return [message for number in range(turns) for message in turn(uuid.uuid4().hex, number, words=words)]


def turn(mark: str, number: int = 0, *, words: int = 4) -> list[Any]:
    """A request and its answer. `mark` is told once, in the request."""
    text = "".join(WORDS.replace("{n}", str(number * 10 + k)) for k in range(words))
    return [{"role": "user", "content": f"[m:{mark}] {text}"}, {"role": "assistant", "content": text}]


@dataclass
class Owed:
    """An append that was acknowledged."""

    position: int  # of the request; the answer follows it
    digest: str
    state: str = "stored"  # or: removed, maybe (a removal nobody confirmed)


@dataclass
class Ledger:
    """What one conversation must hold. Writers share it."""

    path: str
    owed: dict[str, Owed] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, mark: str, position: int, message: Any) -> None:
        with self.lock:
            self.owed[mark] = Owed(position, _digest(message))

    def some(self, chooser: random.Random) -> str | None:
        """A message that is stored for certain."""
        with self.lock:
            stored = [mark for mark, one in self.owed.items() if one.state == "stored"]
        return chooser.choice(stored) if stored else None

    def removing(self, marks: Iterable[str], state: str) -> None:
        with self.lock:
            for mark in marks:
                self.owed[mark].state = state

    def problems(self, stored: Iterable[Any]) -> dict[str, list[str]]:
        """What the stored messages lack or have too often: lost, doubled, changed, risen (removed, yet there)."""
        found: dict[str, list[str]] = {"lost": [], "doubled": [], "changed": [], "risen": []}
        seen: Counter[str] = Counter()
        for entry in stored:
            for mark in MARK.findall(json.dumps(entry["message"])):
                seen[mark] += 1
                owed = self.owed.get(mark)
                if owed and (owed.position, owed.digest) != (entry["position"], _digest(entry["message"])):
                    found["changed"].append(f"{self.path} {entry['position']}")
        for mark, owed in self.owed.items():
            if owed.state == "stored" and not seen[mark]:
                found["lost"].append(f"{self.path} {owed.position}")
            if owed.state == "removed" and seen[mark]:
                found["risen"].append(f"{self.path} {owed.position}")
        found["doubled"] = [f"{self.path} {mark}" for mark, times in seen.items() if times > 1]
        found["changed"] += [f"{self.path} {mark}: never sent" for mark in seen if mark not in self.sent]
        return found


def _digest(message: Any) -> str:
    return hashlib.sha256(json.dumps(message, sort_keys=True).encode()).hexdigest()


@dataclass
class Writer(threading.Thread):
    """One client thread: appends to conversations it shares with others, and edits one of its own."""

    client: Client
    shared: list[Ledger]
    own: Ledger
    seed: int
    stop: threading.Event
    pause: tuple[float, float] = (0.2, 1.2)
    did: Counter[str] = field(default_factory=Counter)
    forks: list[str] = field(default_factory=list)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        super().__init__(name=f"writer-{self.seed}", daemon=True)
        self.chooser = random.Random(self.seed)  # noqa: S311 -- repeatable

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        acts = {"append": 84, "read": 6, "compact": 3, "pin": 3, "erase": 1.5, "rewind": 1, "fork": 0.5, "revert": 1}
        try:
            while not self.stop.is_set():
                [act] = self.chooser.choices(list(acts), list(acts.values()))
                getattr(self, act)()
                self.did[act] += 1
                self.stop.wait(self.chooser.uniform(*self.pause))
        except BaseException as failure:  # noqa: BLE001 -- told by the test's thread
            self.failure = failure

    def append(self) -> None:
        ledger = self.chooser.choice([*self.shared, self.own])
        mark = uuid.UUID(int=self.chooser.getrandbits(128)).hex
        messages = turn(mark, self.chooser.randrange(1000))
        with ledger.lock:
            ledger.sent.add(mark)
        answer = self.client.send("POST", f"{ledger.path}/messages", {"messages": messages}, key=mark).json()
        ledger.acknowledged(mark, answer["messages"][0]["position"], messages[0])
        if self.chooser.random() < 0.2:  # a client that did not believe it
            again = self.client.send("POST", f"{ledger.path}/messages", {"messages": messages}, key=mark)
            if again.json()["messages"] != answer["messages"]:
                raise Unexpected("the repeat was answered otherwise")

    def read(self) -> None:
        ledger = self.chooser.choice([*self.shared, self.own])
        context = self.client.send("GET", f"{ledger.path}/context").json()
        if not context["fits"]:
            raise Unexpected(f"a context that does not fit: {context['meter']}")

    def compact(self) -> None:
        path = self.chooser.choice([*self.shared, self.own]).path
        self.client.send("POST", f"{path}/compactions", {"focus": "the tables"})

    def pin(self) -> None:
        """On the writer's own conversation, and let go again: pins that stay would fill the window."""
        mark = self.own.some(self.chooser)
        if mark is not None:
            position = self.own.owed[mark].position
            for pinned in (True, False):
                self._edit("PATCH", f"{self.own.path}/messages/{position}", {"pinned": pinned})

    def erase(self) -> None:
        ledger = self.chooser.choice([*self.shared, self.own])
        mark = ledger.some(self.chooser)
        if mark is not None:
            ledger.removing([mark], "maybe")
            self._edit("DELETE", f"{ledger.path}/messages/{ledger.owed[mark].position}")
            ledger.removing([mark], "removed")

    def rewind(self) -> None:
        """Only of the writer's own conversation: of a shared one nobody could say what a rewind has met."""
        mark = self.own.some(self.chooser)
        if mark is not None:
            position = max(1, self.own.owed[mark].position)
            gone = [one for one, owed in self.own.owed.items() if owed.position >= position]
            self.own.removing(gone, "maybe")
            self._edit("DELETE", f"{self.own.path}/messages?from={position}")
            self.own.removing(gone, "removed")

    def fork(self) -> None:
        mark = self.own.some(self.chooser)
        if mark is not None:
            position = self.own.owed[mark].position
            made = self.client.send("POST", f"{self.own.path}/fork", {"position": position})
            self.forks.append(made.json()["id"])

    def revert(self) -> None:
        """The newest of its own that applied; refused while one is live."""
        for entry in self.client.get("/compactions", conversation=self.own.path.rpartition("/")[2], outcome="applied")[
            "data"
        ]:
            if entry.get("reverted_at") is None:
                self.client.send("POST", f"/compactions/{entry['id']}/revert", {}, also=(409,))
                return

    def _edit(self, method: str, path: str, body: Any = None) -> None:
        """Once more where the answer was lost: what is gone already is no failure."""
        self.client.send(method, path, body, also=(404, 409, 410))


def finish(writers: list[Writer], stop: threading.Event) -> list[str]:
    """Let each end what it is at; what made any of them give up."""
    stop.set()
    deadline = time.monotonic() + PATIENCE_S
    for writer in writers:
        writer.join(max(0.0, deadline - time.monotonic()))
    alive = [f"{writer.name} never ended" for writer in writers if writer.is_alive()]
    return alive + [f"{one.name}: {one.failure}" for one in writers if one.failure is not None]
