"""`convert` writes a pipeline.yml that means what the settings meant, says what became of them, and overwrites nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater.graph.test_lakeflow_spec import BUNDLE, EVERYTHING, SEED

from headwater.commands.command_line import main
from headwater.commands.convert import spec_text
from headwater.graph.lakeflow_spec import SettingNote
from headwater.graph.pipeline_project import open_project
from headwater.graph.spec_file import SPEC_FILES, read_spec


@pytest.mark.parametrize("text", [SEED, json.dumps(EVERYTHING)], ids=["seed", "everything"])
def test_the_written_spec_means_the_same(tmp_path: Path, capsys, text: str):
    """It is read as the settings were, and every note stands in it and is printed."""
    file = tmp_path / "settings.json"
    file.write_text(text)
    assert main(["convert", str(file), "-o", str(tmp_path / "made" / "here"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    made = tmp_path / "made" / "here" / "pipeline.yml"
    assert read_spec(made, {}) == read_spec(file, {})
    comments = [line.removeprefix("# ") for line in made.read_text().split("\n") if line.startswith("# ")]
    assert len(comments) == len(report["notes"]) + 1
    assert all(any(note["sentence"] in line for line in comments) for note in report["notes"])
    assert report["notes"]


@pytest.mark.parametrize("taken", SPEC_FILES)
def test_a_spec_is_never_overwritten(tmp_path: Path, capsys, taken: str):
    """Whatever it is called, also a link that leads nowhere."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(SEED)
    (tmp_path / "in" / taken).symlink_to(tmp_path / "nowhere")
    assert main(["convert", str(tmp_path / "in" / "a.json")]) == 2
    assert "already" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["a.json", taken]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", '{"name": "a",\n "photn": true}', "Did you mean `photon`"),
        ("a.json", '{"name": "a",\n "airflow": {"retries": 99}}', "retries"),
        ("a.yml", "a: [", "not YAML"),
        ("b.yml", BUNDLE.replace("    sessions:", "    other: {name: b}\n    sessions:"), "--pipeline KEY"),
        ("c.json", "{}", "`name` is missing"),
    ],
)
def test_what_can_not_be_converted_writes_nothing(tmp_path: Path, capsys, name: str, text: str, says: str):
    """Each with its line and what to do; no folder is made."""
    (tmp_path / name).write_text(text)
    assert main(["convert", str(tmp_path / name), "-o", str(tmp_path / "out")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_pipeline_of_a_bundle(tmp_path: Path):
    """`--pipeline` chooses it; a name that is not there has the nearest."""
    file = tmp_path / "databricks.yml"
    file.write_text(BUNDLE.replace("    sessions:", "    other: {name: b}\n    sessions:"))
    assert main(["convert", str(file), "-o", str(tmp_path / "out"), "--pipeline", "sesions"]) == 2
    assert main(["convert", str(file), "-o", str(tmp_path / "out"), "--pipeline", "sessions"]) == 0
    assert read_spec(tmp_path / "out" / "pipeline.yml", {}).pipeline_id == "sessions"


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_ends_its_comment(setting: str, sentence: str):
    """Names and values from the settings stay in their comment, whatever is in them."""
    notes = [SettingNote(setting, sentence), SettingNote("x", sentence, "name")]
    assert yaml.safe_load(spec_text({"name": "a"}, notes, sentence)) == {"name": "a"}


PARTS = {
    "databricks.yml": """
bundle: {name: shop}
include: [resources/*.yml]
variables: {catalog: {default: lake}, schema: {description: of the tables}}
targets:
  dev: {default: true, variables: {schema: "${workspace.current_user.short_name}"}}
  prod: {variables: {schema: sales, catalog: main}}
""",
    "resources/shop.pipeline.yml": """
resources:
  pipelines:
    shop:
      name: shop-${bundle.target}
      catalog: ${var.catalog}
      schema: ${var.schema}
      libraries:
        - notebook: {path: ../src/shop/bronze/orders}
        - glob: {include: "../src/shop/silver/**"}
        - file: {path: "${workspace.file_path}/src/shop/gold/totals.sql"}
""",
    "resources/shop.job.yml": "resources: {jobs: {daily: {name: daily}}}\n",
    "src/shop/bronze/orders.py": "1",
    "src/shop/silver/a.sql": "2",
    "src/shop/gold/totals.sql": "3",
    "src/shop/conf/tables.json": "[]",
    "src/shop/.hidden/a.py": "",
    "src/other/b.py": "",
}


def parts_of_a_bundle(folder: Path, **changed: str) -> Path:
    """A bundle in several files, as the platform's templates make one."""
    for name, text in {**PARTS, **changed}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "databricks.yml"


def test_a_bundle_of_several_files(tmp_path: Path, capsys):
    """What it includes is read, the variables of a target are filled in, and the sources are copied beside the spec."""
    file, out = parts_of_a_bundle(tmp_path / "bundle"), tmp_path / "out"
    assert main(["convert", str(file), "-o", str(out), "--target", "prod"]) == 0
    assert "Copied 4 files" in capsys.readouterr().out
    there = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert there == {
        "pipeline.yml",
        "bronze/orders.py",
        "silver/a.sql",
        "gold/totals.sql",
        "conf/tables.json",
    }
    spec = read_spec(out / "pipeline.yml", {})
    assert (spec.name, spec.catalog, spec.schema) == ("shop-prod", "main", "sales")
    written = yaml.safe_load((out / "pipeline.yml").read_text())
    assert written["libraries"] == [
        {"notebook": {"path": "bronze/orders.py"}}, {"glob": {"include": "silver/**"}}, {"file": {"path": "gold/totals.sql"}},
    ]  # fmt: skip
    assert main(["convert", str(file), "-o", str(tmp_path / "dev")]) == 0
    assert read_spec(tmp_path / "dev" / "pipeline.yml", {"USER": "me"}).schema == "me"


def test_a_file_may_be_a_pattern(tmp_path: Path):
    """As in a bundle's templates: the sources that match are copied and read."""
    text = PARTS["resources/shop.pipeline.yml"].replace("bronze/orders}", "bronze/*.py}")
    file = parts_of_a_bundle(tmp_path / "bundle", **{"resources/shop.pipeline.yml": text})
    assert main(["convert", str(file), "-o", str(tmp_path / "out"), "--target", "prod"]) == 0
    project = open_project(tmp_path / "out", storage=tmp_path / "s", warehouse=tmp_path / "w")
    assert [path.name for path in project.source_files()] == ["orders.py", "a.sql", "totals.sql"]


def test_sources_that_lie_elsewhere(tmp_path: Path, capsys):
    """What is not below the bundle's folder is not copied, and that is said."""
    text = PARTS["resources/shop.pipeline.yml"].replace("../src/shop/bronze/orders", "../../orders.py")
    (tmp_path / "orders.py").write_text("1")
    file = parts_of_a_bundle(tmp_path / "bundle", **{"resources/shop.pipeline.yml": text})
    assert main(["convert", str(file), "-o", str(tmp_path / "out"), "--target", "prod"]) == 0
    assert "No sources were copied" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["pipeline.yml"]


def test_files_that_are_there_stay(tmp_path: Path, capsys):
    """Where a source would go, another file is: nothing is written."""
    file, out = parts_of_a_bundle(tmp_path / "bundle"), tmp_path / "out"
    (out / "bronze").mkdir(parents=True)
    (out / "bronze" / "orders.py").write_text("mine")
    assert main(["convert", str(file), "-o", str(out)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert [path.read_text() for path in out.rglob("*") if path.is_file()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "old", "new", "options", "says"),
    [
        ("databricks.yml", "resources/*.yml", "../*.yml", (), "below the bundle's own folder"),
        ("databricks.yml", "include", "inclde", (), "Unknown key `inclde`"),
        ("databricks.yml", "prod", "prod", ("--target", "prd"), "Did you mean 'prod'?"),
        (
            "resources/shop.pipeline.yml",
            "catalog: ${var.catalog}",
            "catalog: ${var.catalg}",
            (),
            "has no value",
        ),
        ("resources/shop.pipeline.yml", "catalog:", "catalgo:", (), "shop.pipeline.yml:6"),
    ],
)
def test_bundles_that_can_not_be_converted(
    tmp_path: Path, capsys, name: str, old: str, new: str, options: tuple[str, ...], says: str
):
    """The fault has its file and line, or the nearest name; nothing is written."""
    file = parts_of_a_bundle(tmp_path / "bundle", **{name: PARTS[name].replace(old, new)})
    assert main(["convert", str(file), "-o", str(tmp_path / "out"), *options]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
