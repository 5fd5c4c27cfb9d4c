"""Who has a lease: what is written into it, and what a second one is answered."""

from __future__ import annotations

import json
import logging
import math
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headwater.errors import UpdateInProgress

_log = logging.getLogger("headwater.leases")


@dataclass(frozen=True)
class Holder:
    """Who holds a lease, as shown to others. ``lock``: identifies the local file that it has locked as well, if any."""

    update_id: str
    token: int = 0
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    since: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    lock: tuple[str, int, int] | None = None

    def with_token(self, token: int) -> Holder:
        """The same holder with another token."""
        return replace(self, token=token)

    def text(self, **more: int) -> str:
        """What is written into the lease."""
        fields = {key: value for key, value in asdict(self).items() if value is not None}
        return json.dumps({**fields, **more})

    def wrote(self, text: str) -> bool:
        """Whether it is this holder that wrote a text."""
        holder = holder_of(text)
        return (holder.get("update_id"), holder.get("token")) == (self.update_id, self.token)


def holder_of(text: str) -> dict[str, Any]:
    """The holder that a lease names; empty where it can't be parsed."""
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}  # its writer died halfway
    return value if isinstance(value, dict) else {}


def token_of(recorded: Mapping[str, Any]) -> int:
    """The token of a holder as ``holder_of`` gives it; 0 where it names none, or something that is no number."""
    token = recorded.get("token")
    return token if isinstance(token, int) else 0


def in_progress(content: str, where: object, *, dead_in: timedelta | None = None) -> UpdateInProgress:
    """The error for a second holder. ``content``: the lease's text; ``dead_in``: how soon the lease of a dead holder is free."""
    remedy = "Wait until it has ended; two at once would write the same checkpoints."
    if dead_in is not None:
        seconds = max(1, math.ceil(dead_in.total_seconds()))
        remedy += f" If its process was killed, the lease is free in {seconds} s at most."
    return UpdateInProgress(
        f"Another update of this pipeline is running: {_shown(content)}.",
        where=where,
        remedy=remedy,
    )


def log_wait(content: str, seconds: float) -> None:
    """Log for whom one waits, and how long at most. ``content``: the lease's text."""
    _log.info(
        "Another update of this pipeline is running: %s. This one waits for its end, up to %.0f s.",
        _shown(content),
        seconds,
    )


def _shown(content: str) -> str:
    """A holder for people: its token is not theirs to see."""
    if not content.strip():
        return "just starting"
    holder = holder_of(content)
    if "update_id" not in holder:
        return "its lease can't be read"
    place = f"process {holder.get('process')} of {holder.get('host')}"
    return f"{holder['update_id']}, {place}, since {holder.get('since')}"
