"""Where copies that can be made again are kept between runs and checkouts."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the folder for downloads: ``HEADWATER_CACHE``, else ``headwater`` in the user's cache folder."""
    if chosen := os.environ.get("HEADWATER_CACHE"):
        return Path(chosen).expanduser().resolve()
    users = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(users).expanduser().resolve() / "headwater"
