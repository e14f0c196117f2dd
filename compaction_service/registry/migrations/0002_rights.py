from django.db import migrations

from tenants.rls import shared_table


class Migration(migrations.Migration):

    dependencies = [
        ("registry", "0001_initial"),
        ("tenants", "0002_rls"),
    ]

    operations = [shared_table("registry_model")]
