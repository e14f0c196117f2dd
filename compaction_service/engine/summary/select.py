"""Which sentences to keep when there is room for few: those that add most that is new and precise per token.

Greedy coverage: a sentence is worth the rarity (inverse sentence frequency) of its words, each worth less every time
it is already kept, times how informative the sentence looks, divided by its cost. No centrality: the sentences most
like all others are small talk.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REPEAT = 0.4  # what a word is still worth each time it is kept again
_EVALUATIONS = 30  # per sentence on average; after that stale worths are taken, which keeps hostile input linear

# Words by which a sentence states more than others, and how much that adds to its worth of 1.
_CUES = (
    # When: what is dated is a fact. First the words that need the day they were said on.
    "today tomorrow yesterday tonight ago week weekend month heute morgen gestern vorhin woche wochenende monat aujourd hier demain semaine mois hoy ayer mañana "
    "semana mes oggi ieri domani settimana mese hoje ontem amanhã mês сегодня завтра вчера неделю неделе месяц 今天 明天 昨天 后天 上周 下周 周末 今日 明日 昨日 来週 先週 "
    "오늘 내일 어제 اليوم غدا أمس",
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december day days weeks "
    "months year years deadline montag dienstag mittwoch donnerstag freitag samstag sonntag tag jahr uhr lundi mardi mercredi jeudi vendredi samedi dimanche "
    "lunes martes miércoles jueves viernes sábado domingo año lunedì martedì mercoledì giovedì venerdì sabato domenica anno ano год года 星期 曜日",
    # Who speaks of themselves says what they have, want and did.
    "i my me we our us mine ich wir mein meine unser je nous mon ma notre yo mi nosotros nuestro io noi mio nostro eu nós meu я мы мой мне 我们 我的 我想 私は 私の 僕は 나는 저는 أنا",
    # What must, must not, or was settled.
    "must never always cannot instead decided decision prefer require required requires constraint agreed forbidden allowed "
    "muss niemals immer statt entschieden doit jamais toujours décidé debe nunca siempre decidido deve sempre "
    "нельзя нужно всегда никогда решили 必须 不要 不能 决定 需要 必ず 禁止 決定",
)  # fmt: skip
_RELATIVE, _ABSOLUTE, _SELF, _SETTLED = (frozenset(kind.split()) for kind in _CUES)
_KINDS = ((_RELATIVE | _ABSOLUTE, 1.5), (_SELF, 0.5), (_SETTLED, 0.5))
_QUESTION_ENDS = ("?", "？", "؟", "か。", "吗。")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be kept: its words (`text.words`), its cost in the budget's unit, and how much it should
    count beside others."""

    words: Sequence[str]
    cost: int
    weight: float = 1.0


def informativeness(text: str, found: Sequence[str]) -> float:
    """How much a sentence, of these words, looks like it states something: numbers, names, time, who, what must be.
    Above 0; 1 for a plain one."""
    tokens = text.split()
    worth = 1.0
    worth += any(map(str.isdigit, text))
    worth += 0.5 * min(3, sum(t[0].isupper() and t[1:2].islower() for t in tokens[1:]))
    worth += sum(adds for kind, adds in _KINDS if not kind.isdisjoint(found))
    return worth / 2 if text.endswith(_QUESTION_ENDS) else worth


def is_relative(found: Iterable[str]) -> bool:
    """Whether words speak of time so that they mean nothing without the day they were said on."""
    return not _RELATIVE.isdisjoint(found)


def select(candidates: Sequence[Candidate], budget: int, seen: Iterable[str] = ()) -> list[int]:
    """Indices of the candidates to keep, ascending; their costs are within `budget`. `seen`: words kept elsewhere.

    Deterministic; about linear in the text."""
    found = [tuple(dict.fromkeys(candidate.words)) for candidate in candidates]
    frequency = Counter(word for one in found for word in one)
    total = len(candidates) + 1
    worth = {word: math.log(total / times) for word, times in frequency.items()}
    for word in seen:
        if word in worth:
            worth[word] *= REPEAT

    def gain(number: int) -> float:
        candidate = candidates[number]
        return -sum(worth[word] for word in found[number]) * candidate.weight / max(1, candidate.cost)

    heap = [(gain(number), number) for number in range(len(candidates))]
    heapq.heapify(heap)
    kept = []
    evaluations = _EVALUATIONS * len(candidates)
    while heap and budget > 0:
        stale, number = heapq.heappop(heap)
        if candidates[number].cost > budget:
            continue
        if evaluations > 0:
            evaluations -= 1
            fresh = gain(number)
            if heap and fresh > heap[0][0] and fresh > stale:
                heapq.heappush(heap, (fresh, number))
                continue
        kept.append(number)
        budget -= candidates[number].cost
        for word in found[number]:
            worth[word] *= REPEAT
    return sorted(kept)
