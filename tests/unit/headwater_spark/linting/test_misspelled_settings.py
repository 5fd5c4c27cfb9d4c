"""A setting of Spark that is almost one that it has is said, where it stands; others are left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.pipeline_spec import PipelineSpec
from headwater_spark.linting import misspelled_settings as module
from headwater_spark.linting.linter import _RULES
from headwater_spark.linting.misspelled_settings import (
    misspelled_settings_of_a_flow,
    misspelled_settings_of_the_pipeline,
    nearest_setting,
)

PARQUET = "spark.sql.parquet.datetimeRebaseModeInRead"
FORMER = "spark.sql.legacy.parquet.datetimeRebaseModeInRead"
KNOWN = (
    PARQUET,
    "spark.sql.shuffle.partitions",
    "spark.sql.session.timeZone",
    "spark.sql.files.maxRecordsPerFile",
)
WRONG, MEANT = "spark.sql.shufle.partitions", "spark.sql.shuffle.partitions"


class Entries:
    """Spark's registry as one text, as Java gives it."""

    def toString(self) -> str:  # noqa: N802 - Java's name
        """All entries; a description may name other settings."""
        entries = (
            f"ConfigEntry(key={key}, defaultValue=1, doc=As spark.sql.other.key, public=true, version=2.0.0)"
            for key in KNOWN
        )
        return f"[{', '.join(entries)}]"


class Former:
    """The former names of a setting, as Scala gives them."""

    def __init__(self, key: str) -> None:
        self._names = ["spark.sql.files.a", FORMER] if key == PARQUET else []

    def toString(self) -> str:  # noqa: N802 - Java's name
        """All of them."""
        return f"List({', '.join(self._names)})"


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = SimpleNamespace(
        containsConfigKey=KNOWN.__contains__,
        getConfigEntries=Entries,
        getConfigEntry=lambda key: SimpleNamespace(alternatives=lambda: Former(key)),
    )
    monkeypatch.setattr(module, "java_class", lambda *_: SimpleNamespace(**{"MODULE$": registry}))


def pipeline_of(**given: Any) -> Any:
    """A resolved pipeline as far as the rules look at it."""
    spec = PipelineSpec.model_validate({"name": "a", **given})
    session = SimpleNamespace(_jvm=None)
    return SimpleNamespace(project=SimpleNamespace(spec=spec), evaluation=SimpleNamespace(session=session))


def test_in_the_pipelines_file():
    """Under ``spark`` and ``configuration``: a warning with the setting that was meant."""
    for place in ("spark", "configuration"):
        (one,) = misspelled_settings_of_the_pipeline(pipeline_of(**{place: {WRONG: "4", MEANT: "4"}}))
        assert (one.code, one.severity) == ("HW605", "warning")
        assert WRONG in one.message
        assert f"Did you mean {MEANT!r}?" in str(one)
    assert not list(misspelled_settings_of_the_pipeline(pipeline_of()))


def test_of_a_table_or_flow():
    """In ``spark_conf`` of either, at its place; the rule is one of the linter's."""
    case: Any = SimpleNamespace(
        flow=SimpleNamespace(spark_conf={WRONG: "4"}),
        dataset=SimpleNamespace(spark_conf={"spark.sql.session.timezone": "UTC"}),
        pipeline=pipeline_of(),
        find=lambda *said: said,
    )
    assert [(code, remedy) for code, _, remedy in misspelled_settings_of_a_flow(case)] == [
        ("HW605", "Did you mean 'spark.sql.session.timeZone'?"),
        ("HW605", f"Did you mean {MEANT!r}?"),
    ]
    assert misspelled_settings_of_a_flow in _RULES


@pytest.mark.parametrize(
    "key",
    [
        *KNOWN,
        FORMER,
        "spark.sql.catalog.shuffle.partitions",
        "spark.sql.pipelines.shuffle.partitions",
        "spark.sql.hive.session.timeZones",
        "spark.sql.extensions",
        "spark.sql.other.key",
        "spark.shufle.partitions",
        "my.sql.shufle.partitions",
    ],
)
def test_what_is_left_alone(key: str):
    """Settings that Spark has, also by a former name, those whose names others choose, and names like none."""
    assert not list(misspelled_settings_of_the_pipeline(pipeline_of(configuration={key: "1"})))


def test_names_are_compared_without_what_all_share():
    """The prefix does not make two names alike."""
    assert nearest_setting("spark.sql.a", ["spark.sql.b"]) is None
    assert nearest_setting("spark.sql.SHUFFLE.partitions", KNOWN) == MEANT
