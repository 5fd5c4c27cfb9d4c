"""The settings of a Lakeflow pipeline, as its JSON, its API and asset bundles write them: every key known.

What each becomes here is said in ``headwater.graph.lakeflow_spec``. Decision 0161.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Text = Annotated[str, BeforeValidator(_text)]
_Flag = Annotated[bool, Field(strict=True)]
_Count = Annotated[int, Field(strict=True, ge=0, le=100_000)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Autoscale(_Settings):
    """How many workers a cluster may have."""

    min_workers: _Count
    max_workers: _Count
    mode: Literal["ENHANCED", "LEGACY"] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Autoscale:
        if self.min_workers > self.max_workers:
            raise ValueError("min_workers is more than max_workers")
        return self


class Cluster(_Settings):
    """One entry of ``clusters``; what is typed ``Any`` has no counterpart here."""

    label: Literal["default", "updates", "maintenance"] = "default"
    num_workers: _Count | None = None
    autoscale: Autoscale | None = None
    spark_conf: dict[str, Text] = Field(default_factory=dict)
    node_type_id: Any = None
    driver_node_type_id: Any = None
    instance_pool_id: Any = None
    driver_instance_pool_id: Any = None
    policy_id: Any = None
    apply_policy_default_values: Any = None
    custom_tags: Any = None
    spark_env_vars: dict[str, Text] = Field(default_factory=dict)
    init_scripts: Any = None
    cluster_log_conf: Any = None
    aws_attributes: Any = None
    azure_attributes: Any = None
    gcp_attributes: Any = None
    ssh_public_keys: Any = None
    enable_local_disk_encryption: Any = None

    @model_validator(mode="after")
    def _one_size(self) -> Cluster:
        if self.num_workers is not None and self.autoscale is not None:
            raise ValueError("num_workers and autoscale exclude each other")
        return self


class Notification(_Settings):
    """Who is sent mail, and when."""

    email_recipients: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()


class LakeflowSettings(_Settings):
    """All settings of a pipeline. Keys of ``pipeline.yml`` may stand beside them, and are checked there."""

    name: Any = None
    id: Any = None
    catalog: Any = None
    schema_name: Any = Field(default=None, alias="schema")
    database: Any = None
    target: Any = None
    storage: str | None = None
    libraries: list[dict[str, Any]] | None = None
    root_path: str | None = None
    configuration: dict[str, Text] = Field(default_factory=dict)
    parameters: Any = None
    continuous: _Flag = False
    development: _Flag | None = None
    clusters: tuple[Cluster, ...] = ()
    notifications: tuple[Notification, ...] = ()
    tags: dict[str, Text] = Field(default_factory=dict)
    edition: Annotated[str, Field(pattern="(?i)^(core|pro|advanced)$")] | None = None
    channel: Annotated[str, Field(pattern="(?i)^(current|preview)$")] | None = None
    photon: _Flag | None = None
    serverless: _Flag | None = None
    event_log: dict[str, Any] | None = None
    environment: dict[str, Any] | None = None
    trigger: Any = None
    run_as: Any = None
    restart_window: Any = None
    budget_policy_id: Any = None
    usage_policy_id: Any = None
    deployment: Any = None
    allow_duplicate_names: Any = None
    expected_last_modified: Any = None
    dry_run: Any = None
    permissions: Any = None
    lifecycle: Any = None
    pipeline_type: Any = None
    data_sampling: Any = None
    rewind_generation_interval: Any = None
    serverless_compute_id: Any = None
    filters: Any = None
    ingestion_definition: Any = None
    gateway_definition: Any = None
    # Of pipeline.yml alone.
    spark: dict[str, Text] = Field(default_factory=dict)
    airflow: dict[str, Any] = Field(default_factory=dict)
    lint: Any = None
    brokers: Any = None
    maintenance: Any = None
    lease: Any = None
    object_store: Any = None
    cluster: Any = None
    metastore: Any = None
    readers: Any = None

    @model_validator(mode="after")
    def _no_managed_ingestion(self) -> LakeflowSettings:
        for key in ("filters", "ingestion_definition", "gateway_definition"):
            if getattr(self, key) is not None:
                raise ValueError(
                    f"`{key}` decides what the pipeline does, and has no counterpart here; write its tables as sources and take it out"
                )
        return self


# Keys that pipeline.yml does not have (``continuous`` has an answer of its own there).
_OURS = (
    "spark",
    "airflow",
    "lint",
    "brokers",
    "maintenance",
    "lease",
    "trigger",
    "event_log",
    "continuous",
    "object_store",
    "cluster",
    "metastore",
    "readers",
)
_SHARED = (
    "name",
    "id",
    "catalog",
    "schema_name",
    "database",
    "target",
    "storage",
    "libraries",
    "configuration",
    "parameters",
)
LAKEFLOW_ONLY = frozenset(LakeflowSettings.model_fields) - {*_OURS, *_SHARED}


def is_lakeflow(data: Mapping[str, Any]) -> bool:
    """Whether a file has settings that only Lakeflow's form has."""
    return not LAKEFLOW_ONLY.isdisjoint(data)
