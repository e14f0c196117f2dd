from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from tenants import keys
from tenants.crypto import decrypt, encrypt
from tenants.principal import expand


def test_generate__two_keys__differ_and_have_the_documented_shape() -> None:
    one, two = keys.generate(keys.TENANT), keys.generate(keys.TENANT)
    assert one.secret != two.secret
    assert one.secret.startswith(f"ck_{one.prefix}_")
    assert keys.prefix_of(one.secret, keys.TENANT) == one.prefix


def test_generate__no_pepper__raises(settings: Any) -> None:
    settings.KEY_PEPPERS = {}
    with pytest.raises(ImproperlyConfigured):
        keys.generate(keys.TENANT)


def test_prefix_of__key_of_the_other_kind__is_none() -> None:
    assert keys.prefix_of(keys.generate(keys.PLATFORM).secret, keys.TENANT) is None


@given(st.text(max_size=100))
def test_prefix_of__any_text__is_none(text: str) -> None:
    assert keys.prefix_of(text, keys.TENANT) is None


def test_matches__own_secret__holds_and_a_changed_one_does_not() -> None:
    new = keys.generate(keys.TENANT)
    assert keys.matches(new.secret, new.digest, new.pepper)
    assert keys.matches(new.secret, memoryview(new.digest), new.pepper)
    assert not keys.matches(new.secret + "x", new.digest, new.pepper)
    assert not keys.matches(new.secret, None, None)


def test_matches__pepper_added__old_keys_still_hold_and_new_ones_use_the_newest(settings: Any) -> None:
    settings.KEY_PEPPERS = {1: "first pepper of the test"}
    old = keys.generate(keys.TENANT)
    settings.KEY_PEPPERS = {1: "first pepper of the test", 2: "second pepper of the test"}
    assert keys.matches(old.secret, old.digest, old.pepper)
    assert keys.generate(keys.TENANT).pepper == 2


def test_matches__pepper_removed__key_no_longer_holds(settings: Any) -> None:
    new = keys.generate(keys.TENANT)
    settings.KEY_PEPPERS = {new.pepper + 1: "another pepper of the test"}
    assert not keys.matches(new.secret, new.digest, new.pepper)


def test_decrypt__key_added_in_front__reads_what_the_old_one_wrote(settings: Any) -> None:
    token = encrypt("sk-secret")
    assert b"sk-secret" not in token
    settings.ENCRYPTION_KEYS = ["A" * 43 + "=", *settings.ENCRYPTION_KEYS]
    assert decrypt(memoryview(token)) == "sk-secret"


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        (["read"], "read"),
        (["write"], "read write"),
        (["admin"], "admin read write"),
        (["read", "future"], "read"),
        ([], ""),
    ],
)
def test_expand__scopes__include_the_lower_ones(scopes: list[str], expected: str) -> None:
    assert " ".join(sorted(expand(scopes))) == expected
