from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0005_triggers")]

    operations = [
        migrations.AddField("conversation", "thinking_to", models.PositiveIntegerField(default=0)),
        migrations.AddField("conversation", "thinking_version", models.PositiveBigIntegerField(default=0)),
        migrations.AddField("message", "thinking_tokens", models.PositiveIntegerField(default=0)),
        migrations.AddField("message", "thinking_chars", models.PositiveIntegerField(default=0)),
    ]
