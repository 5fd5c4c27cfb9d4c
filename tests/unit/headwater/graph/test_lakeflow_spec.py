"""Settings of Lakeflow are read as a spec: every key has an effect or a sentence, all others are refused at their line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.definitions.lakeflow_settings import LakeflowSettings
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.trigger import Continuous
from headwater.errors import InvalidSpec
from headwater.graph.pipeline_project import open_project
from headwater.graph.spec_file import read_source, read_spec

# As a guide for practitioners prints it, word for word.
SEED = """{
  "id": "streaming-pipeline",
  "name": "Streaming Session Pipeline",
  "continuous": true,  // Continuous streaming mode
  "target": "prod_trusted_silver",
  "storage": "/mnt/pipelines/streaming_sessions",
  "configuration": {
    "source_catalog": "prod_trusted_bronze",
    "target_catalog": "prod_trusted_silver"
  },
  "clusters": [
    {
      "label": "default",
      "autoscale": {
        "min_workers": 1,
        "max_workers": 5
      }
    }
  ]
}
"""
EVERYTHING: dict[str, Any] = {
    "name": "Sessions of the shop", "catalog": "main", "schema": "silver", "storage": "dbfs:/pipelines/x",
    "libraries": [
        {"glob": {"include": "/Workspace/shop/src/**"}}, {"notebook": {"path": "/Workspace/shop/a.py"}},
        {"maven": {"coordinates": "a:b:1"}}, {"whl": "/x.whl"}, {"jar": "dbfs:/x.jar"},
    ],
    "root_path": "/Workspace/shop/", "configuration": {"landing": "data", "limit": 3}, "parameters": {"region": "eu"},
    "development": True, "continuous": False, "edition": "ADVANCED", "channel": "CURRENT", "photon": True, "serverless": False,
    "clusters": [
        {"label": "default", "num_workers": 4, "node_type_id": "i3.xlarge", "spark_conf": {"spark.sql.ansi.enabled": False},
         "spark_env_vars": {"A_TOKEN": "hidden-value"}, "init_scripts": [], "policy_id": "p"},
        {"label": "maintenance", "num_workers": 1},
    ],
    "notifications": [{"email_recipients": ["a@b.c"], "alerts": ["on-update-failure"]}],
    "tags": {"team": "shop", "core": ""}, "event_log": {"schema": "logs", "name": "events"},
    "environment": {"dependencies": ["httpx"]}, "run_as": {"user_name": "a@b.c"}, "restart_window": {}, "budget_policy_id": "b",
    "usage_policy_id": "u", "deployment": {}, "allow_duplicate_names": True, "expected_last_modified": 1, "dry_run": False,
    "permissions": [], "lifecycle": {}, "pipeline_type": "WORKSPACE",
    "data_sampling": False, "rewind_generation_interval": {"interval": 1, "time_unit": "HOURS"}, "serverless_compute_id": "c", "trigger": {"cron": {"quartz_cron_schedule": "0 0 * * * ?"}},
}  # fmt: skip


def written(folder: Path, data: Any, name: str = "pipeline.json") -> Path:
    """Write a file."""
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return folder / name


@pytest.mark.parametrize("name", ["pipeline.json", "pipeline.yml"])
def test_the_settings_of_the_seed(tmp_path: Path, name: str):
    """They are read as they stand, with their comment, under either name."""
    spec = read_spec(written(tmp_path, SEED, name), {})
    assert (spec.pipeline_id, spec.schema, spec.storage) == (
        "streaming-pipeline", "prod_trusted_silver", "/mnt/pipelines/streaming_sessions",
    )  # fmt: skip
    assert spec.configuration == {
        "source_catalog": "prod_trusted_bronze",
        "target_catalog": "prod_trusted_silver",
    }
    assert (
        spec.spark["spark.dynamicAllocation.minExecutors"],
        spec.spark["spark.dynamicAllocation.maxExecutors"],
    ) == ("1", "5")
    assert spec.trigger == Continuous()
    assert (
        open_project(tmp_path, storage=tmp_path / "storage", environment={}).pipeline_id
        == "streaming-pipeline"
    )


def test_every_setting_has_an_effect_or_a_sentence(tmp_path: Path):
    """Nothing is dropped: what is not a key of the spec as it stands has its note."""
    source = read_source(written(tmp_path, EVERYTHING))
    spec = PipelineSpec.model_validate(source.data)
    assert (spec.pipeline_id, spec.catalog, spec.schema, spec.storage) == (
        "Sessions_of_the_shop",
        "main",
        "silver",
        None,
    )
    assert [library.pattern for library in spec.libraries] == ["src/**", "a.py"]
    assert spec.configuration == {"landing": "data", "limit": "3"}
    assert spec.parameters["region"].default == "eu"
    assert spec.spark == {"spark.executor.instances": "4", "spark.sql.ansi.enabled": "false"}
    assert (spec.airflow.retries, spec.airflow.tags) == (0, ("team:shop", "core"))
    mail = spec.airflow.notifiers[0]
    assert (mail.when, mail.arguments["to"]) == (("failure",), ["a@b.c"])
    said = {note.setting for note in source.notes}
    as_they_are = {"name", "catalog", "schema", "libraries", "configuration", "parameters"}
    unsaid = {
        key for key in EVERYTHING if not any(s == key or s.startswith(f"{key}.") for s in said)
    } - as_they_are
    assert unsaid == set()
    cluster = {f"clusters.0.{key}" for key in EVERYTHING["clusters"][0] if key != "label"}
    assert cluster | {"clusters.1"} <= said
    assert {"libraries.2.maven", "libraries.3.whl", "libraries.4.jar"} <= said
    assert "spark.jars.packages (a:b:1)" in str(source.notes)
    assert "hidden-value" not in str(source.notes)


def test_who_is_told_when(tmp_path: Path):
    """Each entry is a notifier beside those of the file; what the platform tells apart is one failure here, and nobody is no notifier."""
    told = [
        {"email_recipients": ["a@b.c", "d@e.f"], "alerts": ["on-update-failure", "on-update-fatal-failure", "on-flow-failure"]},
        {"email_recipients": ["a@b.c"], "alerts": ["on-update-success", "on-update-failure"]},
        {"email_recipients": [], "alerts": ["on-update-success"]},
        {"email_recipients": ["a@b.c"], "alerts": []},
    ]  # fmt: skip
    own = {"notifier": "my.Pager", "when": ["alert"]}
    source = read_source(
        written(tmp_path, {"name": "a", "notifications": told, "airflow": {"notifiers": [own]}})
    )
    spec = PipelineSpec.model_validate(source.data)
    assert [
        (n.notifier.rpartition(".")[2], n.when, n.arguments.get("to")) for n in spec.airflow.notifiers
    ] == [
        ("Pager", ("alert",), None),
        ("SmtpNotifier", ("failure",), ["a@b.c", "d@e.f"]),
        ("SmtpNotifier", ("success", "failure"), ["a@b.c"]),
    ]
    notes = {note.setting: note.becomes for note in source.notes if note.setting.startswith("notifications")}
    assert notes == {
        "notifications.0": "airflow", "notifications.1": "airflow", "notifications.2": None, "notifications.3": None,
    }  # fmt: skip
    with pytest.raises(InvalidSpec, match=r"on-update-start.*there are on-update-success"):
        read_source(written(tmp_path, {"name": "a", "notifications": [{"alerts": ["on-update-start"]}]}))


def test_each_setting_by_itself_is_taken(tmp_path: Path):
    """No setting needs another."""
    for key, value in EVERYTHING.items():
        spec = read_spec(written(tmp_path, {"name": "a", key: value}), {})
        assert isinstance(spec, PipelineSpec), key


def test_keys_of_both_forms_go_together(tmp_path: Path):
    """Settings may be completed by what only pipeline.yml has, and every key of it is known there."""
    spec = read_spec(
        written(
            tmp_path, {**EVERYTHING, "airflow": {"retries": 3, "schedule": "@daily"}, "spark": {"spark.x": 1}}
        ),
        {},
    )
    assert (spec.airflow.retries, spec.airflow.schedule, spec.airflow.tags) == (
        3,
        "@daily",
        ("team:shop", "core"),
    )
    assert spec.spark["spark.x"] == "1"
    names = {field.alias or name for name, field in PipelineSpec.model_fields.items()}
    assert names <= {field.alias or name for name, field in LakeflowSettings.model_fields.items()}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('{"name": "a",\n "clustrs": []}', 2, "Did you mean `clusters`"),
        ('{"name": "a",\n "clusters": [\n  {"autoscale": {"min_workers": 5, "max_workers": 1}}]}', 3, "more than max_workers"),
        ('{"name": "a",\n "clusters": [{"autoscale":\n  {"min_worker": 5, "max_workers": 1}}]}', 2, "Did you mean `min_workers`"),
        ('{"name": "a",\n "clusters": 5}', 2, "clusters"),
        ('{"name": "a",\n "photon": "yes"}', 2, "photon"),
        ('{"name": "a",\n "edition": "GOLD"}', 2, "edition"),
        ('{"name": "a",\n "photon": true,\n "airflow": {"retrys": 1}}', 3, "Did you mean `retries`"),
        ('{"name": "a", // one\n "name": "b"}', 2, "given twice"),
        ('{"name": "a", "tags": {"x": "y"},\n "airflow": {"tags": "abc"}}', 2, "tags"),
        ('{"name": "a", "notifications": [{"alerts": ["on-update-failure"], "email_recipients": ["a"]}],\n "airflow": {"notifiers": 1}}', 2, "notifiers"),
        ('{"name": "a",\n "photon": true,}', 2, "not JSON"),
        ('{"name": "a",\n "ingestion_definition": {}}', 1, "no counterpart"),
        ('{"name": "a",\n "photon": true, "target": "x", "schema": "y"}', 1, "mean the same"),
        ('{"name": "a", "continuous": true,\n "trigger": "available_now"}', 1, "both say when"),
        ('["a"]', 1, "mapping"),
        ("name: a", 1, "not JSON"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_line(tmp_path: Path, text: str, line: int, says: str):
    """Unknown keys with the nearest, wrong types, settings that exclude each other, and what is neither JSON nor settings."""
    with pytest.raises(InvalidSpec) as caught:
        read_spec(written(tmp_path, text), {})
    assert says in caught.value.what
    assert caught.value.where in (f"{tmp_path / 'pipeline.json'}:{line}", str(tmp_path / "pipeline.json"))


BUNDLE = """bundle: {name: shop}
variables:
  cat: {default: main}
targets:
  dev: {mode: development}
resources:
  jobs: {nightly: {}}
  pipelines:
    sessions:
      name: "[${bundle.name}] sessions"
      catalog: ${var.cat}
      serverless: true
      libraries:
        - file: {path: ./src/a.py}
"""


def test_a_bundle_is_read_as_its_pipeline(tmp_path: Path):
    """Variables have their defaults, the id is the key, and all else in the file has its sentence."""
    source = read_source(written(tmp_path, BUNDLE, "pipeline.yml"))
    spec = read_spec(tmp_path / "pipeline.yml", {})
    assert (spec.name, spec.pipeline_id, spec.catalog) == ("[shop] sessions", "sessions", "main")
    assert spec.libraries[0].pattern == "src/a.py"
    assert {"bundle", "variables", "targets", "resources.jobs", "serverless"} <= {
        note.setting for note in source.notes
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("${var.cat}", "${var.dog}", 11, "${var.dog} has no value in this file"),
        ("${var.cat}", "${workspace.root}", 11, "has no value"),
        ("bundle:", "bundel:", 1, "Unknown key `bundel`"),
        ("bundle:", "7:", 1, "Unknown key `7`"),
        ("  pipelines:", "  pipes:", 6, "has no `pipelines`"),
        ("      serverless", "      serverles", 12, "Did you mean `serverless`"),
        ("    sessions:", "    other: {name: b}\n    sessions:", 8, "2 pipelines"),
        (
            BUNDLE[BUNDLE.index("targets:") :],
            "targets: {dev: {default: true, resources: {pipelines: {a: 1}}}}\nresources: [1]\n",
            5,
            "`resources.pipelines.a` must be a mapping",
        ),
    ],
)
def test_a_bundle_that_is_not_one_pipeline(tmp_path: Path, old: str, new: str, line: int, says: str):
    """Unknown keys, variables without a value, no pipeline or several of them."""
    path = written(tmp_path, BUNDLE.replace(old, new), "pipeline.yml")
    with pytest.raises(InvalidSpec) as caught:
        read_spec(path, {})
    assert says in str(caught.value)
    assert caught.value.where == f"{path}:{line}"
    if "other" in new:
        assert read_source(path, "other").data == {"name": "b"}


def test_a_cron_of_the_pipeline_is_its_schedule(tmp_path: Path):
    """As far as five fields in UTC say it, and nothing else says when updates begin."""
    cron = {"cron": {"quartz_cron_schedule": "0 30 4 * * ?", "timezone_id": "UTC"}}
    settings: dict[str, Any] = {"name": "a", "photon": True, "trigger": cron, "tags": {"team": "shop"}}
    spec = read_spec(written(tmp_path, settings), {})
    assert (spec.airflow.schedule, spec.airflow.tags) == ("30 4 * * *", ("team:shop",))
    assert read_spec(written(tmp_path, {**settings, "continuous": True}), {}).airflow.schedule is None
    own = {**settings, "airflow": {"schedule": "@daily"}}
    assert read_spec(written(tmp_path, own), {}).airflow.schedule == "@daily"


def test_continuous_alone_stays_a_question_of_the_spec(tmp_path: Path):
    """Without any other setting of Lakeflow, a file is a pipeline.yml, and answers for itself."""
    with pytest.raises(InvalidSpec, match="continuous"):
        read_spec(written(tmp_path, "name: a\ncontinuous: true\n", "pipeline.yml"), {})
