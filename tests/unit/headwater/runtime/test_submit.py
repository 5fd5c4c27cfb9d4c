"""What may be on a command line, and what Spark has to hide."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.runtime import secret_values, submit
from headwater.runtime.secret_values import note_secret
from headwater.runtime.submit import command_line_conf, redaction, submit_conf

CANARY = "Hunter2Canary"
SECRET_SETTINGS = (
    "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net", "spark.hadoop.fs.azure.sas.fixed.token.c.lake.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.c.lake.blob.core.windows.net", "spark.hadoop.fs.azure.account.oauth2.client.secret",
    "spark.ssl.keyPassword", "spark.authenticate.secret", "spark.kafka.clusters.a.sasl.jaas.config", "spark.x.apiKey", "spark.x.sharedKey",
    "spark.x.credential", "spark.x.connectionString", "spark.x.private-key",
)  # fmt: skip


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    """No jars, and no secret that another test has noted."""
    monkeypatch.setattr(submit, "ensure_jars", lambda _: ())
    monkeypatch.setattr(secret_values, "_noted", set())


@pytest.mark.parametrize("local", [True, False])
def test_settings_that_are_secret_by_name(local):
    """None of them stays, all others do."""
    plain = {"spark.sql.shuffle.partitions": "3", "spark.hadoop.fs.s3a.endpoint": "https://store:9000"}
    conf = submit_conf({**plain, **dict.fromkeys(SECRET_SETTINGS, CANARY)}, local=local)
    assert all(conf[name] == CANARY for name in SECRET_SETTINGS)
    left = command_line_conf(conf)
    assert CANARY not in str(left)
    assert set(conf) - set(left) == set(SECRET_SETTINGS)
    assert plain.items() <= left.items()


def test_settings_that_are_secret_by_value():
    """A known secret inside another value, and an address with a password, do not stay either."""
    note_secret(CANARY)
    conf = {
        "spark.hadoop.url": f"jdbc:x;user=a;p={CANARY}",
        "spark.jars.repositories": "https://user:pw@repository/x",
        "spark.hadoop.fs.defaultFS": "hdfs://name:8020/",
    }
    assert command_line_conf(conf) == {"spark.hadoop.fs.defaultFS": "hdfs://name:8020/"}


def test_what_the_jvm_starts_with_stays():
    """Options of Java are part of its own command line; they are left where the JVM looks for them."""
    conf = submit_conf({"spark.driver.extraJavaOptions": "-Dtoken=x"})
    assert command_line_conf(conf)["spark.driver.extraJavaOptions"].endswith("-Dtoken=x")


def test_broadcast_tables_are_small_in_a_heap_that_nobody_has_named():
    """On one machine with Spark's own heap each broadcast table takes 2 MB; named heaps and pages, and clusters, are left alone."""
    page = "spark.buffer.pageSize"
    assert submit_conf({})[page] == "2m"
    assert submit_conf({page: "8m"})[page] == "8m"
    assert page not in submit_conf({"spark.driver.memory": "40g"})
    assert page not in submit_conf({}, local=False)
    assert submit_conf({**submit.LONG_RUNNING, "spark.driver.memory": "40g"})[page] == "2m"


@pytest.mark.parametrize("name", SECRET_SETTINGS)
def test_spark_hides_settings_by_name(name):
    """The environment page of Spark's UI and its event log leave out what matches."""
    assert re.search(redaction({})["spark.redaction.regex"], name)


def test_a_pipelines_own_pattern_is_added():
    """It widens what is hidden; what we hide stays hidden."""
    pattern = submit_conf({"spark.redaction.regex": "colour|(?i)taste"})["spark.redaction.regex"]
    for name in ("my.colour", "password", "spark.account.key"):
        assert re.search(pattern.replace("(?i)", ""), name)
    assert not re.search(pattern.replace("(?i)", ""), "spark.sql.shuffle.partitions")


@given(st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=30), max_size=5))
def test_settings_are_kept_or_left_out_whole(conf):
    """What stays is what was given, and nothing is added."""
    assert command_line_conf(conf).items() <= conf.items()
