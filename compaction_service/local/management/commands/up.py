"""`manage.py up`: the service on this machine until Ctrl-C."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError

from compaction_service.local.errors import StackError
from compaction_service.local.stack import ACCOUNTS, DATA_DIR, USUAL_PORT, Stack, running_stack

CHECK_S = 0.5


class Command(BaseCommand):
    help = "Serve until Ctrl-C: PostgreSQL and Valkey (unless the environment names others), web, worker and beat."
    requires_system_checks = ()  # the settings' databases start further down

    def handle(self, *_args: Any, **_options: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        self.stdout.write("Starting; the first time takes some seconds longer.")
        try:
            with running_stack(os.environ, DATA_DIR) as stack:
                self._greet(stack)
                while True:
                    stack.group.check()
                    time.sleep(CHECK_S)
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        except StackError as exc:
            raise CommandError(str(exc)) from exc

    def _greet(self, stack: Stack) -> None:
        up = stack.accounts
        if not os.environ.get("PORT") and not stack.base_url.endswith(f":{USUAL_PORT}"):
            self.stdout.write(f"\n  Port {USUAL_PORT} is taken: another one was chosen. PORT=... names one.")
        self.stdout.write(
            f"\n  API       {up['api_base']}"
            f"\n  API key   {up['api_key']}"
            f"\n  API docs  {stack.base_url}/docs"
            f"\n  Admin     {up['admin_url']}  ({up['admin_user']} / {up['admin_password']})"
            f"\n  Logs      {stack.group.log_dir}"
            f"\n\n  Also in {DATA_DIR / ACCOUNTS}. Stop with Ctrl-C.\n"
        )


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
