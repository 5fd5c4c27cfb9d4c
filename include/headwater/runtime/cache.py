"""Where downloads are kept between runs and checkouts."""

from __future__ import annotations

from headwater.storage.local_cache import cache_root

__all__ = ["cache_root"]
