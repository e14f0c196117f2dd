"""The words this package knows, in the languages most conversations are in. Everything else in it is language-blind.

A missing word costs quality, never correctness: a sentence weighs a little less, a heading counts as "other".
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Beginnings of the words by which a heading's meaning is told, checked in this order.
HEADINGS = {
    "files": _words("""
        file datei fichier archivo arquivo ficheiro bestand plik dosya berkas tệp tập artifact artefact файл 文件 檔案
        ファイル 파일 ملف फ़ाइल फाइल ไฟล์"""),
    "steps": _words("""
        next step todo to-do plan remaining pending progress nächst schritt offen prochain étape próxim siguiente paso
        prossim passi volgende następn krok nästa adım bước langkah следующ шаг 下一步 步骤 步驟 待办 待辦 次の 今後
        다음 단계 الخطوات التالي अगले ขั้นตอน"""),
    "errors": _words("""
        error problem failure issue fehler erreur errore erro błąd hata ошибк 错误 錯誤 エラー 오류 خطأ त्रुटि
        ข้อผิดพลาด"""),
    "goal": _words("""
        goal objective intent purpose request task aim ziel aufgabe auftrag anliegen objectif demande objetivo meta
        obiettivo richiest doel cel mål hedef amaç mục tujuan цел задач запрос 目标 目標 目的 请求 請求 要求 需求
        リクエスト 목표 요청 هدف الهدف लक्ष्य เป้าหมาย"""),
}

# Time words that mean nothing without the day they were said on, and those that do.
RELATIVE_TIME = _words("""
    today tomorrow yesterday tonight ago week weekend month heute morgen gestern vorhin woche wochenende monat aujourd
    hier demain semaine mois hoy ayer mañana semana mes oggi ieri domani settimana mese hoje ontem amanhã mês сегодня
    завтра вчера неделю неделе месяц 今天 明天 昨天 后天 上周 下周 周末 今日 明日 昨日 来週 先週 오늘 내일 어제
    اليوم غدا أمس""")
TIME = RELATIVE_TIME | _words("""
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december day days weeks months year years deadline montag dienstag mittwoch donnerstag freitag
    samstag sonntag tag jahr uhr lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves
    viernes sábado domingo año lunedì martedì mercoledì giovedì venerdì sabato domenica anno ano год года 星期 曜日""")
# Who speaks of themselves says what they have, want and did.
FIRST_PERSON = _words("""
    i my me we our us mine ich wir mein meine unser je nous mon ma notre yo mi nosotros nuestro io noi mio nostro eu
    nós meu я мы мой мне 我们 我的 我想 私は 私の 僕は 나는 저는 أنا""")
SECOND_PERSON = _words("""
    you your yours du dein deine ihr euer sie ihre tu ton ta votre vous tú tu usted você seu sua
    lei ты вы твой ваш 你 您 你的 あなた""")
# What began, changed, is liked best, or is called by a name.
NEWS = _words("""
    new first last since started joined recently favorite favourite named called because bought moved born married neu
    neue erste letzte seit begonnen lieblings nouveau nouvelle premier dernier depuis nuevo nueva primero último desde
    nuovo nuova primo ultimo новый первый недавно 最近 第一 开始 最喜欢""")
# What must be, must not be, was settled, or is to be remembered.
SETTLED = _words("""
    must never always cannot instead decided decision prefer require required requires constraint agreed forbidden
    allowed remember forget note important muss niemals wichtig merken immer statt entschieden doit jamais toujours
    décidé debe nunca siempre decidido deve sempre нельзя нужно всегда
    никогда решили 必须 不要 不能 决定 需要 必ず 禁止 決定""")
# Greetings and thanks; and what else is said to be kind. With plain words only they say nothing to be remembered.
GREETING = _words("""
    hi hey hello hiya bye goodbye thanks thank thx welcome congrats congratulations cheers hallo danke tschüss bonjour
    salut merci hola gracias ciao grazie olá obrigado obrigada привет спасибо 你好 您好 谢谢 再见 こん んに にち ちは
    あり りが がと とう 안녕 감사 شكرا مرحبا สว วั ัส สด ดี คร รั ับ ค่
    ่ะ ีค ณค ขอ อบ บค คุ ุณ""")
PLEASANT = GREETING | _words("""
    please sorry wow whoa yay woohoo haha hahaha lol yeah yep yup oh ah aw aww hmm okay ok sure cool nice great awesome
    amazing wonderful fantastic lovely beautiful sweet super excellent perfect good best glad happy pleased excited
    exciting proud impressive inspiring incredible absolutely definitely totally exactly agree agreed luck job fun enjoy
    care appreciate kind kindness pleasure hope wish love means mean sounds sound looks look feel feels feeling support
    supportive encouragement hug hugs bitte gern toll пожалуйста""")
# What only says that something was heard, or done, of which nothing is said.
ACKNOWLEDGED = _words("""
    done understood noted finished ready completed right alright yes no sure okay ok roger certainly acknowledged fixed
    fertig erledigt verstanden alles klar ja nein gut fait compris entendu terminé oui non hecho entendido listo
    claro sí fatto capito certo sì feito entendi pronto sim não gedaan begrepen klaar gotowe rozumiem готово понятно
    понял поняла сделано хорошо да нет 好的 明白 完成 收到 了解 はい 承知 알겠 완료""")
# The words of a language that name nothing.
PLAIN = _words("""
    a an the this that these those i you he she it we they me him her us them my your his its our their mine yours
    m ve re ll s t d
    am is are was were be been being have has had having will would can could should may might just so too very really
    much more lot lots and or of to in on at for with by from as about up out off over down back again here there then
    than now always ever all any some every everything something anything one ones thing things way kind bit what who
    which how when where why that's'll like know think see say said hear get got give make makes made going time guys
    keep keeping stay let such even still also both each well because""")
QUESTION_ENDS = ("?", "？", "؟", "か。", "吗。")
ERROR = re.compile(
    r"(?i:\b(?:error|exception|fatal|failed|failure|traceback|panic|denied|not found|fehler|erreur)\b)"
    r"|[A-Z]\w{2,60}(?:Error|Exception)\b|错误|エラー"
)

# Capitalised at a sentence's beginning without being part of a name.
NO_NAME = _words("""
    a an the this that these those i we you he she it they my our your his her its their and but or so if when what
    who where why how yes no ok okay hi hey hello thanks thank please can could would will do did is are was were not
    now then here there also just in on at to for from with error warning note""")

# A bare name counts as a file only with an ending that is one.
FILE_ENDINGS = _words("""
    bash bat bib c cc cfg cjs class cmake conf cpp cs css csv cu dart db diff doc docx dockerfile env erl ex exs gif go
    gradle graphql h hpp hs htm html ini ipynb jar java jpeg jpg js json jsonl jsx kt less lock log lua m md mjs mk ml
    mod nix patch pdf php pl png po ppt pptx properties proto ps1 py pyi pyx r rb rs rst sass scala scss sh so sql
    sqlite sum svg swift tar tex tf toml ts tsv tsx ttf txt vue wasm webp xls xlsx xml yaml yml zip zsh""")

# Answers and sections that say nothing.
BLANK = frozenset(("", "no summary", "لا شيء")) | _words("""
    none n/a na nothing null nil empty todo undefined keine aucun ninguno нет 无 無 なし 없음""")
# How refusals begin. Bounded gaps only: these run on any text.
REFUSAL = re.compile(
    r"""(?:(?:i(?:'m|\ am)\ (?:very\ |so\ |truly\ )?)?sorry|i\ apologi[sz]e|my\ apologies|i\ regret|as\ an\ ai)\b
    |(?:unfortunately,?\ |however,?\ )?
     i(?:'m|\ am)?\ ?(?:not\ able|unable|can(?:'t|not|\ not)|could(?:\ not|n't)|won't|will\ not|must\ decline
     |do(?:\ not|n't)\ have)\b
     .{0,40}\b(?:help|assist|provide|summari[sz]e|comply|fulfil|continue|complete|access|process|generate|engage|create
     |discuss|answer|that|this|enough|any)
    |(?:there\ (?:is|was)\ no|no)\ (?:conversation|transcript|text|content|messages?)\b
     .{0,40}(?:provided|given|to\ summari[sz]e|found)
    |(?:please|(?:could|can)\ you(?:\ please)?)\ (?:provide|share|paste|send)\b
     .{0,40}\b(?:conversation|transcript|text|content|messages?)
    |es\ tut\ mir\ leid|tut\ mir\ leid|entschuldigung
    |(?:leider\ )?(?:ich\ )?kann\ (?:ich\ )?.{0,40}nicht.{0,40}(?:helfen|zusammenfass|bereitstell|beantwort|erfüllen)
    |(?:je\ suis\ )?désolée?\b|je\ ne\ (?:peux|suis)\ pas.{0,40}(?:aider|fournir|résumer|répondre|mesure)
    |lo\ siento\b|no\ puedo.{0,20}(?:ayud|proporcion|resum|cumplir|respond)
    |(?:sinto\ muito|desculpe)\b|não\ posso.{0,20}(?:ajud|fornec|resum|respond)
    |mi\ dispiace\b|non\ posso.{0,20}(?:aiut|forni|riassum|rispond)
    |het\ spijt\ me|przykro\ mi|przepraszam|üzgünüm
    |(?:извините|простите)\b|(?:к\ сожалению,?\ )?я\ не\ могу.{0,30}(?:помо|предостав|выполн|обобщ|ответ)
    |很?抱歉|对不起|對不起|我(?:无法|無法|不能).{0,8}(?:协助|協助|帮|幫|提供|总结|總結|回答|完成|处理)
    |申し訳|(?:すみません|ごめんなさい)[。、]|죄송|미안|عذر|آسف|أعتذر|لا\ (?:أستطيع|يمكنني)
    |क्षमा\ करें|मुझे\ खेद|ขออภัย|ขอโทษ""",
    re.IGNORECASE | re.VERBOSE,
)
# How what a broken server or proxy says begins.
SERVER_ERROR = re.compile(
    r"""<!doctype\ html|<html|\{\s{0,8}"(?:error|detail|message)"|traceback\ \(most\ recent\ call\ last\)
    |[\w.]{0,60}(?:error|exception)\s{0,3}[:(]|(?:http(?:/\d(?:\.\d)?)?\ |(?:api\ )?error\ (?:code:?\ )?)[45]\d\d\b
    |[45]\d\d\ (?:internal|bad|service|gateway|too\ many|not\ found|unauthori|forbidden)
    |(?:an\ )?(?:internal\ server\ error|bad\ gateway|service\ unavailable|gateway\ time-?out|too\ many\ requests
     |rate\ limit|request\ timed\ out|connection\ (?:error|refused|reset)|(?:unexpected\ )?error\ occurred
     |context\ length\ exceeded)""",
    re.IGNORECASE | re.VERBOSE,
)
