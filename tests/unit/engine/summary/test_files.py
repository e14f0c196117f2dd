from __future__ import annotations

import json

import pytest

from compaction_service.engine.summary.files import (
    active_files,
    argument_files,
    call_values,
    named_files,
    used_files,
    with_active_files,
)
from compaction_service.engine.summary.sections import section

from .build import HOSTILE, Piece, by_chars, said


def call(arguments: str, position: int = 1) -> Piece:
    return Piece("call", arguments, "tool", f"c{position}")


def test_argument_files__keys_and_values__found_in_order() -> None:
    arguments = json.dumps(
        {
            "path": "src/a.py",
            "file_name": "Makefile",
            "edits": [{"filePath": "b/c"}],
            "files": ["x.py", "y"],
            "command": "cat docs/notes.md | grep 3",
            "content": "import os # lib/never.py\n" * 100,
            "profile": "admin",
            "n": 3,
        }
    )
    assert argument_files([said(1, "assistant", call(arguments))]) == [
        "src/a.py",
        "Makefile",
        "b/c",
        "x.py",
        "y",
        "docs/notes.md",
    ]


def test_argument_files__no_json__paths_of_the_text() -> None:
    assert argument_files([said(1, "assistant", call("read src/a.py"))]) == ["src/a.py"]


def test_argument_files__hostile_arguments__no_exception() -> None:
    deep = "[" * 100_000
    nested = '{"a":' * 500 + '"x.py"' + "}" * 500
    for text in (*HOSTILE, deep, nested, "{", '"', "NaN", '{"path": "a\\u0000b"}', '{"path": null}', "1" * 10_000):
        argument_files([said(1, "assistant", call(text))])
        call_values(text)


def test_named_files__list_and_prose__names() -> None:
    text = "- `src/a.py`: the model\n- Makefile\n* src/b.py (new)\n1. c/d.py and e.py\nNone\n\n- \u2014"
    assert named_files(text) == ["src/a.py", "Makefile", "src/b.py", "c/d.py", "e.py"]


def test_active_files__named_and_mechanical__invented_dropped() -> None:
    messages = [
        said(1, "user", "fix src/a.py, not other/data.py"),
        said(2, "assistant", call('{"path": "src/b.py"}')),
        said(3, "tool", Piece("result", "tests/test_b.py failed", "pytest")),
        said(4, "assistant", Piece("thinking", "src/thought.py")),
    ]
    named = "- src/a.py\n- src/invented.py\n- tests/test_b.py\n- a.py\n- ta.py\n- old/known.py\n- src/thought.py"
    kept, invented = active_files(messages, named, known_text="earlier: old/known.py")
    assert kept == ["src/a.py", "tests/test_b.py", "a.py", "old/known.py", "src/b.py"]
    assert invented == ["src/invented.py", "ta.py", "src/thought.py"]


def test_active_files__windows_path_in_json__found() -> None:
    messages = [said(1, "assistant", call(json.dumps({"cmd": r"type C:\Users\me\a.txt"})))]
    assert active_files(messages, r"- C:\Users\me\a.txt") == ([r"C:\Users\me\a.txt"], [])


def test_with_active_files__sections__only_that_about_files_rewritten() -> None:
    messages = [said(1, "assistant", call('{"path": "src/b.py"}'))]
    goal, files = section("Overall Goal", "fix src/none.py"), section("Active Files", "- src/none.py")
    out, invented = with_active_files([goal, files], messages)
    assert out == [goal, section("Active Files", "- src/b.py")]
    assert invented == ["src/none.py"]


def test_with_active_files__little_room__as_many_as_fit() -> None:
    messages = [said(n, "assistant", call(json.dumps({"path": f"src/file{n}.py"}), n)) for n in range(1, 100)]
    out, _ = with_active_files([section("Active Files", "")], messages, room=30, count=by_chars)
    assert by_chars(out[0]["text"]) <= 30
    assert out[0]["text"].startswith("- src/file1.py\n- src/file2.py")


def test_used_files__span_and_list_before__calls_then_the_list_then_mentions_of_most_messages() -> None:
    messages = [
        said(1, "user", "x/rare.py x/rare.py y/often.py"),
        said(2, "assistant", "y/often.py", call('{"path": "z/used.py"}')),
    ]
    files, others = used_files(messages, ["old/read.py", "y/often.py"])
    assert files == ["z/used.py", "old/read.py", "y/often.py", "x/rare.py"]
    assert others == []


def test_used_files__directories_and_programs__are_no_files() -> None:
    messages = [
        said(1, "user", "All is in src/app/models, see src/app/models/user.py and Makefile."),
        said(2, "assistant", call('{"path": "src/billing"}')),
        said(3, "tool", Piece("result", "#!/usr/bin/env python\nsrc/billing/tax.py:3: rate = 2", "grep", "c1")),
        said(4, "assistant", call('{"path": "bin/deploy"}')),
        said(5, "assistant", call('{"path": "src/"}')),
    ]
    files, others = used_files(messages)
    assert files == ["bin/deploy", "src/app/models/user.py", "src/billing/tax.py"]
    assert others == ["src/billing", "src/", "src/app/models", "/usr/bin/env"]


def test_active_files__directory_of_a_file_that_was_called__is_not_added() -> None:
    messages = [said(1, "assistant", call('{"path": "src"}'), call('{"path": "src/a.py"}', 2))]
    assert active_files(messages, "") == (["src/a.py"], [])


@pytest.mark.parametrize("text", HOSTILE)
def test_active_files__hostile_texts__no_exception(text: str) -> None:
    with_active_files([section("Active Files", text)], [said(1, "user", text, call(text))], text)
