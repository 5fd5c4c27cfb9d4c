"""A bundle of several files means what its deployment would make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InvalidSpec
from headwater.graph import asset_bundle
from headwater.graph.asset_bundle import NotOnePipeline
from headwater.graph.spec_file import read_source, read_spec

HEAD = "bundle: {name: shop}\ninclude: [more/*.yml]\n"


def bundle(folder: Path, pipeline: str, *, head: str = "", more: str = "resources: {}") -> Path:
    """A bundle whose one pipeline has the settings; ``more``: a file that it includes."""
    (folder / "more").mkdir()
    (folder / "more" / "part.yml").write_text(more)
    path = folder / "databricks.yml"
    path.write_text(f"{HEAD}{head}\nresources:\n  pipelines:\n    p: {{name: p, {pipeline}}}\n")
    return path


def settings(path: Path, target: str | None = None) -> dict[str, Any]:
    """What the pipeline's spec is."""
    return read_source(path, target=target).data


TARGETS = """
targets:
  dev: {default: true, variables: {schema: dev_sales}}
  prod:
    variables: {schema: sales}
    resources: {pipelines: {p: {catalog: main}}}
"""


def test_targets_may_stand_in_an_included_file(tmp_path: Path):
    """Their variables and resources count as if they stood in the first file."""
    path = bundle(
        tmp_path, 'schema: "${var.schema}"', head="variables: {schema: {default: none}}", more=TARGETS
    )
    assert settings(path)["schema"] == "dev_sales"
    assert (settings(path, "prod")["schema"], settings(path, "prod")["catalog"]) == ("sales", "main")


def test_a_variable_may_be_a_map(tmp_path: Path):
    """It is put in whole, a target's map takes the place of the default, and inside a text it is refused."""
    head = """
variables: {conf: {type: complex, default: {a: "1", b: "${bundle.target}"}}}
targets: {dev: {}, prod: {variables: {conf: {c: "3"}}}}"""
    path = bundle(tmp_path, 'configuration: "${var.conf}"', head=head)
    assert settings(path)["configuration"] == {"a": "1", "b": "dev"}
    assert settings(path, "prod")["configuration"] == {"c": "3"}
    path.write_text(path.read_text().replace('"${var.conf}"', '{k: "x ${var.conf}"}'))
    with pytest.raises(InvalidSpec, match=r"is a map, and stands inside a text"):
        settings(path)


SCHEMAS = """
resources:
  schemas: {sales: {catalog_name: "${var.catalog}", name: "sales_${bundle.environment}"}}
  volumes: {landing: {catalog_name: main, schema_name: "${resources.schemas.sales.name}", name: landing}}
variables: {catalog: {default: main}}
targets: {dev: {}}
"""


def test_fields_of_other_resources(tmp_path: Path):
    """They have the values that the bundle gives them; what only a deployment knows has none."""
    pipeline = (
        'catalog: "${resources.schemas.sales.catalog_name}", schema: "${resources.schemas.sales.name}",'
        ' configuration: {landing: "${resources.volumes.landing.volume_path}/orders"}'
    )
    path = bundle(tmp_path, pipeline, more=SCHEMAS)
    made = settings(path)
    assert (made["catalog"], made["schema"]) == ("main", "sales_dev")
    assert made["configuration"] == {"landing": "/Volumes/main/sales_dev/landing/orders"}
    path.write_text(path.read_text().replace("schemas.sales.name", "schemas.sales.id"))
    with pytest.raises(InvalidSpec, match=r"resources\.schemas\.sales\.id\} has no value in this file"):
        settings(path)


def test_a_reference_inside_a_reference(tmp_path: Path):
    """The inner one is filled in first."""
    head = "variables: {dev_schema: {default: sales_dev}}\ntargets: {dev: {}}"
    path = bundle(tmp_path, 'schema: "${var.${bundle.target}_schema}"', head=head)
    assert settings(path)["schema"] == "sales_dev"


def test_a_variable_without_a_value_is_the_environments(tmp_path: Path):
    """It is asked of BUNDLE_VAR_<name>, as a deployment does, and a variable that nobody declared stays refused."""
    path = bundle(tmp_path, 'catalog: "${var.catalog}"', head="variables: {catalog: {description: where}}")
    path = path.rename(tmp_path / "pipeline.yml")
    assert read_spec(path, {"BUNDLE_VAR_catalog": "lake"}).catalog == "lake"
    with pytest.raises(InvalidSpec, match="BUNDLE_VAR_catalog"):
        read_spec(path, {})


def test_a_variable_that_names_itself_has_no_value(tmp_path: Path):
    """Over others, too; nothing runs for ever."""
    head = 'variables: {a: {default: "${var.b}"}, b: {default: "${var.a}"}}'
    with pytest.raises(InvalidSpec, match="has no value in this file"):
        settings(bundle(tmp_path, 'schema: "${var.a}"', head=head))


def test_lists_of_a_target_are_added(tmp_path: Path):
    """Libraries of both count, and clusters of one label are one."""
    pipeline = (
        "libraries: [{file: {path: a.py}}], clusters: [{label: default, num_workers: 1, spark_conf: {a: b}}]"
    )
    head = """
targets:
  dev:
    resources:
      pipelines: {p: {libraries: [{file: {path: b.py}}], clusters: [{label: default, num_workers: 3}]}}"""
    made = settings(bundle(tmp_path, pipeline, head=head))
    assert [one["file"]["path"] for one in made["libraries"]] == ["a.py", "b.py"]
    assert made["spark"] == {"spark.executor.instances": "3", "a": "b"}


def test_the_workspaces_address(tmp_path: Path):
    """It is that of the target, else that of the deployment's environment."""
    head = "targets: {dev: {}, prod: {workspace: {host: https://prod}}}"
    path = bundle(tmp_path, 'configuration: {host: "${workspace.host}"}', head=head)
    assert settings(path)["configuration"] == {"host": "${env:DATABRICKS_HOST}"}
    assert settings(path, "prod")["configuration"] == {"host": "https://prod"}


def test_a_file_of_comments_says_nothing(tmp_path: Path):
    """A resource that was taken out for a while is no hindrance."""
    path = bundle(tmp_path, "schema: sales", more="---\n# resources:\n#   jobs: {}\n\n")
    assert settings(path)["schema"] == "sales"


def test_a_name_made_of_itself_is_refused():
    """A bundle's name that names itself ends with an error, as a variable does; an address comes from the environment then."""
    data = {"bundle": {"name": "${bundle.name}x"}, "workspace": {"host": "x${workspace.host}"}}
    with pytest.raises(NotOnePipeline, match="has no value"):
        asset_bundle._filled("a ${bundle.name}", data, ("name",))
    assert asset_bundle._filled("a ${workspace.host}", data, ("name",)) == "a x${env:DATABRICKS_HOST}"
