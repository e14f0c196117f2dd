"""Static files of the admin and the docs, from the web process."""

from __future__ import annotations

from pathlib import Path

from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]


class StaticMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise, content without `collectstatic`: where nothing was collected, the packages' own files are served."""

    def add_files(self, root: str, prefix: str | None = None) -> None:
        if Path(root).is_dir():  # WhiteNoise would warn at every start
            super().add_files(root, prefix)
