from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.django_db]


def test_reviewer__opens_a_compaction_and_reverts_it__sees_it_reverted(page: Any, compaction: str) -> None:
    page.goto("/admin/compactions/compaction/")
    page.get_by_placeholder("Beginning of an id").fill(compaction)
    page.get_by_placeholder("Beginning of an id").press("Enter")
    page.locator("#result_list tbody a").first.click()
    assert page.locator(".review-head").get_by_text("applied").is_visible()
    assert page.locator("#before").get_by_text("Please fix bug 0").first.is_visible()
    page.get_by_role("button", name="Revert").click()
    assert page.get_by_text("Reverted.", exact=True).is_visible()
    assert page.locator(".review-head").get_by_text("reverted", exact=True).is_visible()
    assert page.get_by_role("button", name="Revert").is_disabled()
    assert page.locator("#chain").get_by_text("reverted", exact=True).is_visible()


def test_reviewer__approves__the_list_shows_it(page: Any, compaction: str) -> None:
    page.goto(f"/admin/compactions/compaction/{compaction}/change/")
    page.get_by_role("button", name="Approve").click()
    assert page.locator(".review-head").get_by_text("approved", exact=True).is_visible()
    page.goto(f"/admin/compactions/compaction/?q={compaction}")
    assert page.locator("#result_list").get_by_text("approved").is_visible()


def test_folded_message__clicked__opens(page: Any, compaction: str) -> None:
    page.goto(f"/admin/compactions/compaction/{compaction}/change/")
    folded = page.locator("#before details").first
    assert not folded.locator("pre").is_visible()
    folded.locator("summary").click()
    assert folded.locator("pre").is_visible()


@pytest.mark.parametrize("width", [1440, 400])
def test_pages__any_width__do_not_overflow(page: Any, compaction: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/admin/compactions/compaction/{compaction}/change/")
    conversation = page.get_by_text("Conversation", exact=True).locator("xpath=following-sibling::dd[1]/a").first
    link = conversation.get_attribute("href")
    for path in (page.url, link, link.replace("change", "context")):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
