from __future__ import annotations

import math
from typing import Any

import pytest

from compaction_service.conversations import calibration
from compaction_service.conversations.models import Conversation, ModelCalibration
from tenants.scope import tenant_scope
from tests.inprocess import Service

CLAUDE = "claude-3-5-sonnet-20241022"
TEXT = " ".join(f"step {n} changed src/module_{n}.py" for n in range(200))


@pytest.mark.parametrize("reported", [10**400, -(10**400), True, 10**15], ids=["huge", "negative", "true", "large"])
def test_append__usage_with_an_absurd_number__is_stored_and_the_factor_stays_in_bounds(
    service: Service, reported: int
) -> None:
    path = service.create(model="claude-3-5-sonnet-20241022")
    service.append(path, {"role": "user", "content": TEXT}, {"role": "assistant", "content": "Yes."})
    version = service.context(path)["context_version"]

    service.append(path, {"role": "user", "content": "Go."}, usage={"prompt_tokens": reported}, context_version=version)

    with tenant_scope(service.tenant_id):
        row = Conversation.objects.get(id=path.removeprefix("conversations/"))
    assert calibration.LOWEST <= row.factor <= calibration.HIGHEST


def test_overflow__reported_again_and_again__the_factor_stays_in_bounds(service: Service) -> None:
    path = service.create()
    service.append(path, *({"role": role, "content": TEXT} for role in ("user", "assistant", "user", "assistant")))

    for _ in range(5):
        asked = {"trigger": "overflow", "overflow": {"input_tokens": 2**31 - 1}}
        service.post(f"{path}/compactions", asked, status=202)

    with tenant_scope(service.tenant_id):
        row = Conversation.objects.get(id=path.removeprefix("conversations/"))
    assert row.factor == calibration.HIGHEST


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 900, "completion_tokens": 7, "total_tokens": 907}, 900),
        ({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 900),
        ({"prompt_tokens": 900, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 50}, 900),
        ({"input_tokens": 900, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 800}}, 900),
        ({"input_tokens": 100, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 500}, 900),
        ({"input_tokens": 100, "cache_creation_input_tokens": None, "cache_read_input_tokens": 800}, 900),
        (
            {
                "input_tokens": 100,
                "cache_creation_input_tokens": 800,
                "cache_creation": {"ephemeral_5m_input_tokens": 800, "ephemeral_1h_input_tokens": 0},
            },
            900,
        ),
        ({"input_tokens": 900, "cache_read_input_tokens": -400}, 900),
        ({"prompt_tokens": None, "input_tokens": 900}, 900),
        ({"completion_tokens": 7}, None),
        ({"prompt_tokens": -1}, None),
        ({"prompt_tokens": True}, None),
        ({"prompt_tokens": "900"}, None),
        ({"prompt_tokens": 900.5}, None),
        ({}, None),
    ],
)
def test_input_tokens__either_providers_usage__is_the_whole_prompt(usage: dict[str, Any], tokens: int | None) -> None:
    assert calibration.input_tokens(usage) == tokens


def row_of(service: Service, path: str) -> Conversation:
    with tenant_scope(service.tenant_id):
        return Conversation.objects.get(id=path.removeprefix("conversations/"))


def report(service: Service, path: str, ratio: float, *, version: str | None = None, text: str = "Go.") -> Any:
    """Append a response with the usage of a provider that counts `ratio` times the encoding; the meter after it."""
    tokens = round(calibration.raw_tokens(row_of(service, path)) * ratio)
    given = version or service.context(path)["context_version"]
    return service.append(
        path, {"role": "assistant", "content": text}, usage={"input_tokens": tokens}, context_version=given
    )["meter"]


def with_text(service: Service, **fields: Any) -> str:
    path = service.create(model=CLAUDE, context_window=100_000, **fields)
    service.append(path, {"role": "user", "content": TEXT}, {"role": "assistant", "content": "Yes."})
    return path


def test_report__a_provider_that_counts_more__the_meter_is_within_3_percent_after_a_few(service: Service) -> None:
    path = with_text(service)

    for _ in range(4):
        meter = report(service, path, 1.4, text=TEXT)

    assert meter["method"] == "calibrated"
    assert meter["tokens"] == pytest.approx(calibration.raw_tokens(row_of(service, path)) * 1.4, rel=0.03)


def test_report__about_an_older_context__is_ignored(service: Service) -> None:
    path = with_text(service)
    version = service.context(path)["context_version"]
    service.append(path, {"role": "user", "content": TEXT})

    assert report(service, path, 1.4, version=version)["method"] == "estimate"


def test_report__without_a_version__is_ignored(service: Service) -> None:
    path = with_text(service)

    service.append(path, {"role": "assistant", "content": "Go."}, usage={"input_tokens": 5000})

    assert not row_of(service, path).calibrated


def test_report__an_exactly_counted_model__changes_nothing(service: Service) -> None:
    path = service.create()
    service.append(path, {"role": "user", "content": TEXT})

    assert report(service, path, 1.4)["method"] == "exact"
    with tenant_scope(service.tenant_id):
        assert not ModelCalibration.objects.exists()


def test_report__an_exact_model_that_a_refusal_had_raised__comes_down_again_but_not_under_one(
    service: Service,
) -> None:
    path = service.create(context_window=100_000)
    service.append(path, {"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT})
    raw = calibration.raw_tokens(row_of(service, path))
    asked = {"trigger": "overflow", "overflow": {"input_tokens": raw * 2}}
    service.post(f"{path}/compactions", asked, status=200)  # there is nothing to cover; the number counts all the same
    assert row_of(service, path).factor == pytest.approx(2.0)

    for _ in range(6):
        report(service, path, 0.9)

    assert 1.0 <= row_of(service, path).factor < 1.03
    assert service.get(path)["meter"]["method"] == "calibrated"


def test_create__a_model_the_tenant_has_reported_on__begins_with_what_was_learned(
    service: Service, stranger: Any
) -> None:
    path = with_text(service)
    for _ in range(5):
        report(service, path, 1.4)

    meter = service.get(with_text(service))["meter"]

    assert meter["method"] == "calibrated"
    learned = calibration.raw_tokens(row_of(service, with_text(service)))
    assert meter["tokens"] == pytest.approx(learned * 1.4, rel=0.12)
    with tenant_scope(stranger.id):
        assert not ModelCalibration.objects.exists()


def test_create__after_one_odd_report__begins_not_far_off(service: Service) -> None:
    path = with_text(service)
    for _ in range(5):
        report(service, path, 1.1)  # the family's own factor: nothing is learned, nothing is written
    with tenant_scope(service.tenant_id):
        assert not ModelCalibration.objects.exists()

    report(service, path, 1.4)
    report(service, path, 3.0)

    with tenant_scope(service.tenant_id):
        assert ModelCalibration.objects.get().factor < 1.8


def test_create__the_registry_counts_the_model_otherwise_now__what_was_learned_is_not_used(service: Service) -> None:
    name = service.get(f"models/{CLAUDE}")["name"]
    with tenant_scope(service.tenant_id):
        ModelCalibration.objects.create(model=name, tokenizer="o200k_base/other", factor=2.5)

    assert service.get(with_text(service))["meter"]["method"] == "estimate"
    report(service, with_text(service), 1.4)

    with tenant_scope(service.tenant_id):
        row = ModelCalibration.objects.get()
    assert row.tokenizer == "cl100k_base/claude-3"
    assert row.factor < 1.5


def test_overflow__below_the_limit_and_compaction_off__compacts_and_believes_the_provider(service: Service) -> None:
    path = service.create(context_window=100_000, policy={"enabled": False, "target": 0})
    service.append(path, *({"role": role, "content": TEXT} for role in ("user", "assistant") * 3))
    tokens = service.get(path)["meter"]["tokens"]

    asked = {"trigger": "overflow", "overflow": {"input_tokens": math.ceil(tokens * 1.5), "max_tokens": 8192}}
    entry = service.compact(path, **asked)

    assert (entry["outcome"], entry["trigger"]) == ("applied", "overflow")
    assert entry["context_before"]["tokens"] == pytest.approx(tokens * 1.5, rel=0.01)
    assert row_of(service, path).factor == pytest.approx(1.5, rel=0.01)


def test_overflow__a_smaller_number_than_ours__lowers_nothing_and_compacts(service: Service) -> None:
    path = service.create(context_window=100_000, policy={"target": 0})
    service.append(path, *({"role": role, "content": TEXT} for role in ("user", "assistant") * 3))

    assert service.compact(path, trigger="overflow", overflow={"input_tokens": 10})["outcome"] == "applied"
    assert row_of(service, path).factor == 1.0


def test_overflow__without_numbers__compacts(service: Service) -> None:
    path = service.create(context_window=100_000, policy={"target": 0})
    service.append(path, *({"role": role, "content": TEXT} for role in ("user", "assistant") * 3))

    assert service.compact(path, trigger="overflow")["outcome"] == "applied"
