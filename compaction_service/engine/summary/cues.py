"""The words by which a note is told without a model, in the languages most conversations are in (see `lexicon`).

Only what says outright what it is: a missing cue loses a note, a loose one fills the ledger.
"""

from __future__ import annotations

import re

from .notes import Kind


def _cue(spaced: str, unspaced: str) -> re.Pattern[str]:
    """Phrases of scripts with blanks between words as whole words, others anywhere. No repetition: linear."""
    whole, anywhere = (
        [re.escape(" ".join(phrase.split())) for phrase in phrases.split(",") if phrase.strip()]
        for phrases in (spaced, unspaced)
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(whole)})(?!\w)|{'|'.join(anywhere)}")


# In the order they are tried, on lower-case sentences: the first that is found tells the kind. Nouns alone tell
# nothing: a list of changes is full of "correction", a story of "decision".
CUES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "correction",
        _cue(
            """correction:, we no longer, i no longer, no longer use, no longer need, no longer want, not anymore,
            i was wrong, i misspoke, i meant, scratch that, changed my mind, changed our mind, changed our minds,
            that was wrong, korrektur:, nicht mehr verwenden, nicht mehr nutzen, ich meinte, doch nicht,
            ich habe mich geirrt, je me suis trompé, je me suis trompée, je voulais dire, nous n'utilisons plus,
            corrección:, me equivoqué, quise decir, ya no usamos, ya no queremos, ya no quiero, correzione:,
            mi sono sbagliato, mi sono sbagliata, volevo dire, non usiamo più, correção:, me enganei, quis dizer,
            não usamos mais, исправление:, я ошибся, я ошиблась, больше не используем, больше не нужно, я имел в виду,
            poprawka:, pomyliłem się, pomyliłam się, już nie używamy""",
            """更正, 我说错了, 不再使用, 不再需要, 改主意, 訂正,
            間違えました, もう使いません, 정정, 잘못 말했, تصحيح, अब नहीं""",
        ),
    ),
    (
        "open_question",
        _cue(
            """open question, open questions, tbd, to be decided, to be determined, not decided yet,
            not yet decided, still unclear, not sure whether, not sure if, unresolved, offene frage, offene fragen,
            noch offen, noch unklar, noch nicht entschieden, question ouverte, reste à décider, pas encore décidé,
            reste à déterminer, pregunta abierta, por decidir, por definir, aún no está claro, questione aperta,
            da decidere, ancora da chiarire, questão em aberto, ainda não está claro, открытый вопрос, ещё не решили,
            ещё не решено, пока неясно, do ustalenia, nie wiadomo jeszcze""",
            """待定, 尚未决定, 还没决定, 还不清楚, 未解决, 未定, 未決, まだ決まっていない, 미정, 아직 정하지, لم يتقرر,
            तय नहीं""",
        ),
    ),
    (
        "decision",
        _cue(
            """we decided, i decided, i've decided, we've decided, decided to, decided on, our decision, my decision,
            decision:, final decision, the decision is, we agreed, agreed to, agreed on, we chose, we will use,
            we'll use, let's go with, we settled on, wir haben entschieden, ich habe entschieden, haben uns entschieden,
            unsere entscheidung, wir nehmen, haben beschlossen, avons décidé, ai décidé, a été décidé, notre décision,
            on part sur, decidimos, hemos decidido, he decidido, se decidió, nuestra decisión, acordamos,
            abbiamo deciso, ho deciso, la nostra decisione, ficou decidido, nossa decisão, combinamos que, мы решили,
            я решил, я решила, наше решение, договорились, мы остановились на, zdecydowaliśmy, nasza decyzja,
            ustaliliśmy, we hebben besloten, ons besluit, karar verdik, kararlaştırdık""",
            """决定, 決定し, 我们选择, 决议, 決めました, に決めた, することにした,
            することにしました, 결정했, 하기로 했, قررنا,
            निर्णय लिया, फैसला किया, ตัดสินใจ""",
        ),
    ),
    (
        "preference",
        _cue(
            """i prefer, we prefer, i'd rather, i would rather, please always, please never, always use, never use,
            i don't like, i do not like, my preference, ich bevorzuge, wir bevorzugen, mir ist lieber, bitte immer,
            bitte nie, bitte niemals, je préfère, nous préférons, on préfère, utilise toujours, n'utilise jamais,
            prefiero, preferimos, usa siempre, nunca uses, preferisco, preferiamo, usa sempre, non usare mai,
            prefiro, use sempre, nunca use, предпочитаю, мне больше нравится, всегда используй, никогда не используй,
            wolę, zawsze używaj, nigdy nie używaj, tercih ederim""",
            """我喜欢, 我更喜欢, 我偏好, 请总是, 请始终, 请不要,
            の方がいい, が好きです, 必ず使, 선호, أفضل أن, पसंद है, ชอบ""",
        ),
    ),
    (
        "commitment",
        _cue(
            """i promise, we promise, promised to, we commit to, by tomorrow, by monday, by tuesday, by wednesday,
            by thursday, by friday, the deadline is, our deadline, is due on, is due by, due by, versprochen,
            ich verspreche, bis morgen, bis montag, bis freitag, die frist, je promets, nous promettons, l'échéance,
            avant vendredi, prometo, fecha límite, para el viernes, prometto, la scadenza, entro venerdì, o prazo,
            até sexta, обещаю, обещали, крайний срок, до пятницы, obiecuję, termin mija""",
            """我保证, 我承诺, 截止日期, 約束します, 締め切りは, 期限は,
            약속합니다, 약속할게, 마감은, أعدك, वादा करता, สัญญาว่า""",
        ),
    ),
    (
        "fact",
        _cue(
            """my name is, i am called, i live in, i work at, i work for, our company, the budget is, our budget,
            for the record, ich heiße, mein name ist, ich wohne in, ich arbeite bei, je m'appelle, j'habite,
            je travaille chez, me llamo, vivo en, trabajo en, mi chiamo, abito a, lavoro per, meu nome é, moro em,
            trabalho na, меня зовут, я живу в, я работаю в, nazywam się, mieszkam w""",
            "我的名字, 我住在, 私の名前, に住んでいます, 제 이름은, اسمي, मेरा नाम, ผมชื่อ, ฉันชื่อ",
        ),
    ),
)
