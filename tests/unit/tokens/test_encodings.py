"""The encodings come from files on this machine, and are tiktoken's own."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken

from compaction_service.tokens import encodings


@pytest.mark.parametrize("name", encodings.NAMES)
def test_encoding__each_name__is_tiktokens_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(encodings._folder()))
    theirs = tiktoken.get_encoding(name)
    ours = encodings.encoding(name)
    assert ours._pat_str == theirs._pat_str
    assert ours._mergeable_ranks == theirs._mergeable_ranks


def test_encoding__asked_by_many_threads__is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_loaded", {})
    with ThreadPoolExecutor(8) as pool:
        found = set(map(id, pool.map(encodings.encoding, [encodings.CL100K] * 16)))
    assert len(found) == 1


def test_encoding__without_the_file__says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(encodings, "_loaded", {})
    monkeypatch.setattr(encodings, "_folder", lambda: tmp_path)
    with pytest.raises(encodings.EncodingMissingError, match="cannot be read"):
        encodings.encoding(encodings.O200K)


def test_counting__in_a_fresh_process__imports_neither_litellm_nor_django() -> None:
    code = (
        "import sys; from compaction_service.tokens.messages import counter_for;"
        "counter_for('o200k_base', 1.0).text('hello'); print([m for m in ('litellm', 'django') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
