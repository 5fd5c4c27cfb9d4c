"""``cluster`` in ``pipeline.yml``: what differs where Spark runs on several machines. On one machine nothing of it has an effect."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from headwater.definitions.spec_model import Strict

# Parts of a path are plain: Spark cuts lists of jars at commas, and replaces ${...} in its settings.
_Folder = Annotated[str, StringConstraints(pattern=r"^(?:/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)+$")]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET_KEY = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?:[A-Za-z0-9._-]{1,253}")


class ClusterSpec(Strict):
    """How executors are set up, and on Kubernetes their pods and the driver's.

    Attributes:
        python: the Python that they run, a path or a name on their PATH; Spark's own default, ``python3``, where it is left out.
        image: the image of the pods; none is assumed.
        code: where that image has Headwater (``include`` and ``jobs``).
        cache: where it has Headwater's jars (HEADWATER_CACHE when it was built).
        pipelines: the folder that has this pipeline's folder in it; ``jobs/pipelines`` below ``code`` where it is left out.
        secrets: for each variable of the pods, the Kubernetes secret and the key that hold its value, ``NAME: secret:key``.

    """

    python: str | None = Field(default=None, min_length=1, pattern=r"^\S+$")
    image: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}$")
    code: _Folder = "/opt/headwater"
    cache: _Folder = "/opt/headwater-cache"
    pipelines: _Folder | None = None
    secrets: dict[str, str] = Field(default_factory=dict)

    @field_validator("secrets", mode="before")
    @classmethod
    def _references(cls, secrets: Any) -> Any:
        for name, reference in secrets.items() if isinstance(secrets, dict) else ():
            if not _VARIABLE.fullmatch(str(name)):
                raise ValueError(f"{name!r} can't be the name of a variable")
            if not _SECRET_KEY.fullmatch(
                str(reference)
            ):  # which may be the secret itself: it is not repeated
                raise ValueError(
                    f"for {name}, write the name of a Kubernetes secret and that of a key in it, with a colon between them"
                )
        return secrets

    @property
    def pipeline_root(self) -> str:
        """Where the image has the folder of the pipeline."""
        return self.pipelines or f"{self.code}/jobs/pipelines"
