"""The transcripts reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compaction_service.local import transcripts
from compaction_service.local.transcripts import TranscriptError
from compaction_service.local.validity import call_problems

USER = {"role": "user", "content": "Hi"}


def line(**changes: Any) -> str:
    return json.dumps({"id": "one", "format": "openai", "messages": [USER], **changes}, ensure_ascii=False)


def write(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "talk.jsonl"
    path.write_bytes(b"\n".join(text if isinstance(text, bytes) else text.encode() for text in lines))
    return path


def test_read__separators_of_unicode_in_a_text__stay_inside_it(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d\re"
    path = write(tmp_path, line(messages=[{"role": "user", "content": text}]), "", line(id="two"), "")
    found = list(transcripts.read(path))
    assert [one.id for one in found] == ["one", "two"]
    assert found[0].messages[0]["content"] == text


def test_read__keys_it_does_not_know__leaves_them(tmp_path: Path) -> None:
    (one,) = transcripts.read(write(tmp_path, line(meta={"a": 1}, source="x", oddity="y")))
    assert (one.model, one.system, one.tools, one.messages) == (None, None, None, [USER])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("{", "not a line of JSON"),
        (b'{"id": "\xff"}', "not a line of JSON"),
        ("[" * 100_000, "not a line of JSON"),
        ("[]", "must be an object"),
        (line(id=""), "`id`"),
        (line(format="xml"), "openai, anthropic"),
        (line(model=3), "`model`"),
        (line(tools={}), "`tools`"),
        (line(messages=[]), "`messages`"),
        (line(messages=[USER, {"type": "message"}]), "messages[1]"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_read__a_bad_line__error_names_file_and_line(tmp_path: Path, bad: str | bytes, said: str) -> None:
    path = write(tmp_path, line(), "", bad)
    with pytest.raises(TranscriptError) as failure:
        list(transcripts.read(path))
    assert f"{path}:3: " in str(failure.value)
    assert said in str(failure.value)


def test_find__no_id__gives_the_first_without_reading_on(tmp_path: Path) -> None:
    assert transcripts.find(write(tmp_path, line(), "broken")).id == "one"


def test_find__an_id_that_is_not_there__error_names_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path, *(line(id=f"talk-{number}") for number in range(7)))
    assert transcripts.find(path, "talk-6").id == "talk-6"
    with pytest.raises(TranscriptError, match=r"talk-0, talk-1, .* and 2 more"):
        transcripts.find(path, "talk-9")


def test_find__an_empty_file__is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="holds no conversation"):
        transcripts.find(write(tmp_path, ""))


def test_locate__a_name__is_found_in_the_folder_and_among_the_shipped(tmp_path: Path) -> None:
    path = write(tmp_path, line())
    environ = {"TRANSCRIPTS": str(tmp_path)}
    assert transcripts.locate("talk", environ) == transcripts.locate("talk.jsonl", environ) == path
    assert transcripts.locate(str(path), {}) == path
    assert transcripts.locate("airline", environ) == transcripts.SHIPPED / "airline.jsonl"


def test_locate__nowhere__error_names_the_places(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError) as failure:
        transcripts.locate("absent", {"TRANSCRIPTS": str(tmp_path)})
    assert str(tmp_path / "absent.jsonl") in str(failure.value)


def test_folder__variable_names_no_folder__is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="TRANSCRIPTS"):
        transcripts.folder({"TRANSCRIPTS": str(tmp_path / "absent")})


def test_shipped__every_file__has_unique_answered_calls_and_a_notice() -> None:
    files = sorted(transcripts.SHIPPED.glob("*.jsonl"))
    notices = (transcripts.SHIPPED / "NOTICE").read_text().splitlines()
    assert [notice.partition(":")[0] for notice in notices] == [path.name for path in files]
    for path in files:
        for one in transcripts.read(path):
            calls = [call["id"] for message in one.messages for call in message.get("tool_calls") or ()]
            assert len(calls) == len(set(calls))
            assert call_problems(one.messages) == []
