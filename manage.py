#!/usr/bin/env python
"""Django's command line: `python manage.py help` lists the commands of every app."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command with this project's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compaction_service.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
