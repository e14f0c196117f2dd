"""A model field for JSON that may hold anything a client sends: NUL and lone surrogates, which `jsonb` refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from compaction_service.engine import jsontext

if TYPE_CHECKING:
    _Text = models.TextField[Any, Any]  # Django's fields are generic in their stubs only
else:
    _Text = models.TextField


class JSONText(_Text):
    """JSON kept as text. Values are plain Python; the database cannot look inside."""

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, _expression: Any, _connection: Any) -> Any:
        if value == "[]":  # of most messages' calls and answers; reading it takes longer than seeing it
            return []
        return None if value is None else jsontext.loads(value)

    def to_python(self, value: Any) -> Any:
        return value

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else jsontext.dumps(value)

    def value_to_string(self, obj: Any) -> str:
        return jsontext.dumps(self.value_from_object(obj))
