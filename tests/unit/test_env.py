from __future__ import annotations

from pathlib import Path

import pytest

from compaction_service import env


@pytest.fixture(autouse=True)
def _no_local_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(env, "LOCAL_ENV", tmp_path / "local.env")
    env._local_values.cache_clear()
    monkeypatch.delenv("X", raising=False)
    monkeypatch.delenv("X_FILE", raising=False)


def test_text__order__is_variable_then_file_then_local_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert env.text("X", "default") == "default"
    (tmp_path / "local.env").write_text("# comment\n\nX = local=1\n")
    env._local_values.cache_clear()
    assert env.text("X", "default") == "local=1"
    (tmp_path / "secret").write_text(" from a file\n")
    monkeypatch.setenv("X_FILE", str(tmp_path / "secret"))
    assert env.text("X") == "from a file"
    monkeypatch.delenv("X_FILE")
    monkeypatch.setenv("X", "variable")
    assert env.text("X") == "variable"


def test_text__variable_and_file__is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "a")
    monkeypatch.setenv("X_FILE", "b")
    with pytest.raises(env.EnvError, match="not both"):
        env.text("X")


def test_text__file_missing__is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("X_FILE", str(tmp_path / "none"))
    with pytest.raises(env.EnvError, match="X_FILE cannot be read"):
        env.text("X")


@pytest.mark.parametrize(
    ("given", "expected"), [("true", True), ("ON", True), ("0", False), ("no", False), ("", False)]
)
def test_boolean__known_words__are_read(monkeypatch: pytest.MonkeyPatch, given: str, expected: bool) -> None:
    monkeypatch.setenv("X", given)
    assert env.boolean("X") is expected


@pytest.mark.parametrize("given", ["maybe", "2", "truee"])
def test_boolean__anything_else__is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("X", given)
    with pytest.raises(env.EnvError):
        env.boolean("X")


@pytest.mark.parametrize("given", ["x", "1.5", "-1"])
def test_integer__not_in_range__is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("X", given)
    with pytest.raises(env.EnvError):
        env.integer("X", 3)


def test_peppers__list__keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "2:b:c, 1:a")
    assert list(env.peppers("X").items()) == [(2, "b:c"), (1, "a")]


@pytest.mark.parametrize("given", ["hunter2", "1:\t", "x:hunter2", "1:a,1:b"])
def test_peppers__malformed__is_refused_without_quoting_it(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("X", given)
    with pytest.raises(env.EnvError) as raised:
        env.peppers("X")
    assert given not in str(raised.value)


def test_database__unix_socket_and_options__are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "postgresql://user:p%40ss@/db?host=/run/socket&sslmode=disable")
    found = env.database("X")
    assert found is not None
    assert (found["NAME"], found["USER"], found["PASSWORD"], found["HOST"]) == ("db", "user", "p@ss", "/run/socket")
    assert found["OPTIONS"]["sslmode"] == "disable"


@pytest.mark.parametrize(
    "given", ["mysql://secret@x/y", "postgresql://secret@host", "postgresql://secret:x@h/d?nope=1"]
)
def test_database__not_usable__is_refused_without_quoting_it(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("X", given)
    with pytest.raises(env.EnvError) as raised:
        env.database("X")
    assert "secret" not in str(raised.value)
