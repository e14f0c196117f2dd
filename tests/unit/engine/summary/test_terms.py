from __future__ import annotations

import time

import pytest

from compaction_service.engine.summary.terms import backticked, paths, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see src/a/b.py:12:3, please", ["src/a/b.py"]),
        ("查看/etc/nginx.conf文件", ["/etc/nginx.conf"]),
        ("./run.sh and ../x/y and ~/notes.md", ["./run.sh", "../x/y", "~/notes.md"]),
        (r"open C:\Users\me\a.txt now", [r"C:\Users\me\a.txt"]),
        ("--config=conf/x.yaml", ["conf/x.yaml"]),
        ("README.md, main.go", ["README.md", "main.go"]),
        ("src/utils/helpers", ["src/utils/helpers"]),
        ("and/or, 24/7/365, 2023/05/08, km/h, </div>, e.g. HTTP/1.1, i.e. x.y", []),
    ],
)
def test_paths__text__files_only(text: str, expected: list[str]) -> None:
    assert paths(text) == expected


def test_terms__mixed__kinds() -> None:
    found = {
        t.text: t.kind
        for t in terms(
            "getUser MAX_LEN ValueError sha256 INV-2931 std::vector os.path @a/b 3.14 https://a.b/c?d=e. plain Word"
        )
    }
    assert found == {
        "getUser": "identifier",
        "MAX_LEN": "identifier",
        "ValueError": "identifier",
        "sha256": "identifier",
        "INV-2931": "identifier",
        "std::vector": "identifier",
        "os.path": "identifier",
        "@a/b": "identifier",
        "3.14": "number",
        "https://a.b/c?d=e": "url",
    }


def test_backticked__code_spans__inner_text() -> None:
    assert backticked("run `make test` or `x` or ```") == ["make test"]


@pytest.mark.parametrize("unit", ["a", "a/", "_", "a_", "aA", "::", "a::", "=", "\\", "C:\\", "`", "1", "-", ".", "a."])
@pytest.mark.parametrize("every", [50, 300_000])
def test_terms__a_long_run_of_one_unit__linear_time(unit: str, every: int) -> None:
    block = unit * (min(every, 300_000) // len(unit))
    text = f"{block} " * (300_000 // len(block))
    start = time.process_time()
    list(terms(text))
    backticked(text)
    assert time.process_time() - start < 2
