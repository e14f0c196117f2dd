"""What is taken out of a text, what is left alone, and how long that takes."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.formats.base import Part
from compaction_service.engine.redaction import Redactor
from compaction_service.engine.summary.span import SpanMessage

R40 = "q7Wm2Zr9Xk4Lp8Vt3Nb6Hs1Jd5Fg0Yc2Ea7Ru4T"  # 39 letters and digits; no key of anybody
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabc+/=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

# text, the secret in it, its kind
SECRETS = [
    (f"key sk-{R40} here", f"sk-{R40}", "api_key"),
    (f"sk-ant-api03-{R40}-AA", f"sk-ant-api03-{R40}-AA", "api_key"),
    (f"OPENAI=sk-proj-{R40}", f"sk-proj-{R40}", "api_key"),
    (f"token ghp_{R40[:36]}", f"ghp_{R40[:36]}", "api_key"),
    (f"github_pat_{R40}", f"github_pat_{R40}", "api_key"),
    (f"(glpat-{R40[:20]})", f"glpat-{R40[:20]}", "api_key"),
    (f"xoxb-1234567890-{R40[:24]}", f"xoxb-1234567890-{R40[:24]}", "api_key"),
    ("AKIA" + "Q7WM2ZR9XK4LP8VT", "AKIAQ7WM2ZR9XK4LP8VT", "api_key"),
    ("AIza" + R40[:35], "AIza" + R40[:35], "api_key"),
    (f"hf_{R40[:34]}.", f"hf_{R40[:34]}", "api_key"),
    (f"npm_{R40[:36]}", f"npm_{R40[:36]}", "api_key"),
    (f"sk_live_{R40[:24]}", f"sk_live_{R40[:24]}", "api_key"),
    (f"ck_0123456789ab_{R40}abcd", f"ck_0123456789ab_{R40}abcd", "api_key"),
    (f"SG.{R40[:22]}.{R40}", f"SG.{R40[:22]}.{R40}", "api_key"),
    (f"cookie={JWT};", JWT, "token"),
    (f"Authorization: Bearer {R40}", R40, "token"),
    ("curl -H 'authorization: basic dXNlcjpwYXNzd29yZDEyMw=='", "dXNlcjpwYXNzd29yZDEyMw==", "token"),
    ("postgresql://app:s3cr3t-pw@db.example/x", "s3cr3t-pw", "password"),
    ("redis://:hunter22@cache:6379/0", "hunter22", "password"),
    (f'"api_key": "{R40}"', R40, "secret"),
    ('{\\"password\\": \\"correct horse\\"}', "correct horse", "secret"),
    ("DB_PASSWORD=hunter2!", "hunter2!", "secret"),
    ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz", "secret"),
    ("client_secret: 'a1b2c3d4e5f6a7'", "a1b2c3d4e5f6a7", "secret"),
    (f"access-token => {R40}", R40, "secret"),
    (f"x\n{PEM}\ny", PEM, "private_key"),
    (json.dumps({"key": PEM}), "MIIEowIBAAKCAQEA", "private_key"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk", "b3BlbnNzaC1rZXk", "private_key"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQO\n-----END PGP PRIVATE KEY BLOCK-----", "lQO", "private_key"),
    ("write to Ann.Lee+x@mail.example.co.uk, please", "Ann.Lee+x@mail.example.co.uk", "email"),
    ("<j\u00fcrgen@b\u00fccher.example>", "j\u00fcrgen@b\u00fccher.example", "email"),
    ("mailto:a@b.io", "a@b.io", "email"),
    ("pay with 4111 1111 1111 1111 now", "4111 1111 1111 1111", "card"),
    ("4111-1111-1111-1111", "4111-1111-1111-1111", "card"),
    ("5555555555554444,", "5555555555554444", "card"),
    ("amex 3782 822463 10005", "3782 822463 10005", "card"),
]  # fmt: skip
HARMLESS = [
    "the secret of a good soup", "password: required", "Password reset was sent", "token: 128", "max_tokens=4096",
    '"token_count": 123456789012345', "tokenizer: o200k_base_version_2", "api_key=os.environ['API_KEY']",
    "password=${DB_PASSWORD}", "secret: <your-secret-here>", "api_key: null", "git@github.com:a/b.git",
    "@app.route('/x')", "x @ y", "npm i @types/node@20.1.2", "the bearer of good news and tidings arrived",
    "basic understanding of things", "4111 1111 1111 1112", "1700000000000", "0000000000000000", "4444444444444444",
    "id 01938f40-0000-7aaa-8000-000000000001", "https://example.com:8080/a@b", "sk-learn is a library", "skeleton",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b", "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "version 4.1111.1111.11111111", "",
    "@", "a@", "@b.c",
    "http://host/path?token=", "eyJ", "Total: 4,111,111,111,111,111", "phone +49 30 1234567",
]  # fmt: skip


def redacted(text: str) -> tuple[str, dict[str, int]]:
    redactor = Redactor()
    return redactor.text(text), dict(redactor.counts)


@pytest.mark.parametrize(("text", "secret", "kind"), SECRETS)
def test_text__with_a_secret__has_its_kind_in_its_place(text: str, secret: str, kind: str) -> None:
    found, counts = redacted(text)
    assert secret not in found
    assert f"[redacted: {kind}]" in found
    assert counts == {kind: 1}


@pytest.mark.parametrize(("text", "secret", "kind"), SECRETS)
def test_text__around_the_secret__stays(text: str, secret: str, kind: str) -> None:
    found, _ = redacted(f"Before it. {text} After it.")
    assert found.startswith("Before it. ")
    assert found.endswith(" After it.") or "BEGIN OPENSSH" in text  # without an end, all that follows is the key's


@pytest.mark.parametrize("text", HARMLESS)
def test_text__that_only_looks_like_it__stays(text: str) -> None:
    assert redacted(text) == (text, {})


def test_text__redacted_twice__changes_no_more() -> None:
    once, _ = redacted(" ".join(text for text, _, kind in SECRETS if kind != "private_key"))
    assert redacted(once) == (once, {})


def test_value__nested__is_redacted_in_its_texts_and_not_its_keys() -> None:
    redactor = Redactor()
    value = {"a@b.io": ["to a@b.io", {"n": 1, "none": None}], "kind": "x"}
    assert redactor.value(value) == {"a@b.io": ["to [redacted: email]", {"n": 1, "none": None}], "kind": "x"}
    assert redactor.counts == {"email": 1}


def test_span__parts__are_redacted_and_the_messages_untouched() -> None:
    message = SpanMessage(
        1, "user", None, (Part("text", "mail a@b.io"), Part("call", '{"to": "a@b.io"}', "send", "c1"))
    )
    redactor = Redactor()
    (found,) = redactor.span([message])
    assert [part.text for part in found.parts] == ["mail [redacted: email]", '{"to": "[redacted: email]"}']
    assert [part.name for part in found.parts] == [None, "send"]
    assert message.parts[0].text == "mail a@b.io"
    assert redactor.counts == {"email": 2}


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=300))
def test_text__any__comes_back(text: str) -> None:
    found, counts = redacted(text)
    assert (found == text) == (not counts)


HOSTILE = [
    "a", "@", "a@", "a@a", "a!@", "a.@", "a.a@a.a.", "-", "--", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----x-----END ", "4", "4 ", "4-", "4111 ", "4111111111111111 ", "eyJ", "eyJeyJaaaaaaaa.",
    "eyJaaaaaaaaa.eyJaaaaaaaaa.",
    "sk-", "sk_", "ghp_", "sk-aaaaaaaaaaaaaaaaaaaa", "bearer ", "bearer  a",
    "Bearer aaaaaaaaaaaaaaaa1 ", "a://", "a://a:", "a://a:a", "a:a@", "password",
    "password=", "password:'", 'password="a', "password:\\",
    "token: token: ", "secret_", "secret ",
    "\u00fc@", "\u00fc", "[redacted: ", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_text__hostile__takes_time_in_line_with_its_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        best = 1e9
        for _ in range(3):
            started = time.process_time()
            redacted(text)
            best = min(best, time.process_time() - started)
        return best

    short, long = seconds(20_000), seconds(160_000)
    assert long < 0.25 or long < 16 * short  # eight times the text: 64 times the time, were it quadratic


def test_text__mixed_at_random__takes_time_in_line_with_its_length() -> None:
    pick = random.Random(5)  # noqa: S311
    pieces = [*HOSTILE, *(text for text, *_ in SECRETS)]
    text = "".join(pick.choice(pieces) for _ in range(20_000))
    started = time.process_time()
    redacted(text)
    assert time.process_time() - started < 5
