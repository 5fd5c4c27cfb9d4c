from __future__ import annotations

from tests.shared_broker import shared_broker

__all__ = ["shared_broker"]
