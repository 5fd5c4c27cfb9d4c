"""Settings of Spark that are almost one that it has: Spark takes any name, and passes over those that it does not know. HW605."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from headwater.definitions.finding import Finding, finding
from headwater.suggestions import nearest
from headwater_spark.java_classes import java_class
from headwater_spark.linting.flow_case import FlowCase
from headwater_spark.resolution.graph_resolution import ResolvedPipeline

_PREFIX = "spark.sql."
# Whose names others choose, or which Spark registers only where it uses them.
_OTHERS = ("spark.sql.catalog.", "spark.sql.hive.", "spark.sql.pipelines.")
# Only what is almost the name of a setting: others may be of an extension.
_ALMOST = 0.9
_KEY = re.compile(r"ConfigEntry\(key=(spark\.sql\.[^,]+), ")


def misspelled_settings_of_the_pipeline(pipeline: ResolvedPipeline) -> Iterator[Finding]:
    """HW605, in pipeline.yml."""
    spec = pipeline.project.spec
    for key, near in _misspelled({**spec.spark, **spec.configuration}, pipeline):
        yield finding("HW605", f"{key} in pipeline.yml is no setting of Spark.", f"Did you mean {near!r}?")


def misspelled_settings_of_a_flow(case: FlowCase) -> Iterator[Finding]:
    """HW605, on a table or flow."""
    keys = {**case.dataset.spark_conf, **case.flow.spark_conf}
    for key, near in _misspelled(keys, case.pipeline):
        yield case.find("HW605", f"{key} is no setting of Spark.", f"Did you mean {near!r}?")


def nearest_setting(key: str, known: Collection[str]) -> str | None:
    """The one of the ``known`` settings that a key almost is; None where it is one, or is like none."""
    if key in known:
        return None
    by_ending = {name.removeprefix(_PREFIX).lower(): name for name in known}
    near = nearest(key.removeprefix(_PREFIX).lower(), by_ending, cutoff=_ALMOST)
    return None if near is None else by_ending[near]


def _misspelled(keys: Iterable[str], pipeline: ResolvedPipeline) -> Iterator[tuple[str, str]]:
    compared = [key for key in keys if key.startswith(_PREFIX) and not key.startswith(_OTHERS)]
    if not compared:
        return
    jvm = pipeline.evaluation.session._jvm  # noqa: SLF001
    registry = getattr(java_class(jvm, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$")
    unknown = [key for key in compared if not registry.containsConfigKey(key)]
    known = set(_KEY.findall(registry.getConfigEntries().toString())) if unknown else set()
    for key in unknown:
        near = nearest_setting(key, known)
        if near is not None and key not in _other_names(registry.getConfigEntry(near)):
            yield key, near


def _other_names(entry: Any) -> list[str]:
    """The names that a setting had before, by which Spark still knows it: ``List(a, b)``."""
    text: str = entry.alternatives().toString()
    return text.partition("(")[2].removesuffix(")").split(", ")
