"""The section `airflow`: what it takes, and what it refuses before Airflow's database would."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from headwater.definitions.airflow_spec import AirflowSpec, OnDataSpec
from headwater.definitions.pipeline_spec import PipelineSpec


def test_an_empty_section_is_all_dags_by_hand():
    """Without a word the pipeline has its five DAGs, and no notifier."""
    spec = AirflowSpec()
    assert spec.dags == ("update", "checks", "maintenance", "backfill", "repair")
    assert (spec.schedule, spec.notifiers, spec.backfill.interval) == (None, (), None)


def test_the_dags_id_is_the_pipelines_unless_it_is_given():
    """Another id of the DAG does not change that of the pipeline, which names its state."""
    assert PipelineSpec(name="orders").dag_id == "orders"
    spec = PipelineSpec(name="orders", airflow={"dag_id": "shop.orders"})
    assert (spec.dag_id, spec.pipeline_id) == ("shop.orders", "orders")


def test_data_as_the_schedule():
    """Durations and numbers as they are written."""
    spec = AirflowSpec.model_validate(
        {"schedule": "on_data", "on_data": {"quiet": "30 seconds", "files": 10, "wait": "1 hour"}}
    )
    assert spec.on_data == OnDataSpec(quiet=timedelta(seconds=30), files=10, wait=timedelta(hours=1))
    assert AirflowSpec(schedule="on_data").on_data == OnDataSpec()


NOTIFIER = {"notifier": "a.B"}
REFUSED = [
    *({"dag_id": text} for text in ("", "a b", "../x", "a/b", "ä", "a\n", "a" * 129, ".a", "-a")),
    *(
        {"store_connection": text}
        for text in ("", "a b", "../x", "a/b", "ä", "a\n", "aws://key:secret@", "a" * 129)
    ),
    *({"dags": value} for value in ("update", ["updates"], [None])),
    *({name: "x" * 257} for name in ("pool", "queue", "owner", "schedule", "check_schedule")),
    *({name: ""} for name in ("pool", "queue", "owner", "schedule")),
    *({"tags": [tag]} for tag in ("", "t" * 101)),
    *(
        {"notifiers": [{"notifier": text}]}
        for text in ("", "B", "a.", ".B", "a..B", "a b.C", "a.B()", "os;x.y")
    ),
    {"notifiers": [{**NOTIFIER, "when": []}]},
    {"notifiers": [{**NOTIFIER, "when": ["failed"]}]},
    {"notifiers": [{**NOTIFIER, "arguments": {"smtp_password": "x"}}]},
    {"notifiers": [{**NOTIFIER, "arguments": {"api_token": "x"}}]},
    {"notifiers": [{**NOTIFIER, "arguments": {"a-b": "x"}}]},
    {"notifiers": [{**NOTIFIER, "arguments": {"a": {"deep": "map"}}}]},
    {"backfill": {"scheduled": True}},
    *({name: True} for name in ("retries", "priority_weight")),
    *({"alerts": {name: True}} for name in ("lag_seconds", "lag_records", "failed_rules_percent")),
    {"backfill": {"interval": ""}},
    {"on_data": {}},
    {"schedule": "@daily", "on_data": {"files": 2}},
    {"schedule": "on_data", "on_data": {"versions": -1}},
    {"schedule": "on_data", "on_data": {"quiet": "8 days"}},
    {"schedule": "on_data", "on_data": {"wait": "400 days"}},
    {"schedule": "on_data", "on_data": {"quiet": "2 minutes", "wait": "1 minute"}},
]


WRONG_TIMES = (
    "every day",
    "* * * *",
    "0 3 * * * * *",
    "@dialy",
    "daily",
    "H * * * *",
    "0 3 * * monday",
    "{{ x }}",
)


@pytest.mark.parametrize("text", WRONG_TIMES)
@pytest.mark.parametrize("key", ["schedule", "check_schedule", "maintenance_schedule"])
def test_a_schedule_that_is_none(key: str, text: str):
    """What Airflow could not read is refused here, where `validate` sees it, and not first when the DAG is made."""
    with pytest.raises(ValidationError, match="cron"):
        AirflowSpec.model_validate({key: text})


@pytest.mark.parametrize(
    "text",
    [
        "*/5 * * * *",
        "0 3 * * 1-5,7",
        "0 0 1 jan,JUL sun",
        "0 0 L * *",
        "0 0 * * 5#3",
        "@daily",
        "@continuous",
        "@once",
        None,
    ],
)
def test_schedules_that_airflow_takes(text: str | None):
    """Cron texts, with names and in their odder forms, and presets."""
    assert AirflowSpec.model_validate({"schedule": text, "check_schedule": text}).check_schedule == text
    assert AirflowSpec.model_validate(
        {"backfill": {"interval": "@daily", "scheduled": True}}
    ).backfill.scheduled


@pytest.mark.parametrize("section", REFUSED, ids=lambda section: ascii(section)[:60])
def test_what_is_refused(section):
    """Ids that lead elsewhere, texts that are too long for the database, secrets, code, and keys without an effect."""
    with pytest.raises(ValidationError):
        AirflowSpec.model_validate(section)
