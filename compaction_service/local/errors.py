"""What goes wrong when a machine is set up."""

from __future__ import annotations


class StackError(Exception):
    """Something cannot be started or used. The message is for a person: what it is, and what to do."""
