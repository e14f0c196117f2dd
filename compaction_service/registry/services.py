"""Writes of the registry, under the platform role: syncing with litellm's file, and overrides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils import timezone

from compaction_service.registry import catalogue, lookup
from compaction_service.registry.models import Model, Source
from compaction_service.registry.selectors import forget
from compaction_service.tokens.families import family, tokenizer_for

# What an override may set, and a sync writes unless overridden.
FIELDS = ("context_window", "max_output", "tokenizer", "factor", "input_price", "output_price")
_BATCH = 500


class RegistryError(Exception):
    """An override that cannot be taken; `field` names what is wrong."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Drift:
    """How the table differs from litellm's file: names, in order."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # rows that the file no longer has: kept, conversations use them

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(names) for name, names in asdict(self).items()}


def drift() -> Drift:
    """What a sync would do; changes nothing."""
    return _compare(catalogue.read(), list(Model.objects.all()))[0]


def sync(progress: Callable[[int, int], None] = lambda _done, _total: None) -> Drift:
    """Brings the table up to litellm's file and says what was done. Overridden values win and stay; rows that the
    file no longer has stay too. `progress` is told how many rows are written, of how many."""
    done, rows = _compare(catalogue.read(), list(Model.objects.select_for_update()))
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        Model.objects.bulk_create(
            batch,
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["key", "provider", *FIELDS, "updated_at"],
        )
        progress(start + len(batch), len(rows))
    forget()
    return done


def override_set(name: str, **values: Any) -> Model:
    """Sets values of a model by hand (None gives litellm's back), making the row where there is none.

    Any of FIELDS. Raises RegistryError naming the field.
    """
    if not 0 < len(name) <= lookup.MAX_NAME:
        raise RegistryError("name", f"Must have 1 to {lookup.MAX_NAME} characters.")
    values = {field: _checked(field, value) for field, value in values.items()}
    listed = next((entry for entry in catalogue.read() if entry.name == name), None)
    row = Model.objects.select_for_update().filter(name=name).first() or Model(name=name)
    kept = [field for field in row.overridden if field not in values]
    row.overridden = sorted({*kept, *(field for field, value in values.items() if value is not None)})
    for field_name in row.overridden:
        if field_name in values:
            setattr(row, field_name, values[field_name])
    _fill(row, listed)  # after, since an overridden tokenizer brings its own factor
    row.source = Source.OVERRIDE if row.overridden or listed is None else Source.LITELLM
    row.save()
    forget()
    return row


def override_clear(name: str) -> bool:
    """Undoes all overrides of a model; a row that litellm does not list goes. False: there was nothing to undo."""
    row = Model.objects.select_for_update().filter(name=name, source=Source.OVERRIDE).first()
    if row is None:
        return False
    listed = next((entry for entry in catalogue.read() if entry.name == name), None)
    if listed is None:
        row.delete()
    else:
        row.overridden, row.source = [], Source.LITELLM
        _fill(row, listed)
        row.save()
    forget()
    return True


def _compare(entries: Sequence[catalogue.Entry], rows: Sequence[Model]) -> tuple[Drift, list[Model]]:
    """How the rows differ from the entries, and the rows to write."""
    found = Drift()
    to_write = []
    now = timezone.now()
    by_name = {row.name: row for row in rows}
    for entry in entries:
        row = by_name.pop(entry.name, None)
        names = found.added if row is None else found.changed
        row = row or Model(name=entry.name)
        if _fill(row, entry) or row.pk is None:
            row.updated_at = now  # bulk_create leaves it alone on a conflict
            to_write.append(row)
            names.append(entry.name)
        else:
            found.same.append(entry.name)
    found.absent.extend(sorted(by_name))
    return found, to_write


def _fill(row: Model, entry: catalogue.Entry | None) -> bool:
    """Gives the row what its name and litellm's entry say, overridden values apart. Whether that changed anything."""
    tokenizer = row.tokenizer if "tokenizer" in row.overridden else tokenizer_for(row.name)
    values: dict[str, Any] = {
        "key": lookup.key(row.name),
        "provider": entry.provider if entry else row.provider,
        "context_window": entry and entry.context_window,
        "max_output": entry and entry.max_output,
        "tokenizer": tokenizer,
        "factor": family(tokenizer).factor,
        "input_price": entry and entry.input_price,
        "output_price": entry and entry.output_price,
    }
    changed = {
        name: value for name, value in values.items() if name not in row.overridden and getattr(row, name) != value
    }
    for name, value in changed.items():
        setattr(row, name, value)
    return bool(changed)


def _checked(field: str, value: Any) -> Any:
    if field not in FIELDS:
        raise RegistryError(field, "There is no such field.")
    if value is None:
        return None
    if field in ("context_window", "max_output"):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
            raise RegistryError(field, "Must be a whole number of tokens.")
    elif field == "tokenizer":
        try:
            family(value)
        except ValueError as error:
            raise RegistryError(field, str(error)) from None
    elif field == "factor":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.1 <= value <= 10:
            raise RegistryError(field, "Must be from 0.1 to 10.")
    else:
        return _price(field, value)
    return value


def _price(field: str, value: Any) -> Decimal:
    try:
        price = Decimal(str(value))
    except InvalidOperation:
        raise RegistryError(field, "Must be a number.") from None
    if not price.is_finite() or not 0 <= price < 10_000:
        raise RegistryError(field, "Must be from 0 to below 10,000 USD per token.")
    return price.quantize(Decimal(1).scaleb(-catalogue.PRICE_PLACES))
