"""The coarse count."""

from __future__ import annotations

import pytest

from compaction_service.tokens.chars4 import chars4


@pytest.mark.parametrize(("chars", "tokens"), [([], 0), ([3], 0), ([3, 3], 1), ([4, 7], 2), ([10, 10, 10], 7)])
def test_chars4__lengths__are_summed_then_divided_then_floored_once(chars: list[int], tokens: int) -> None:
    assert chars4(chars) == tokens
