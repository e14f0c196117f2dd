"""The registry in the admin: values set here become overrides."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Field, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminSelectWidget

from compaction_service.registry import services
from compaction_service.registry.models import Model
from compaction_service.tokens.families import TOKENIZERS
from tenants.platform_admin import noted
from tenants.scope import platform_scope


@admin.register(Model)
class RegistryModelAdmin(ModelAdmin):  # type: ignore[misc]  # unfold is untyped
    """Models with their windows and prices. A changed field is an override and survives every sync."""

    list_display = ["name", "provider", "context_window", "max_output", "tokenizer", "source", "updated_at"]
    list_filter = ["source", "tokenizer", "provider"]
    search_fields = ["name", "provider"]
    fields = ["name", "provider", *services.FIELDS, "source", "overridden", "updated_at"]
    readonly_fields = ["provider", "source", "overridden", "updated_at"]
    show_full_result_count = False
    actions = ["clear_overrides"]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        fixed = [*super().get_readonly_fields(request, obj)]
        return ["name", *fixed] if obj else fixed

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "tokenizer":
            choices = [(name, name) for name in TOKENIZERS]
            return forms.ChoiceField(choices=choices, widget=UnfoldAdminSelectWidget, help_text=db_field.help_text)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Model, form: forms.ModelForm[Model], _change: bool) -> None:
        """Only what the form changed is overridden; an emptied field gets litellm's value back."""
        changed = {name: form.cleaned_data[name] for name in services.FIELDS if name in form.changed_data}
        obj.pk = services.override_set(obj.name, **changed).pk
        noted(request, obj, "model.changed", changed)

    @admin.action(description="Undo overrides of the selected models")
    def clear_overrides(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        with platform_scope():  # an action has no transaction of its own
            models = list(queryset)
            cleared = sum(services.override_clear(model.name) for model in models)
            for model in models:
                noted(request, model, "model.cleared")
        self.message_user(request, f"{cleared} models follow litellm's list again.")
