"""Ids of the client's own: what is created can be addressed, and nothing is changed in silence."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.inprocess import Service

IDS = [
    "plain", ".", "..", "a?b=c", "#1", "100%", "%2F", "a%2Fb", "%zz", "a&b;c=d", "a+b c", " lead", "trail ", " ", "\t",
    "line\nbreak", "back\\slash", "ext:nested", "ünï-東京-🙂", "a:b@c", '"quoted"', "<b>", "{x}",
    "~!$'()*,", "\x01\x7f", "\u2028", "x" * 255,
]  # fmt: skip


@pytest.mark.parametrize("id_", IDS, ids=ascii)
def test_external_id__that_was_taken__is_kept_to_the_letter_and_addresses_its_conversation(
    service: Service, id_: str
) -> None:
    made = service.post("conversations", {"model": "gpt-4o", "external_id": id_})
    path = f"conversations/ext:{quote(id_, safe='')}"
    try:
        assert made["external_id"] == id_
        assert service.get(path)["id"] == made["id"]
        service.append(path, {"role": "user", "content": "hi"})
        assert len(service.context(path)["messages"]) == 1
        (listed,) = service.get(f"conversations?external_id={quote(id_, safe='')}")["data"]
        assert listed["id"] == made["id"]
    finally:
        service.call("DELETE", f"conversations/{made['id']}")


@pytest.mark.parametrize("id_", ["a/b", "/", "a/messages", "//", "http://x"])
def test_external_id__with_a_slash__is_refused_where_it_is_given(service: Service, id_: str) -> None:
    source = service.create()
    service.append(source, {"role": "user", "content": "hi"})
    for path, body in (
        ("conversations", {"model": "gpt-4o", "external_id": id_}),
        (f"{source}/fork", {"position": 1, "external_id": id_}),
    ):
        (error,) = service.post(path, body, status=400)["errors"]
        assert (error["code"], error["attr"]) == ("invalid", "external_id")
        assert "slash" in error["detail"]


def test_external_id__of_a_message__may_hold_anything_and_is_kept(service: Service) -> None:
    path = service.create()
    service.append(path, {"role": "user", "content": "hi"}, details=[{"external_id": " a/b "}])

    assert service.get(f"{path}/messages/1")["external_id"] == " a/b "
