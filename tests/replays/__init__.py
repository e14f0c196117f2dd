"""Recorded conversations through the whole service in this process, and what must hold of every context on the way."""
