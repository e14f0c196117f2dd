"""What counts as kept of a coding session."""

from __future__ import annotations

from .coding import kept, named


def test_named__a_session__each_kind_once() -> None:
    found = named(
        [
            "See src/app/login.py and get_user, then https://x.example/a1.",
            "  12: retries = 250\nValueError: port 8080 is taken\n37 of 40 passed in src/app/login.py",
        ]
    )
    assert found["path"] == {"src/app/login.py"}
    assert found["identifier"] == {"get_user", "https://x.example/a1", "ValueError"}
    assert found["number"] == {"250", "8080", "37", "40"}
    assert found["error"] == {"ValueError: port 8080 is taken"}


def test_kept__parts_of_longer_names__do_not_count() -> None:
    wanted = named(["run get_user on 8080"])
    assert kept(wanted, "forget_users at 18080")["identifier"] == 0
    assert kept(wanted, "forget_users at 18080")["number"] == 0
    assert kept(wanted, "`get_user`, port 8080")["identifier"] == 1
    assert kept(wanted, "`get_user`, port 8080")["number"] == 1


def test_kept__an_error__by_half_of_its_words_in_one_line() -> None:
    wanted = named(["ValueError: port 8080 is taken"])
    assert kept(wanted, "- ValueError: port 8080")["error"] == 1
    assert kept(wanted, "- ValueError\n- port 8080")["error"] == 0
