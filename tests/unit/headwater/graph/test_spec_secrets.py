"""Secrets of a pipeline's spec are known once it was opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import InvalidSpec
from headwater.event_log.redaction import REDACTED, redact_text
from headwater.graph.pipeline_project import open_project
from headwater.runtime import secret_values

SPEC = """
name: orders
libraries: [{glob: {include: src/**}}]
configuration: {landing: '${env:LANDING}', hub: '${env:HUB_TOKEN}', api_key: written-in-the-file}
spark:
  spark.hadoop.fs.azure.account.key.x: ${env:ODD}
  spark.hadoop.fs.s3a.endpoint: ${env:ENDPOINT}
brokers:
  kafka:9092: {protocol: SASL_SSL, mechanism: PLAIN, username: me, password_env: BROKER}
"""
ENVIRONMENT = {
    "LANDING": "/data/landing",
    "HUB_TOKEN": "value-of-hub",
    "ODD": "value-of-account",
    "ENDPOINT": "http://store:9000",
    "BROKER": "value-of-broker",
}


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    """No secret that another test has noted."""
    monkeypatch.setattr(secret_values, "_noted", set())


def test_secrets_are_noted_and_places_are_not(tmp_path: Path):
    """By the name of the variable, of the key, or as `*_env`; a folder and an address are shown as they are."""
    (tmp_path / "pipeline.yml").write_text(SPEC)
    open_project(tmp_path, storage=tmp_path / "storage", environment=ENVIRONMENT)
    for secret in ("value-of-hub", "value-of-account", "value-of-broker", "written-in-the-file"):
        assert redact_text(f"it said {secret}!") == f"it said {REDACTED}!"
    assert redact_text("/data/landing http://store:9000 me") == "/data/landing http://store:9000 me"


FORMS = {
    "pipeline.yml": """
name: orders
configuration: {jaas: 'user="{{secrets/kafka/user-1}}" password="{{ secrets/kafka/pass }}"'}
spark: {spark.hadoop.key: '{{secrets/my.store/key}}'}
""",
    "pipeline.json": """{"name": "orders",
"configuration": {"jaas": "user=\\"{{secrets/kafka/user-1}}\\" password=\\"{{ secrets/kafka/pass }}\\""},
"clusters": [{"spark_conf": {"spark.hadoop.key": "{{secrets/my.store/key}}"}}]}
""",
    "pipeline.yaml": """
bundle: {name: b}
resources: {pipelines: {orders: {name: orders,
  configuration: {jaas: 'user="{{secrets/kafka/user-1}}" password="{{ secrets/kafka/pass }}"'},
  clusters: [{spark_conf: {spark.hadoop.key: '{{secrets/my.store/key}}'}}]}}}
""",
}


@pytest.mark.parametrize("form", FORMS)
def test_references_of_the_platform(tmp_path: Path, form: str):
    """Each names the variable that ``dbutils.secrets`` reads, in every form of a spec; one that is not set is refused by its name."""
    (tmp_path / form).write_text(FORMS[form])
    values = {
        "HEADWATER_SECRET_KAFKA_USER_1": "me",
        "HEADWATER_SECRET_KAFKA_PASS": "value-of-pass",
        "HEADWATER_SECRET_MY_STORE_KEY": "value-of-key",
    }
    project = open_project(tmp_path, storage=tmp_path / "storage", environment=values)
    assert project.spec.configuration == {"jaas": 'user="me" password="value-of-pass"'}
    assert project.spec.spark == {"spark.hadoop.key": "value-of-key"}
    assert redact_text("value-of-pass value-of-key") == f"{REDACTED} {REDACTED}"
    del values["HEADWATER_SECRET_MY_STORE_KEY"]
    with pytest.raises(InvalidSpec, match="HEADWATER_SECRET_MY_STORE_KEY"):
        open_project(tmp_path, storage=tmp_path / "storage", environment=values)


def test_values_of_parameters(tmp_path: Path):
    """`--param` values named like a secret are known as those of the configuration are, whose place they take."""
    (tmp_path / "pipeline.yml").write_text("name: orders\n")
    given = {"api_token": "value-of-param", "landing": "/data/landing"}
    open_project(tmp_path, storage=tmp_path / "storage", parameters=given, environment={})
    assert redact_text("value-of-param in /data/landing") == f"{REDACTED} in /data/landing"
