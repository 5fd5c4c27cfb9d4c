"""``cluster`` in ``pipeline.yml``: what differs where Spark runs on several machines. On one machine nothing of it has an effect."""

from __future__ import annotations

from pydantic import Field

from headwater.definitions.spec_model import Strict


class ClusterSpec(Strict):
    """How executors are set up.

    ``python``: the Python that they run, a path or a name on their PATH; Spark's own default, ``python3``, where it is left out.
    """

    python: str | None = Field(default=None, min_length=1, pattern=r"^\S+$")
