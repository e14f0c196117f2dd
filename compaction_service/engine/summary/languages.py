"""What languages are told by: their small words, and the names people give them.

The small words are those that hardly a sentence of the language does without. Which of two languages a text is in is
told by the words that only one of them has, so words that both have do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """`script` as `language.scripts` names it; `names` in lower case, as a policy may give them."""

    code: str
    english: str
    script: str
    names: frozenset[str]
    words: frozenset[str]


def _language(code: str, english: str, script: str, names: str, words: str = "") -> Language:
    return Language(code, english, script, frozenset((code, english.lower(), *names.split())), frozenset(words.split()))


_ALL = (
    _language(
        "en", "English", "latin", "eng",
        """the of and to in is was for it that with on at by this from are were be been has have had not but which when
        what who their they you we he she an or as its will would could should can there after before into about if
        then than only did does all so up out no a i s
        t don me my your our his her here just like more some any also how"""
    ),
    _language(
        "de", "German", "latin", "deutsch ger deu",
        """der die das und ist nicht ein eine einen einem einer ich sie er wir es mit auf für von zu zum zur im den dem
        des auch sich wird wurde wurden werden war waren hat haben dass als an bei nach aus noch nur oder wenn aber
        wie so über um was kann soll noch durch bis vor"""
    ),
    _language(
        "fr", "French", "latin", "français francais fre fra",
        """le la les des du de et est un une dans pour que qui ne pas sur avec il elle nous vous ils ce cette ces au aux
        l d qu par plus son sa ses être été sont était a en se mais ou où comme leur si je tout faire deux après sans"""
    ),
    _language(
        "es", "Spanish", "latin", "español espanol castellano spa",
        """el la los las de del y en que un una por con para se su sus es fue son era al lo como más pero no está están
        este esta estos estas ha han sin sobre ya muy cuando también hay ser donde desde hasta le les si mi"""
    ),
    _language(
        "it", "Italian", "latin", "italiano ita",
        """il lo la i gli le di del della dei delle e è un una per con che non si da dal dalla in nel nella sono ha
        hanno al alla ai alle come più ma anche questo questa questi stato stata essere su sul sulla se dopo io o"""
    ),
    _language(
        "pt", "Portuguese", "latin", "português portugues por pt-br brasileiro brazilian",
        """o a os as de do da dos das e em no na nos nas um uma para por pelo pela com que não se é foi são era ao à
        mais mas como também seu sua este esta isso já muito ser está até sem quando eu ele ela você ou há"""
    ),
    _language(
        "nl", "Dutch", "latin", "nederlands dut nld",
        """de het een en van is niet dat die in op te voor met zijn was aan er maar om ook als bij naar uit door over
        heeft hebben werd worden wordt ik je we ze hij deze dit dan nog wel kan moet geen tot of wat"""
    ),
    _language(
        "sv", "Swedish", "latin", "svenska swe",
        """och att det som en är på för med den inte av till ett om har jag han hon vi de var kan ska men så från när
        vid eller blev efter också hade sig där nu finns måste bara"""
    ),
    _language(
        "da", "Danish", "latin", "dansk dan",
        """og at det som en er på for med den ikke af til et om har jeg han hun vi de var kan skal men så fra når ved
        eller blev efter også havde sig der nu findes kun være blive hvor"""
    ),
    _language(
        "no", "Norwegian", "latin", "norsk nb nn nor bokmål",
        """og å at det som en er på for med den ikke av til et om har jeg han hun vi de var kan skal men så fra når ved
        eller ble etter også hadde seg der nå finnes bare være bli hvor"""
    ),
    _language(
        "pl", "Polish", "latin", "polski pol",
        """i w na z a je aby bo gdy się nie do to jest że o jak ale
        po co tak za od by był była było są dla już czy przez ten ta te go
        jego ich przy oraz został została może tylko także które który która"""
    ),
    _language(
        "cs", "Czech", "latin", "čeština česky cze ces",
        """a v na se je že to s z do i o k ve pro si jak ale za po by co už jsem jsou byl byla bylo které který která
        nebo také však při od ze jeho než být tak není"""
    ),
    _language(
        "ro", "Romanian", "latin", "română romana ron rum",
        """și de la în a cu pe care nu este un o pentru din că au fost mai sunt ce se prin dar sau după după ca fi era
        al ale lui această acest fără către"""
    ),
    _language(
        "tr", "Turkish", "latin", "türkçe turkce tur",
        """ve bir bu için ile de da olarak olan çok daha gibi ne var değil en ama kadar sonra o her ki mi mı yok veya
        oldu olduğu tarafından ise göre üzerinde şu"""
    ),
    _language(
        "id", "Indonesian", "latin", "bahasa indonesia ind malay ms melayu",
        """yang dan di untuk dengan ini itu dari pada tidak adalah dalam akan ke telah sudah oleh atau juga sebagai ada
        karena saya kami mereka anda dapat bisa harus setelah lebih masih belum"""
    ),
    _language(
        "vi", "Vietnamese", "latin", "tiếng việt vie",
        """và của là có không được cho một các trong với này người những đã khi để đến từ về tôi bạn ở như ra nhưng
        cũng sẽ đó nếu vào hay đang phải sau"""
    ),
    _language(
        "fi", "Finnish", "latin", "suomi fin",
        """ja on ei se että oli hän ovat mutta myös kun niin kuin joka jotka tai sen tämä vain ole olla voi mukaan
        sekä jos jonka ne nyt sitten minä"""
    ),
    _language(
        "hu", "Hungarian", "latin", "magyar hun",
        """a az és hogy nem is egy van volt meg ez azt csak már de vagy mint ha el ki lesz még kell mert akkor ezt
        lehet után minden szerint nincs"""
    ),
    _language(
        "ru", "Russian", "cyrillic", "русский rus",
        """и в не на что с как это по но он она они мы я вы из у за для от же к был была было были о бы так все его её
        их только или уже если когда после нужно есть при чтобы также который"""
    ),
    _language(
        "uk", "Ukrainian", "cyrillic", "українська ukr",
        """і в не на що з як це по але він вона вони ми я ви із у за для від же до був була було були про б так все його
        її їх тільки або вже якщо коли після потрібно є при щоб також який та"""
    ),
    _language(
        "bg", "Bulgarian", "cyrillic", "български bul",
        """и в не на че с как това по но той тя те ние аз вие от за към е беше бяха да са се си ще при който която само
        или вече ако когато след трябва има са със"""
    ),
    _language("el", "Greek", "greek", "ελληνικά ell gre"),
    _language(
        "ar", "Arabic", "arabic", "العربية عربي ara",
        "في من على أن إلى عن هذا هذه التي الذي مع كان لم ما لا هو هي تم قد كل بعد أو إذا ذلك"
    ),
    _language(
        "fa", "Persian", "arabic", "فارسی farsi fas per",
        "و در به از که این را با است برای آن یک می شود شد ها تا بر هم نیز کرد خود"
    ),
    _language(
        "ur", "Urdu", "arabic", "اردو urd",
        "کے میں کی ہے اور سے کا کو پر نے یہ کہ ہیں تھا نہیں کیا ایک ہو بھی"
    ),
    _language("he", "Hebrew", "hebrew", "עברית heb iw"),
    _language(
        "hi", "Hindi", "devanagari", "हिन्दी हिंदी hin",
        "के में की है और से का को पर ने यह कि हैं था नहीं एक हो भी लिए गया"
    ),
    _language(
        "mr", "Marathi", "devanagari", "मराठी mar",
        "आहे आणि च्या या ते हे मध्ये केले करा नाही तो ती होते आहेत पण साठी"
    ),
    _language("bn", "Bengali", "bengali", "বাংলা bangla ben"),
    _language("ta", "Tamil", "tamil", "தமிழ் tam"),
    _language("th", "Thai", "thai", "ไทย ภาษาไทย tha"),
    _language("zh", "Chinese", "han", "中文 汉语 漢語 mandarin chi zho 简体中文 繁體中文"),
    _language("ja", "Japanese", "kana", "日本語 jpn"),
    _language("ko", "Korean", "hangul", "한국어 kor"),
)  # fmt: skip
LANGUAGES = {language.code: language for language in _ALL}
