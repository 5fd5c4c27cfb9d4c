"""`pipeline.yml` is read strictly: every fault is reported with its key, its line and the nearest valid name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from headwater.definitions.trigger import AvailableNow, ProcessingTime
from headwater.errors import InvalidSpec, PipelineNotFound
from headwater.graph.spec_file import find_spec_file, read_spec


def spec(folder: Path, text: str) -> Path:
    """Write a spec file."""
    path = folder / "pipeline.yml"
    path.write_text(text)
    return path


def fault(folder: Path, text: str) -> InvalidSpec:
    """The error of a spec that is not right."""
    with pytest.raises(InvalidSpec) as caught:
        read_spec(spec(folder, text), {})
    return caught.value


def test_the_shortest_spec(tmp_path: Path):
    """A name is enough; the rest has defaults."""
    parsed = read_spec(spec(tmp_path, "name: orders\n"), {})
    assert (parsed.pipeline_id, parsed.schema, parsed.catalog) == ("orders", "default", None)
    assert parsed.libraries[0].pattern == "transformations/**"
    assert parsed.trigger == AvailableNow()
    assert parsed.airflow.retries == 2


def test_every_key_of_the_spec(tmp_path: Path):
    """Each key is read into its place, values of Spark become text, durations are understood."""
    parsed = read_spec(
        spec(
            tmp_path,
            """
name: Orders of the shop
id: orders-1
catalog: main
schema: shop
storage: state
libraries: [{glob: {include: src/**}}, {file: {path: a.py}}, {notebook: {path: b.ipynb}}]
configuration: {landing: data, limit: 3, flag: true}
spark: {spark.executor.memory: 2g, spark.ui.enabled: false}
trigger: {processing_time: 30 seconds, run_for: 1.5 hours}
airflow: {schedule: "*/5 * * * *", tasks: per_table, retries: 0, retry_delay: 2 min, alerts: {lag_seconds: 300}}
""",
        ),
        {},
    )
    assert (parsed.pipeline_id, parsed.catalog, parsed.schema, parsed.storage) == (
        "orders-1",
        "main",
        "shop",
        "state",
    )
    assert [library.pattern for library in parsed.libraries] == ["src/**", "a.py", "b.ipynb"]
    assert parsed.configuration["limit"] == "3"
    assert parsed.spark == {"spark.executor.memory": "2g", "spark.ui.enabled": "false"}
    assert parsed.trigger == ProcessingTime(timedelta(seconds=30), timedelta(minutes=90))
    assert (parsed.airflow.tasks, parsed.airflow.retry_delay) == ("per_table", timedelta(minutes=2))
    assert parsed.airflow.alerts.lag_seconds == 300


@pytest.mark.parametrize("key", ["schema", "database", "target"])
def test_three_names_for_the_schema(tmp_path: Path, key: str):
    """The schema may be given under its older names, and under one of them only."""
    assert read_spec(spec(tmp_path, f"name: a\n{key}: shop\n"), {}).schema == "shop"
    other = "database" if key != "database" else "target"
    assert "mean the same" in fault(tmp_path, f"name: a\n{key}: x\n{other}: y\n").what


@pytest.mark.parametrize(
    ("text", "line", "key", "near"),
    [
        ("name: a\nlibrarys: []\n", 2, "librarys", "libraries"),
        ("name: a\n\nairflow:\n  retrys: 3\n", 4, "airflow.retrys", "retries"),
        ("name: a\nairflow:\n  alerts:\n    lag_second: 3\n", 4, "airflow.alerts.lag_second", "lag_seconds"),
        ("name: a\nlibraries:\n  - glob: {includes: x}\n", 3, "libraries.0.glob.includes", "include"),
        ("name: a\ntrigger: {processing_time: 1 s, runs_for: 1 h}\n", 2, "runs_for", "run_for"),
        ("name: a\ndatabse: x\n", 2, "databse", "database"),
        ("name: a\nevent_log: {retention_day: 3}\n", 2, "event_log.retention_day", "retention_days"),
    ],
)
def test_an_unknown_key(tmp_path: Path, text: str, line: int, key: str, near: str):
    """A key that is not known is refused with its line and the nearest one that is."""
    error = fault(tmp_path, text)
    assert f"Unknown key `{key}`" in error.what or f"{key}`" in error.what
    assert f"Did you mean `{near}`?" in error.what
    assert error.where == f"{tmp_path / 'pipeline.yml'}:{line}"


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("name: [a]\n", 1, "name"),
        ("name: a\nlibraries: transformations/**\n", 2, "libraries"),
        ("name: a\nairflow:\n  retries: many\n", 3, "airflow.retries"),
        ("name: a\nairflow:\n  tasks: all\n", 3, "airflow.tasks"),
        ("name: a\ntrigger: sometimes\n", 2, "trigger"),
        ("name: a\ntrigger: {processing_time: soon}\n", 2, "trigger"),
        ("name: a\nconfiguration:\n  x: [1]\n", 3, "configuration.x"),
        ("name: a\nspark:\n  x: {y: 1}\n", 3, "spark.x"),
        ("name: a\nschema: 1x\n", 2, "schema"),
        ("name: a\nevent_log: 30\n", 2, "event_log"),
        ("name: a\nevent_log:\n  retention_days: 0\n", 3, "event_log.retention_days"),
        ("name: a\nevent_log:\n  retention_days: -1\n", 3, "event_log.retention_days"),
        ("name: a\nevent_log:\n  retention_days: 1.5\n", 3, "event_log.retention_days"),
        ("name: a\nevent_log:\n  retention_days: '30'\n", 3, "event_log.retention_days"),
        ("name: a\nevent_log:\n  retention_days: true\n", 3, "event_log.retention_days"),
        ("name: a\nevent_log:\n  retention_days: 99999999999\n", 3, "event_log.retention_days"),
    ],
)
def test_a_wrong_type(tmp_path: Path, text: str, line: int, key: str):
    """A value of the wrong type or form is refused with its key and line."""
    error = fault(tmp_path, text)
    assert f"`{key}" in error.what
    assert error.where == f"{tmp_path / 'pipeline.yml'}:{line}"
    assert error.remedy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lint: {ignore: HW101}", "a list is expected"),
        ("airflow: [1]", "a map of keys to values"),
        ("configuration: {a: 2026-01-01}", "a text is expected; in quotes"),
        ("maintenance: {keep: 1 month}", "say days"),
    ],
)
def test_words_of_yaml(tmp_path: Path, text: str, words: str):
    """A wrong type is named as people know it from the file, not as Python does."""
    what = fault(tmp_path, f"name: a\n{text}\n").what
    assert words in what
    assert not {"tuple", "dict", "timedelta"} & set(what.split())


def test_every_fault_is_told_at_once(tmp_path: Path):
    """Two faults are one message, so that they are corrected in one go; the place is the first's."""
    error = fault(tmp_path, "name: a\nfoo: 1\nairflow: {retries: -1}\n")
    assert "`foo`" in error.what
    assert "`airflow.retries`" in error.what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("schema: shop\n", "`name` is missing"),
        ("- a\n- b\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("name: a b\n", "can't serve as the id"),
        ("name: a\nlibraries: [{glob: {include: x}, file: {path: y}}]\n", "exactly one of"),
    ],
)
def test_what_a_spec_must_have(tmp_path: Path, text: str, what: str):
    """Faults of the file as a whole are reported in a sentence."""
    assert what in fault(tmp_path, text).what


def test_text_that_is_not_yaml(tmp_path: Path):
    """A fault of YAML is reported with its line."""
    error = fault(tmp_path, "name: a\nschema: 'open\n")
    assert "is not YAML" in error.what
    assert error.where.startswith(f"{tmp_path / 'pipeline.yml'}:")


def test_values_from_the_environment(tmp_path: Path):
    """`${env:NAME}` is filled in, `${env:NAME:default}` where it is not set, and other dollars stay."""
    text = "name: ${env:NAME}\nconfiguration: {a: '${env:A:x:y}', b: '${landing}/z', c: ['${env:NAME}']}\n"
    path = spec(tmp_path, text.replace(", c: ['${env:NAME}']", ""))
    parsed = read_spec(path, {"NAME": "orders"})
    assert parsed.name == "orders"
    assert parsed.configuration == {"a": "x:y", "b": "${landing}/z"}


def test_a_value_that_the_environment_does_not_have(tmp_path: Path):
    """A variable that is not set is named, with the two ways out."""
    error = fault(tmp_path, "name: ${env:NOT_SET_AT_ALL}\n")
    assert "${env:NOT_SET_AT_ALL}" in error.what
    assert "Set NOT_SET_AT_ALL" in error.remedy


def test_the_environment_cannot_break_the_file(tmp_path: Path):
    """A value with YAML's own characters stays one value."""
    path = spec(tmp_path, "name: a\nconfiguration: {x: '${env:X}'}\n")
    assert read_spec(path, {"X": "a: [b"}).configuration["x"] == "a: [b"


def test_finding_the_file(tmp_path: Path):
    """One spec file is found under each of its names; none, two, and a missing folder are reported."""
    with pytest.raises(PipelineNotFound, match="no folder"):
        find_spec_file(tmp_path / "absent")
    with pytest.raises(PipelineNotFound, match=r"holds no pipeline\.yml"):
        find_spec_file(tmp_path)
    (tmp_path / "spark-pipeline.yml").write_text("name: a\n")
    with pytest.raises(PipelineNotFound, match=r"spark-pipeline\.yml is a file") as raised:
        find_spec_file(tmp_path / "spark-pipeline.yml")
    assert str(tmp_path) in raised.value.remedy
    assert find_spec_file(tmp_path).name == "spark-pipeline.yml"
    (tmp_path / "pipeline.yml").write_text("name: a\n")
    with pytest.raises(PipelineNotFound, match=r"pipeline\.yml and spark-pipeline\.yml"):
        find_spec_file(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "event_log: {retention_days: '${env:ODD}'}",
        "maintenance: {keep: 'x ${env:ODD}'}",
        "trigger: {processing_time: '${env:ODD}'}",
        "airflow: {retry_delay: '${env:ODD} days', tasks: '${env:ODD}'}",
        "libraries: ['${env:ODD}']",
        "libraries: '${env:ODD}'",
        "id: '${env:ODD}!'",
        "catalog: '${env:ODD} a'",
        "brokers: {'kafka:9092': {protocol: '${env:ODD}'}}",
        "brokers: {'kafka:9092': '${env:ODD}'}",
        "lint: {ignore: {a: '${env:ODD}'}}",
        "lint: ['${env:ODD}']",
    ],
)
def test_an_error_shows_no_value_of_the_environment(tmp_path: Path, line: str):
    """It may be a secret: the value is shown as it is written in the file."""
    with pytest.raises(InvalidSpec) as caught:
        read_spec(spec(tmp_path, f"name: orders\n{line}\n"), {"ODD": "Hunter2Canary"})
    assert "hunter2" not in str(caught.value).lower()
    assert ":2" in caught.value.where


def test_an_error_shows_no_value_of_a_key_that_holds_a_secret(tmp_path: Path):
    """Also where the secret was written into the file, against all advice; of others it shows what it got."""
    message = str(fault(tmp_path, "name: a\nspark: {spark.hadoop.fs.s3a.secret.key: [Hunter2Canary]}\n"))
    assert "Hunter2" not in message
    assert "spark.hadoop.fs.s3a.secret.key" in message
    message = str(
        fault(tmp_path, "name: a\nbrokers: {'kafka:9092': {protocol: SSL, password_env: 'not a name'}}\n")
    )
    assert "'not a name'" in message


def test_a_folder_beside_a_pipeline(tmp_path: Path):
    """Who names a folder in a pipeline, or one of several pipelines, is answered with theirs."""
    for name in "abcd":
        (tmp_path / "all" / name / "transformations").mkdir(parents=True)
        (tmp_path / "all" / name / "pipeline.yml").write_text("name: p\n")
    with pytest.raises(PipelineNotFound) as inside:
        find_spec_file(tmp_path / "all" / "a" / "transformations")
    assert inside.value.remedy == f"A pipeline's folder is {tmp_path / 'all' / 'a'}."
    with pytest.raises(PipelineNotFound) as above:
        find_spec_file(tmp_path / "all")
    first, second, third = (tmp_path / "all" / name for name in "abc")
    assert above.value.remedy == f"A pipeline's folder is {first} or {second} or {third}, and 1 more."
    with pytest.raises(PipelineNotFound) as elsewhere:
        find_spec_file(tmp_path)
    assert "headwater init" in elsewhere.value.remedy
