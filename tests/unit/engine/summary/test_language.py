# ruff: noqa: E501 -- paragraphs in scripts of several widths
from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from compaction_service.engine.summary import extractive
from compaction_service.engine.summary.language import Expected, expected, is_other, named, sample, told
from compaction_service.engine.summary.languages import LANGUAGES
from compaction_service.engine.summary.span import SpanMessage

from .build import SECTIONS, Piece, by_chars, dialogue, said

# One text in many languages: a user wants a page mended, and says what must not change.
TEXTS = {
    "en": "The user wants the login page to remember the last tenant that was chosen. The cookie must not be changed, "
    "because the mobile client reads it. It was decided to store the name in the session, and two tests are failing.",
    "de": "Der Nutzer möchte, dass die Anmeldeseite sich den zuletzt gewählten Mandanten merkt. Das Cookie darf nicht "
    "geändert werden, weil die mobile App es liest. Es wurde beschlossen, den Namen in der Sitzung zu speichern.",
    "fr": "L'utilisateur veut que la page de connexion se souvienne du dernier client choisi. Le cookie ne doit pas être "
    "modifié, car l'application mobile le lit. Il a été décidé de garder le nom dans la session, et deux tests échouent.",
    "es": "El usuario quiere que la página de inicio recuerde el último cliente que se eligió. La cookie no se puede "
    "cambiar porque la aplicación móvil la lee. Se decidió guardar el nombre en la sesión, y dos pruebas fallan.",
    "it": "L'utente vuole che la pagina di accesso ricordi l'ultimo cliente che è stato scelto. Il cookie non deve essere "
    "cambiato perché l'applicazione mobile lo legge. È stato deciso di salvare il nome nella sessione.",
    "pt": "O usuário quer que a página de login se lembre do último cliente que foi escolhido. O cookie não pode ser "
    "alterado porque o aplicativo móvel também o lê. Foi decidido guardar o nome na sessão, e dois testes falham.",
    "nl": "De gebruiker wil dat de inlogpagina de laatst gekozen klant onthoudt. De cookie mag niet worden veranderd, "
    "omdat de mobiele app deze leest. Er is besloten om de naam in de sessie op te slaan, en twee tests falen nog.",
    "pl": "Użytkownik chce, aby strona logowania pamiętała ostatnio wybranego klienta. Nie można zmienić ciasteczka, bo "
    "czyta je aplikacja mobilna. Zdecydowano, że nazwa jest zapisana w sesji, a dwa testy się nie udają i to jest źle.",
    "tr": "Kullanıcı, giriş sayfasının en son seçilen müşteriyi hatırlamasını istiyor. Çerez değiştirilemez çünkü mobil "
    "uygulama da onu okuyor. İsim için bir oturum kaydı olarak saklama kararı verildi ve bu iki test ile ne oldu belli değil.",
    "ru": "Пользователь хочет, чтобы страница входа помнила последнего выбранного клиента. Куки нельзя менять, так как "
    "их читает мобильное приложение. Было решено хранить имя в сессии, и после этого не проходят ещё два теста.",
    "uk": "Користувач хоче, щоб сторінка входу пам'ятала останнього вибраного клієнта. Кукі не можна змінювати, бо їх "
    "читає мобільний застосунок. Було вирішено зберігати ім'я в сесії, і після цього ще не проходять два тести.",
    "ar": "يريد المستخدم أن تتذكر صفحة تسجيل الدخول آخر عميل تم اختياره. لا يمكن تغيير ملف تعريف الارتباط لأن التطبيق يقرأه. "
    "تم اتخاذ قرار حفظ الاسم في الجلسة، كما أن هذا الاختبار لم ينجح بعد في كل مرة من هذه المرات.",
    "hi": "उपयोगकर्ता चाहता है कि लॉगिन पेज पिछले चुने गए ग्राहक को याद रखे। कुकी को बदला नहीं जा सकता क्योंकि मोबाइल ऐप इसे पढ़ता है। "
    "यह तय किया गया कि नाम को सत्र में रखा जाए और दो परीक्षण अभी भी सफल नहीं हैं।",
    "zh": "用户希望登录页面记住上次选择的租户。不能更改 cookie，因为移动客户端要读取它。已决定把名称保存在会话中，还有两个测试没有通过，需要明天再看一次。",
    "ja": "ユーザーは、ログインページが最後に選んだテナントを覚えていることを望んでいます。モバイルアプリが読むので、クッキーは変更できません。名前をセッションに保存することにしました。",
    "ko": "사용자는 로그인 페이지가 마지막으로 선택한 고객을 기억하기를 원합니다. 모바일 앱이 읽기 때문에 쿠키를 바꿀 수 없습니다. 이름을 세션에 저장하기로 했습니다.",
}
TERSE = "- [x] `src/auth.py` read\n- [ ] POST /v1/login 500 -> 204\n- tests/test_login.py::test_cookie FAILED (E11)"


def talk(*codes: str) -> Sequence[SpanMessage]:
    """User and assistant in turns, each in its language."""
    return dialogue(*(TEXTS[code] for code in codes))


def wanted(*codes: str) -> Expected:
    found = expected(None, talk(*codes))
    assert found
    return found


@pytest.mark.parametrize("code", TEXTS)
def test_told__a_paragraph__its_language(code: str) -> None:
    found = told(sample([TEXTS[code]]))
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(
    "text", ["", "ok", TERSE, "x = 1\n" * 50, "lorem ipsum dolor sit amet " * 20, "12 34 56 " * 40]
)
def test_told__nothing_to_tell_it_by__none(text: str) -> None:
    assert told(sample([text])) is None


@pytest.mark.parametrize("spoken", TEXTS)
@pytest.mark.parametrize("answered", TEXTS)
def test_is_other__answer_in_each_language__only_the_conversations_own_is_taken(spoken: str, answered: str) -> None:
    answer = f"## Overall Goal\n{TEXTS[answered]}\n\n## Next Steps\n- [ ] {TEXTS[answered]}\n\n## Active Files\n"
    assert is_other(answer, wanted(spoken, spoken)) == (spoken != answered)


def test_is_other__terse_answer__no_language_is_told_and_none_refused() -> None:
    assert not any(is_other(TERSE, wanted(code, code)) for code in TEXTS)


def test_is_other__answer_that_quotes_another_language__taken() -> None:
    answer = f'{TEXTS["de"]} Die Meldung war: "{TEXTS["en"]}" Siehe `the file that is in the way of all`.'
    assert not is_other(answer, wanted("de", "de"))


def test_expected__two_languages_by_turns__is_not_sure() -> None:
    assert expected(None, talk("de", "en", "de", "en")) is None


def test_is_other__few_words_of_the_user_in_the_answers_language__taken() -> None:
    """Who asks in English and gets German may want English."""
    ask = "Can you tell me what the error is about? It is the one that we have seen before."
    heard = expected(None, dialogue(ask, *[TEXTS["de"]] * 9))
    assert heard
    assert heard.language.code == "de"
    assert not is_other(TEXTS["en"], heard)
    assert is_other(TEXTS["es"], heard)


def test_expected__what_tools_print__does_not_count() -> None:
    log = said(3, "tool", Piece("result", TEXTS["en"] * 50))
    found = expected(None, [*talk("de", "de"), log])
    assert found
    assert found.language.code == "de"
    assert is_other(TEXTS["en"], found)


def test_is_other__summary_before_in_another_language__both_are_taken() -> None:
    found = expected(None, talk("en", "en"), [TEXTS["de"]])
    assert found
    assert not is_other(TEXTS["de"], found)
    assert not is_other(TEXTS["en"], found)
    assert is_other(TEXTS["fr"], found)


def test_expected__only_summaries__their_language() -> None:
    found = expected(None, (), [TEXTS["fr"], TEXTS["fr"]])
    assert found
    assert found.language.code == "fr"
    assert expected(None, (), ["", TERSE]) is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("German", "de"), ("de", "de"), ("de-CH", "de"), ("Deutsch", "de"), ("Brazilian Portuguese", "pt"),
        ("Simplified Chinese", "zh"), ("中文", "zh"), ("Français", "fr"), ("Nederlands, please", "nl"),
    ],
)  # fmt: skip
def test_named__what_people_write__is_known(given: str, code: str) -> None:
    assert named(given) is LANGUAGES[code]


def test_expected__policy_names_a_language__it_counts_and_no_other() -> None:
    found = expected("Polish", talk("en", "en"))
    assert found
    assert is_other(TEXTS["en"], found)
    assert not is_other(TEXTS["pl"], found)
    assert expected("Klingon", talk("en", "en")) is None


@pytest.mark.parametrize("code", TEXTS)
def test_is_other__extractive_summary_of_the_conversation__never_refused(code: str) -> None:
    for other in ("en", "zh", "ru"):
        span = talk(code, other, code, code)
        made = extractive.extract(span, sections=SECTIONS, bound=400, target=200, count=by_chars)
        heard = expected(None, span)
        assert heard is None or not is_other(made.text, heard)


@pytest.mark.parametrize("unit", ["a", "\u4e00", "```", '"', "`", "/", "# x\n", " the", "e\u0301", "\u201c"])
def test_is_other__long_runs__linear_time(unit: str) -> None:
    start = time.process_time()
    is_other(unit * (1_000_000 // len(unit)), wanted("de", "de"))
    expected(None, dialogue(*[unit * (100_000 // len(unit))] * 20))
    assert time.process_time() - start < 1
