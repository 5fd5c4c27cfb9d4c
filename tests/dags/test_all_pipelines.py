"""One call in one file makes the DAGs of all pipelines, and a pipeline that is wrong is wrong alone."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.definitions.context import _AIRFLOW_PARSING_CONTEXT_DAG_ID
from airflow.serialization.serialized_objects import DagSerialization
from tests.dags.airflow_home import CHECKOUT
from tests.dags.pipeline_folder import write_pipeline

from headwater_airflow.notifications.webhook import WebhookNotifier
from headwater_airflow.operators.run_update import RunUpdateOperator
from headwater_airflow.roots import pipeline_root

SUFFIXES = ("", "_backfill", "_checks", "_maintenance", "_repair")


@pytest.fixture
def parse(roots):
    """The one file, in a folder of DAGs, as Airflow reads it."""
    folder = roots / "dags"
    folder.mkdir()
    (folder / "pipelines.py").write_text((CHECKOUT / "dags" / "pipelines.py").read_text())
    return lambda: DagBag(str(folder), bundle_path=folder)


@pytest.fixture
def pipelines(roots):
    """Writes a pipeline by its name, with a section `airflow`, or with a whole spec."""

    def write(name, airflow="{}", spec=None):
        folder = write_pipeline(roots / "pipelines" / name)
        if spec is None:
            spec = f"name: {name}\nschema: shop\nairflow: {airflow}\n"
        (folder / "pipeline.yml").write_text(spec)

    return write


def test_every_pipeline_has_its_five_dags(parse, pipelines):
    """All kinds by default, those that `dags` names elsewhere, none for an empty list; all belong to the calling file."""
    pipelines("a")
    pipelines("b", "{dags: [update, checks]}")
    pipelines("c", "{dags: []}")
    bag = parse()
    assert bag.import_errors == {}
    assert sorted(bag.dags) == sorted([*(f"a{suffix}" for suffix in SUFFIXES), "b", "b_checks"])
    assert {dag.relative_fileloc for dag in bag.dags.values()} == {"pipelines.py"}
    assert {dag.fileloc.rpartition("/")[2] for dag in bag.dags.values()} == {"pipelines.py"}


WRONG = {
    "no_yaml": "name: [",
    "unknown_key": "name: unknown_key\nairfow: {}",
    "no_cron": "name: no_cron\nairflow: {schedule: every now and then}",
    "no_interval": "name: no_interval\nairflow: {backfill: {interval: '99 99 * * *'}}",
    "long_tag": f"name: long_tag\nairflow: {{tags: [{'t' * 101}]}}",
    "long_pool": f"name: long_pool\nairflow: {{pool: {'p' * 257}}}",
    "bad_id": "name: bad_id\nairflow: {dag_id: '../../etc'}",
    "no_module": "name: no_module\nairflow: {notifiers: [{notifier: nowhere.Notifier}]}",
    "no_notifier": "name: no_notifier\nairflow: {notifiers: [{notifier: os.system, arguments: {command: 'touch x'}}]}",
    "bad_argument": "name: bad_argument\nairflow: {notifiers: [{notifier: headwater_airflow.notifications.webhook.WebhookNotifier, arguments: {nonsense: 1}}]}",
    "long_delay": "name: long_delay\nairflow: {retry_delay: 9999999 days}",
    "long_timeout": "name: long_timeout\nairflow: {timeout: 9999999 days}",
    "secret": "name: secret\nairflow: {notifiers: [{notifier: a.B, arguments: {password: hunter2x}}]}",
    "twin": "name: twins",
    "twin_too": "name: twins",
    "zz_taken": "name: zz_taken\nairflow: {dag_id: good}",
    "zz_word": "name: good_checks",
}


def test_each_wrong_pipeline_is_an_import_error_of_its_own(parse, pipelines):
    """Whatever is wrong with a spec, its error has its name, and stands beside the DAGs of the others, whole and serializable."""
    pipelines("good")
    pipelines("__file__")
    for name, spec in WRONG.items():
        pipelines(name, spec=spec)
    bag = parse()
    assert sorted(bag.import_errors) == sorted(f"pipelines.py ({name})" for name in WRONG)
    # An error under the file's own name takes all DAGs of the file off the schedule.
    assert "pipelines.py" not in bag.import_errors
    assert sorted(bag.dags) == sorted(
        f"{name}{suffix}" for name in ("good", "__file__") for suffix in SUFFIXES
    )
    for dag in bag.dags.values():
        DagSerialization.to_dict(dag)
    assert "hunter2x" not in str(bag.import_errors)
    assert "good" in bag.import_errors["pipelines.py (zz_taken)"]
    assert "same id" in bag.import_errors["pipelines.py (twin_too)"]
    # Repaired, it has its DAGs, and the error is gone.
    pipelines("no_cron")
    again = parse()
    assert "no_cron_repair" in again.dags
    assert "pipelines.py (no_cron)" not in again.import_errors


def test_a_folder_whose_name_cant_be_a_pipelines_is_an_error(parse, pipelines, roots):
    """Else it would have no DAG without a word; a name with a dot puts a pipeline aside, and a folder without a spec is none."""
    pipelines("good")
    root = roots / "pipelines"
    for name in ("my shop", "größe", "-x", "orders.old", ".hidden"):
        (root / name).mkdir()
        (root / name / "pipeline.yml").write_text("name: other\n")
    undecodable = root / os.fsdecode(b"caf\xe9")
    undecodable.mkdir()
    (undecodable / "pipeline.yml").write_text("name: other\n")
    (root / "no spec").mkdir()
    bag = parse()
    named = ("-x", "caf\\udce9", "größe", "my shop")
    assert sorted(bag.import_errors) == sorted(f"pipelines.py ({name})" for name in named)
    assert "can't name a pipeline" in bag.import_errors["pipelines.py (my shop)"]
    assert sorted(bag.dags) == sorted(f"good{suffix}" for suffix in SUFFIXES)
    str(bag.import_errors).encode()


def test_a_link_to_a_place_that_is_gone_is_an_error(parse, pipelines, roots):
    """A lost mount, a file of settings that was not mounted: its DAGs would be gone without a word."""
    pipelines("good")
    root = roots / "pipelines"
    (root / "elsewhere").symlink_to(roots / "lost")
    (root / "unset").mkdir()
    (root / "unset" / "pipeline.yml").symlink_to("..data/pipeline.yml")
    bag = parse()
    assert sorted(bag.import_errors) == ["pipelines.py (elsewhere)", "pipelines.py (unset)"]
    assert {"PIPELINE_NOT_FOUND" in error for error in bag.import_errors.values()} == {True}
    assert sorted(bag.dags) == sorted(f"good{suffix}" for suffix in SUFFIXES)


def test_a_folder_of_pipelines_that_is_not_there_is_an_error_of_the_file(
    parse, pipelines, roots, monkeypatch
):
    """A wrong variable or a lost mount: all DAGs would be gone without a word. An empty folder is no error."""
    monkeypatch.setenv("HEADWATER_PIPELINES", str(roots / "nowhere"))
    (error,) = parse().import_errors.values()
    assert "PIPELINE_NOT_FOUND" in error
    assert f"{roots}/nowhere" in error
    (roots / "nowhere").mkdir()
    bag = parse()
    assert (bag.import_errors, bag.dags) == ({}, {})


def test_an_empty_variable_is_none():
    """As of the other roots: the folder of all pipelines is not the checkout itself."""
    root = pipeline_root({"HEADWATER_HOME": "/checkout", "HEADWATER_PIPELINES": ""})
    assert root == Path("/checkout/jobs/pipelines")


def test_what_the_spec_says_of_airflow_arrives(parse, pipelines):
    """Ids, owner, queue, pool, tags, intervals, forms and notifiers."""
    pipelines(
        "a",
        """
  dag_id: shop.a
  owner: sales
  queue: spark
  pool: heavy
  tags: [shop]
  schedule: "@hourly"
  alerts: {freshness_minutes: 5}
  backfill: {interval: "@daily", tables: [silver], column: at}
  notifiers:
    - notifier: headwater_airflow.notifications.webhook.WebhookNotifier
      when: [alert, failure]
      arguments: {connection: my_hook}
""",
    )
    bag = parse()
    assert bag.import_errors == {}
    assert sorted(bag.dags) == [f"shop.a{suffix}" for suffix in SUFFIXES]
    update = bag.dags["shop.a"]
    task = update.get_task("update")
    assert isinstance(task, RunUpdateOperator)
    assert (task.owner, task.queue, task.pool, update.schedule) == ("sales", "spark", "heavy", "@hourly")
    assert {dag.tags.issuperset({"headwater", "shop"}) for dag in bag.dags.values()} == {True}
    filled = bag.dags["shop.a_backfill"]
    assert (type(filled.schedule).__name__, filled.params["tables"], filled.params["column"]) == (
        "CronDataIntervalTimetable",
        ["silver"],
        "at",
    )
    (check,) = [task for task in bag.dags["shop.a_checks"].tasks if task.task_id == "freshness"]
    assert [type(notifier) for notifier in check.notifiers] == [WebhookNotifier]
    with_callback = Counter(bool(dag.on_failure_callback) for dag in bag.dags.values())
    assert with_callback == {True: 4, False: 1}  # the check DAG has its alerts
    assert not any(dag.on_success_callback for dag in bag.dags.values())


def test_a_failed_run_is_announced(pipelines, parse, monkeypatch):
    """The callback of the DAG posts which run of which DAG has failed, and why."""
    hook = "headwater_airflow.notifications.webhook.WebhookNotifier"
    pipelines("a", f"{{notifiers: [{{notifier: {hook}}}]}}")
    heard = []
    monkeypatch.setattr(WebhookNotifier, "notify", lambda self, context: heard.append(context["alert"]))
    dag = parse().dags["a_maintenance"]
    dag.on_failure_callback({"dag": dag, "run_id": "run-7", "reason": "task_failure"})
    ((alert),) = heard
    assert alert.title == "[headwater] a_maintenance: the run run-7 failed"
    assert "task_failure" in alert.text


def test_a_task_makes_only_the_dag_that_it_needs(parse, pipelines, monkeypatch):
    """In a task's process the other pipelines are not read, whichever DAG it is, and wherever its id comes from."""
    for name in ("a", "b", "c"):
        pipelines(name)
    pipelines("d", "{dag_id: other.name}")
    read = []
    from headwater_airflow import pipelines as module

    real = module.read_pipeline
    monkeypatch.setattr(
        module, "read_pipeline", lambda name, project: read.append(name) or real(name, project)
    )
    for dag_id, folder in (("b_repair", "b"), ("other.name_checks", "d"), ("c", "c")):
        read.clear()
        monkeypatch.setenv(_AIRFLOW_PARSING_CONTEXT_DAG_ID, dag_id)
        assert list(parse().dags) == [dag_id]
        assert read == [folder]


def test_a_task_without_its_dag_says_why(parse, pipelines, monkeypatch, caplog):
    """Its pipeline was broken since it was scheduled: Airflow says only that there is no DAG. What is wrong with others is not its trouble."""
    pipelines("a", spec="name: a\nschedul: x\n")
    pipelines("b", spec="name: b\ndescription: it reads c\nschedul: x\n")
    pipelines("c")
    for dag_id, said in (("a", True), ("c", False)):
        caplog.clear()
        monkeypatch.setenv(_AIRFLOW_PARSING_CONTEXT_DAG_ID, dag_id)
        assert (dag_id in parse().dags) is not said
        assert ("schedul" in caplog.text) is said


def test_the_form_is_the_dags_and_no_task_has_a_copy(parse, pipelines):
    """A copy of the form in each task made the serialized DAG twice as large, and took most of the time."""
    pipelines("a")
    dag = parse().dags["a"]
    assert set(dag.params) >= {"full_refresh"}
    assert {len(task.params) for task in dag.tasks} == {0}
