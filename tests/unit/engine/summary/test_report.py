from __future__ import annotations

import pytest

from compaction_service.engine.summary.report import dropped_content, entities, preserved

from .build import HOSTILE, Piece, dialogue, said


def test_entities__text__paths_urls_identifiers_and_names() -> None:
    text = (
        "Barack Obama opened https://a.b/c with `make demo` on src/a.py. The United Nations met. "
        "Hey Melanie, call getUser in New York City!"
    )
    assert entities(text) == [
        "https://a.b/c",
        "src/a.py",
        "getUser",
        "make demo",
        "Barack Obama",
        "United Nations",
        "New York City",
    ]


def test_entities__many__first_fifty() -> None:
    assert entities("\n".join(f"src/file{n}.py" for n in range(80))) == [f"src/file{n}.py" for n in range(50)]


def test_preserved__names_of_a_summary__only_those_that_the_span_or_the_summary_before_has() -> None:
    messages = [
        said(1, "user", "We go to New\nYork City with getUser."),
        said(2, "assistant", Piece("call", '{"path":"C:\\\\data\\\\caf\\u00e9.txt"}', "read_file", "c1")),
        said(3, "tool", Piece("result", "ERR_42 in sha256:9f2c", None, "c1")),
    ]
    names = [
        "new york city",
        "getUser",
        "C:\\data\\caf\u00e9.txt",
        "ERR_42",
        "old_name",
        "MadeUpName",
        "src/invented.py",
    ]
    assert preserved(names, messages, "Of old_name nothing is left.") == names[:5]


def test_entities__messages__calls_and_results_too() -> None:
    messages = [
        said(1, "user", "see a/b.py"),
        said(2, "assistant", Piece("thinking", "x/y.py"), Piece("call", '{"path": "c/d.py"}', "read")),
    ]
    assert entities(messages) == ["a/b.py", "c/d.py"]


def test_dropped_content__request_and_identifiers_not_in_the_summary__told_with_positions() -> None:
    messages = [
        said(1, "user", "Please rename the customer table to client everywhere"),
        said(
            2,
            "assistant",
            "I changed src/models.py and ran `migrate`",
            Piece("call", '{"path": "src/views.py"}', "edit"),
        ),
        said(3, "tool", Piece("result", "noise_in_results everywhere", "edit")),
        said(4, "user", "ok, thanks"),
        said(5, "user", "Also never touch the production database of tenant INV-2931"),
    ]
    summary = "The customer table was to be renamed to client everywhere; src/models.py was changed."
    assert dropped_content(messages, summary) == [
        {"position": 2, "kind": "identifier", "text": "src/views.py"},
        {"position": 5, "kind": "request", "text": "Also never touch the production database of tenant INV-2931"},
        {"position": 5, "kind": "identifier", "text": "INV-2931"},
    ]


def test_dropped_content__request_like_one_that_was_kept__is_told_by_what_it_names() -> None:
    asked = [f"Step {n}: read src/part_{n}.py and check it against this list of prices." for n in (1, 2)]
    messages = [said(number, "user", text) for number, text in enumerate(asked, 1)]
    told = dropped_content(messages, f"## Overall Goal\n- {asked[0]}")
    assert [(one["position"], one["kind"]) for one in told] == [(2, "request"), (2, "identifier")]


def test_dropped_content__long_request_whose_first_sentence_is_kept__is_not_told() -> None:
    messages = [
        said(1, "user", "Rename the customer table to client everywhere. " + "Mind every place it is named in. " * 30)
    ]
    assert dropped_content(messages, "- Rename the customer table to client everywhere.") == []


def test_dropped_content__chinese_request__told() -> None:
    messages = dialogue("请把客户表改名为用户表，不要动生产数据库")
    assert dropped_content(messages, "用户要求修改数据")[0]["kind"] == "request"
    assert dropped_content(messages, "请把客户表改名为用户表，不要动生产数据库。") == []


BEFORE = (
    "## Overall Goal\n- Move the ledger to Postgres under billing_v2.\n"
    "- [2026-03-01] Never touch the tables of INV-2931.\n\n"
    "## Next Steps\n- [x] Count the refunds of August (#7)\n- [ ] rotate the keys\n- bash: printed_name in line 3\n"
    "- The port is PORT_A.\n- Also named: `old_flag, new_flag`\n\n## Active Files\n- src/old.py"
)


def test_dropped_content__summary_before_had_it__is_told_with_the_position_where_that_is_known() -> None:
    summary = "## Overall Goal\n- Move the ledger to Postgres under billing_v2.\n\n## Next Steps\n- `new_flag`"
    assert dropped_content([said(9, "user", "Go on with NEW_1")], summary, before=BEFORE) == [
        {"position": None, "kind": "request", "text": "Never touch the tables of INV-2931."},
        {"position": None, "kind": "identifier", "text": "INV-2931"},
        {"position": None, "kind": "identifier", "text": "PORT_A"},
        {"position": None, "kind": "identifier", "text": "old_flag"},
        {"position": None, "kind": "identifier", "text": "src/old.py"},
        {"position": 7, "kind": "request", "text": "Count the refunds of August"},
        {"position": 9, "kind": "request", "text": "Go on with NEW_1"},
        {"position": 9, "kind": "identifier", "text": "NEW_1"},
    ]


def test_dropped_content__summary_before_is_all_there__nothing() -> None:
    assert dropped_content([], BEFORE, before=BEFORE) == []


def test_dropped_content__message_that_is_carried__is_not_told() -> None:
    messages = [
        said(1, "user", "Mend src/a.py for tenant INV-2931, please."),
        said(2, "assistant", "src/a.py is mended."),
    ]
    assert dropped_content(messages, "", carried={1}) == []
    assert {one["position"] for one in dropped_content(messages, "")} == {1}


def test_dropped_content__very_much_dropped__capped_requests_first() -> None:
    messages = [said(n, "user", f"request number {n} about thing{n}x " + "long " * 200) for n in range(1, 90)]
    out = dropped_content(messages, "")
    assert len(out) == 100
    assert sum(one["kind"] == "request" for one in out) == 89
    positions = [one["position"] for one in out]
    assert positions == sorted(filter(None, positions))
    assert all(len(one["text"]) <= 200 for one in out)


@pytest.mark.parametrize("text", HOSTILE)
def test_report__hostile_texts__clean_output(text: str) -> None:
    messages = [said(1, "user", text), said(2, "assistant", Piece("call", text, "x"))]
    for one in dropped_content(messages, text):
        one["text"].encode()
    for name in [*entities(text), *entities(messages)]:
        name.encode()
