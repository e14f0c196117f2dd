from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from compaction_service.conversations.transcripts import PAGE, PAGE_CHARS
from tests.integration.admin.conftest import HOSTILE, Made, agent_messages

LIST = "/admin/conversations/conversation/"


def path(made: Made, page: str = "change/") -> str:
    return f"{LIST}{made.conversation}/{page}"


def test_list__by_prefix__finds_it(root: Client, make: Callable[..., Made]) -> None:
    made = make(external_id="order-4711")
    for term in ("order-47", str(made.conversation)[:13], str(made.conversation)):
        assert f"/{made.conversation}/change/" in root.get(f"{LIST}?q={term}").content.decode()


def test_list__search_for_anything__never_fails(root: Client) -> None:
    for term in ("\x00", "%", "'; --", "\ud800".encode("utf-8", "surrogatepass"), "\u202e", "x" * 5000):
        assert root.get(LIST, {"q": term}).status_code in (200, 302)


def test_detail__compacted__shows_meter_state_and_messages(root: Client, made: Made) -> None:
    compaction = made.compact()
    page = root.get(path(made)).content.decode()
    assert "tokens (" in page
    assert f"/{compaction}/change/" in page
    assert "Please fix bug 3" in page
    assert "preserve_recent_turns" in page


def test_detail__long__is_paged(root: Client, make: Callable[..., Made]) -> None:
    made = make(agent_messages(turns=30))
    page = root.get(path(made)).content.decode()
    assert page.count('class="review-message ') == PAGE
    assert "Please fix bug 29 " in page
    assert "Please fix bug 0 " not in page
    page = root.get(path(made, "change/?from=1")).content.decode()
    assert "Please fix bug 0 " in page
    assert f"?from={PAGE + 1}" in page


def test_detail__message_of_a_megabyte__has_a_page_of_its_own(root: Client, make: Callable[..., Made]) -> None:
    text = "long words " * (PAGE_CHARS // 10)
    made = make([{"role": "user", "content": text}, {"role": "assistant", "content": "Read."}])
    page = root.get(path(made)).content
    assert len(page) < 100_000
    assert b"open the message by its number" in page
    assert text[-1000:].encode() in root.get(path(made, "messages/1/")).content


def test_detail__position_from_nowhere__shows_what_there_is(root: Client, made: Made) -> None:
    for value in ("0", "99999999999999", "-1", "x", ""):
        assert root.get(path(made, f"change/?from={value}")).status_code == 200
    assert root.get(path(made, "messages/99999999999999/")).status_code == 404


def test_context__compacted__is_what_the_agent_gets(root: Client, made: Made) -> None:
    made.compact()
    page = root.get(path(made, "context/")).content.decode()
    assert "This is a summary of the earlier part" in page
    assert "Please fix bug 3" in page
    assert "are covered by 1 summary" in page


def test_pages__hostile_text__are_escaped(root: Client, make: Callable[..., Made]) -> None:
    made = make(agent_messages(text=HOSTILE), system=HOSTILE)
    made.compact()
    for page in ("change/", "context/", "messages/1/"):
        content = root.get(path(made, page)).content.decode()
        assert "<script>alert" not in content
        assert "&lt;script&gt;alert" in content
        assert "\x00" not in content


def test_model_gone_from_the_registry__page_still_opens(root: Client, make: Callable[..., Made]) -> None:
    from compaction_service.conversations.models import Conversation
    from tenants.scope import tenant_scope

    made = make()
    with tenant_scope(made.tenant.id):
        Conversation.objects.filter(id=made.conversation).update(model="no-such-model")
    page = root.get(path(made))
    assert "does not know this model" in page.content.decode()
    assert "does not know this model" in root.get(path(made, "context/")).content.decode()


def test_pages__without_permission__are_closed(staff: Callable[..., Client], made: Made) -> None:
    nobody = staff("compactions.view_compaction")
    for page in ("change/", "context/", "messages/1/"):
        assert nobody.get(path(made, page)).status_code == 403
        assert Client().get(path(made, page)).status_code == 302


def test_rows__by_staff__are_neither_made_nor_deleted(root: Client, made: Made) -> None:
    assert root.get(f"{LIST}add/").status_code == 403
    assert root.get(path(made, "delete/")).status_code == 403
