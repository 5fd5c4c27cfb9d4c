"""Refuse a refresh policy that a view's query can never keep: before anything is written, with Lakeflow's reason."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.definitions.dataset import Dataset
from headwater.incremental.conditions import NeverIncrementalizable
from headwater.storage.place import Place
from headwater_spark.resolution.view_eligibility import view_eligibility


def check_refresh_policy(dataset: Dataset, frame: DataFrame, stubs: Place) -> None:
    """Check a view whose policy promises incremental refreshes.

    Args:
        stubs: below it lies what stands in for the pipeline's own tables.

    Raises:
        NeverIncrementalizable: its query, or its rules, allow none.
    """
    policy = dataset.refresh_policy
    if not policy.promises_increments or frame.isStreaming:
        return
    issues = view_eligibility(dataset, frame, stubs).issues
    if issues:
        raise NeverIncrementalizable.of(dataset.name, policy, issues[0], dataset.location)
