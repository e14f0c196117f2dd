from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from tenants.scope import platform_scope
from tests.integration.admin.conftest import HOSTILE, Made, agent_messages

LIST = "/admin/compactions/compaction/"
VIEW, CHANGE = "compactions.view_compaction", "compactions.change_compaction"


def path(compaction: UUID, action: str = "change") -> str:
    return f"{LIST}{compaction}/change/" if action == "change" else f"{LIST}{compaction}/{action}/do/"


def test_list__by_external_id_or_id__finds_the_compaction(root: Client, made: Made) -> None:
    compaction = made.compact()
    external_id = made.row(compaction).conversation.external_id or ""
    for term in (external_id[:9], str(compaction), str(compaction)[:13], str(made.conversation)):
        page = root.get(LIST, {"q": term}).content.decode()
        assert f"/{compaction}/change/" in page
        assert external_id in page
        assert "applied" in page
    assert f"/{compaction}/change/" not in root.get(LIST, {"q": "no-such"}).content.decode()


@pytest.mark.parametrize("query", ["outcome=applied", "trigger=manual", "age=hour", "review__exact=unreviewed"])
def test_list__filtered__keeps_what_matches(root: Client, made: Made, query: str) -> None:
    compaction = made.compact()
    page = root.get(f"{LIST}?{query}&tenant={made.tenant.id}", follow=True).content.decode()
    assert f"/{compaction}/change/" in page


def test_list__of_another_tenant__is_empty(root: Client, made: Made) -> None:
    compaction = made.compact()
    assert f"/{compaction}/change/" not in root.get(f"{LIST}?tenant={uuid4()}").content.decode()


def test_detail__applied__shows_both_sides_and_the_numbers(root: Client, made: Made) -> None:
    compaction = made.compact()
    row = made.row(compaction)
    page = root.get(path(compaction)).content.decode()

    assert "Please fix bug 0 in src/app_0.py" in page  # before
    assert "grep" in page
    assert row.sections[0]["heading"] in page  # after
    assert f"{(row.context_before or {})['tokens']:,}" in page
    assert f"{(row.context_after or {})['tokens']:,}" in page
    assert "extractive" in page
    assert "state-active" in page  # the chain


def test_detail__second_one__shows_the_summary_it_replaced(root: Client, made: Made) -> None:
    first = made.compact(up_to=4)
    second = made.compact(up_to=8)
    page = root.get(path(second)).content.decode()
    assert "of positions 1 to 4, replaced" in page
    assert "state-superseded" in page
    assert f"/{first}/change/" in page


def test_detail__irreducible__has_no_span(root: Client, make: Callable[..., Made]) -> None:
    compaction = make([{"role": "user", "content": "hi"}]).ask()
    page = root.get(path(compaction))
    assert page.status_code == 200
    assert "Nothing was planned" in page.content.decode()


@pytest.mark.parametrize("action", ["approve", "flag"])
def test_review__by_button__is_stored_and_logged(root: Client, made: Made, action: str) -> None:
    compaction = made.compact()
    assert root.post(path(compaction, action)).status_code == 302
    assert made.row(compaction).review == {"approve": "approved", "flag": "flagged"}[action]
    with platform_scope():
        assert LogEntry.objects.filter(object_id=str(compaction)).count() == 1


def test_revert__newest_applied__makes_the_span_live_again(root: Client, made: Made) -> None:
    compaction = made.compact()
    assert made.row(compaction).conversation.covered_to > 0
    page = root.post(path(compaction, "revert"), follow=True).content.decode()
    assert "Reverted." in page
    row = made.row(compaction)
    assert row.reverted_at is not None
    assert row.conversation.covered_to == 0


def test_revert__twice__is_refused_in_words(root: Client, made: Made) -> None:
    compaction = made.compact()
    root.post(path(compaction, "revert"))
    page = root.post(path(compaction, "revert"), follow=True).content.decode()
    assert "It was reverted already." in page


@pytest.mark.usefixtures("clock")  # of its own: the worker of the `live` stack would take it before
def test_cancel__queued__ends_it(root: Client, made: Made) -> None:
    compaction = made.ask()
    root.post(path(compaction, "cancel"))
    assert made.row(compaction).outcome == "cancelled"
    assert made.row(compaction).conversation.compaction_live is None


def test_actions__without_the_right_or_by_get__change_nothing(staff: Callable[..., Client], made: Made) -> None:
    compaction = made.compact()
    reader = staff(VIEW)
    page = reader.get(path(compaction)).content.decode()
    assert "Please fix bug 0" in page
    assert "/do/" not in page
    assert reader.post(path(compaction, "revert")).status_code == 403
    reviewer = staff(VIEW, CHANGE)
    assert reviewer.get(path(compaction, "revert")).status_code == 405
    assert made.row(compaction).reverted_at is None


def test_actions__without_a_token__are_refused(root: Client, made: Made) -> None:
    compaction = made.compact()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = root.cookies
    assert strict.post(path(compaction, "revert")).status_code == 403
    assert made.row(compaction).reverted_at is None


def test_pages__without_permission__are_closed(staff: Callable[..., Client], made: Made) -> None:
    compaction = made.compact()
    nobody = staff("tenants.view_tenant")
    assert nobody.get(LIST).status_code == 403
    assert nobody.get(path(compaction)).status_code == 403
    assert Client().get(path(compaction)).status_code == 302


@pytest.mark.parametrize("page", ["add/", "{id}/delete/"])
def test_rows__by_staff__are_neither_made_nor_deleted(root: Client, made: Made, page: str) -> None:
    compaction = made.compact()
    assert root.get(LIST + page.format(id=compaction)).status_code == 403


def test_detail__posted_to__changes_nothing(root: Client, made: Made) -> None:
    compaction = made.compact()
    root.post(path(compaction), {"summary": "forged", "review": "approved"})
    row = made.row(compaction)
    assert row.summary != "forged"
    assert row.review == "unreviewed"


def test_detail__hostile_text__is_shown_not_obeyed(root: Client, make: Callable[..., Made]) -> None:
    made = make(agent_messages(text=HOSTILE))
    compaction = made.compact()
    page = root.get(path(compaction)).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "{{ 7*7 }}" in page
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "\x1b" not in page
    assert "onclick" not in page.split('id="content-main"')[1]


def test_detail__looked_at__is_logged(root: Client, made: Made, caplog: pytest.LogCaptureFixture) -> None:
    compaction = made.compact()
    with caplog.at_level(logging.INFO, "tenants.platform_admin"):
        root.get(path(compaction))
    (record,) = [record for record in caplog.records if record.message == "content viewed"]
    assert str(compaction) in record.__dict__["object"]
    assert record.__dict__["user"].startswith("staff-")
