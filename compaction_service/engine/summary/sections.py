"""The form of a summary: plain Markdown, a line `## <heading>` per section, checklists as `- [ ]` and `- [x]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

Meaning = Literal["goal", "steps", "files", "errors", "other"]

_HASHES = re.compile(r" {0,3}(#{1,4})(?!#)\s*(.*)")
_BOLD = re.compile(r" {0,3}(?:\d{1,2}[.)]\s{0,3})?(\*\*|__)(.+?)\1\s*(.*)")
_NUMBER = re.compile(r"\d{1,2}[.)]\s+")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\[([ xX✓✔])?\]\s*(.*)")
_MAX_HEADING = 300  # characters of a line that may be a heading

# Word beginnings by which a heading's meaning is told, checked in this order.
_MEANINGS: tuple[tuple[Meaning, str], ...] = (
    ("files", "file datei fichier archivo arquivo ficheiro bestand plik dosya berkas tệp tập artifact artefact файл 文件 檔案 ファイル 파일 ملف फ़ाइल फाइल ไฟล์"),
    ("steps", "next step todo to-do plan remaining pending progress nächst schritt offen prochain étape próxim siguiente paso prossim passi "
              "volgende następn krok nästa adım bước langkah следующ шаг 下一步 步骤 步驟 待办 待辦 次の 今後 다음 단계 الخطوات التالي अगले ขั้นตอน"),
    ("errors", "error problem failure issue fehler erreur ошибк errore erro błąd hata 错误 錯誤 エラー 오류 خطأ त्रुटि ข้อผิดพลาด"),
    ("goal", "goal objective intent purpose request task aim ziel aufgabe auftrag anliegen objectif demande objetivo meta obiettivo richiest doel cel "
             "mål hedef amaç mục tujuan цел задач запрос 目标 目標 目的 请求 請求 要求 需求 リクエスト 목표 요청 هدف الهدف लक्ष्य เป้าหมาย"),
)  # fmt: skip


class Item(TypedDict):
    text: str
    done: bool


class Section(TypedDict):
    heading: str
    text: str
    items: NotRequired[list[Item]]  # of its checklist, where it has one


@dataclass(frozen=True, slots=True)
class Parsed:
    """A summary's sections in the asked order, the asked headings it lacks, and what came before the first."""

    sections: list[Section]
    missing: list[str]
    preamble: str


def one_line(heading: str) -> str:
    return " ".join(heading.split())


def parse(text: str, headings: Sequence[str]) -> Parsed:
    """Find the asked headings, tolerant to case, blanks, numbering, `#` level 1 to 4 and bold; text under a heading
    that was not asked stays in the section before it. Lines inside closed code fences are never headings.

    No headings asked: the whole text is the preamble."""
    wanted = {_key(heading): one_line(heading) for heading in headings}
    bodies: dict[str, list[str]] = {}
    preamble: list[str] = []
    body = preamble
    lines = text.splitlines()
    fenced = _fenced(lines)
    for number, line in enumerate(lines):
        found = None if number in fenced else _heading(line, wanted)
        if found:
            body = bodies.setdefault(found[0], [])
            line = found[1]
        body.append(line)
    asked = list(dict.fromkeys(wanted.values()))
    return Parsed(
        [section(heading, "\n".join(bodies[heading]).strip()) for heading in asked if heading in bodies],
        [heading for heading in asked if heading not in bodies],
        "\n".join(preamble).strip(),
    )


def _fenced(lines: list[str]) -> set[int]:
    marks = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    return {n for start, end in zip(marks[::2], marks[1::2], strict=False) for n in range(start, end)}


def _heading(line: str, wanted: dict[str, str]) -> tuple[str, str] | None:
    """The asked heading this line is, and what follows it on the line."""
    if len(line) > _MAX_HEADING:
        return None
    if found := _HASHES.match(line):
        title, rest = found[2].strip(" #"), ""
        if bold := _BOLD.fullmatch(title):
            title, rest = bold[2], bold[3]
    elif found := _BOLD.match(line):
        title, rest = found[2], found[3]
    else:
        return None
    if (key := _key(title)) in wanted:
        return wanted[key], rest.lstrip(" :：")
    head, colon, after = title.replace("：", ":").partition(":")
    if colon and (key := _key(head)) in wanted:
        return wanted[key], f"{after.strip()} {rest}".strip()
    return None


def _key(title: str) -> str:
    return one_line(_NUMBER.sub("", title.strip(" #*_:："), count=1)).strip(" *_:：").casefold()


def section(heading: str, text: str) -> Section:
    out: Section = {"heading": heading, "text": text}
    if found := items(text):
        out["items"] = found
    return out


def item(line: str) -> Item | None:
    """The checklist item this line is, if any."""
    found = _ITEM.match(line)
    return {"text": found[2].strip(), "done": (found[1] or " ") != " "} if found else None


def items(text: str) -> list[Item]:
    return [found for line in text.splitlines() if (found := item(line))]


def heading_line(heading: str) -> str:
    return f"## {heading}"


def render(sections: Iterable[Section]) -> str:
    """The summary's text; a section without text keeps its heading."""
    return "\n\n".join(f"{heading_line(s['heading'])}\n{s['text']}".strip() for s in sections)


def meaning(heading: str) -> Meaning:
    """What a heading asks for, told by its words in about twenty languages."""
    padded = f" {one_line(heading).casefold()}"
    for name, stems in _MEANINGS:
        for stem in stems.split():
            if (f" {stem}" if stem[0] < "\u0e00" else stem) in padded:
                return name
    return "other"
