from __future__ import annotations

from compaction_service.compactions.review import notes


def test_notes__of_the_ledger_and_of_the_job__one_line_each() -> None:
    ledger = {
        "kind": "open_question",
        "importance": 3,
        "text": "Which\u202e region?",
        "positions": [2, 9],
        "state": "no_room",
    }
    assert notes([ledger, {"invented_files": ["a.py", "b.py"]}, {"floor_tokens": 12}]) == [
        ("open question, no room", notes([{"text": "Which\u202e region?"}])[0][1] + " (importance 3, from 2, 9)"),
        ("invented files", "a.py, b.py"),
        ("floor tokens", "12"),
    ]
