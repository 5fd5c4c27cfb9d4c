"""A pipeline on disk: where its roots are, which files are its sources, and when its hash changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.errors import InvalidSpec, UsageError
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.runtime.conditions import UnsupportedStore
from headwater.storage.access import ObjectStore

SPEC = "name: orders\nlibraries: [{glob: {include: src/**}}]\nconfiguration: {x: '${env:X:1}'}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pipeline's folder."""
    for name, text in {
        "pipeline.yml": SPEC,
        "src/b.py": "b = 1\n",
        "src/a.py": "a = 1\n",
        "src/deep/c.ipynb": "{}",
        "src/notes.md": "notes",
        "shared.py": "s = 1\n",
    }.items():
        path = tmp_path / "orders" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "orders"


def opened(folder: Path, **options: object) -> PipelineProject:
    """The project, with an environment of its own."""
    return open_project(folder, **{"environment": {}, **options})  # type: ignore[arg-type]


def test_sources_in_a_stable_order(folder: Path):
    """The glob finds .py and .ipynb files at any depth, sorted, each once, no copies that an editor keeps."""
    (folder / "pipeline.yml").write_text(
        SPEC.replace("libraries: [", "libraries: [{file: {path: src/b.py}}, ")
    )
    (folder / "src/.ipynb_checkpoints").mkdir()
    (folder / "src/.ipynb_checkpoints/c-checkpoint.ipynb").write_text("{}")
    names = [path.relative_to(folder).as_posix() for path in opened(folder).source_files()]
    assert names == ["src/b.py", "src/a.py", "src/deep/c.ipynb"]


@pytest.mark.parametrize("pattern", ["/etc/*.py", "../other/*.py", "src/../../x.py"])
def test_a_library_that_leaves_the_folder(folder: Path, pattern: str):
    """Sources outside the pipeline's folder are refused."""
    (folder / "pipeline.yml").write_text(f"name: a\nlibraries: [{{glob: {{include: '{pattern}'}}}}]\n")
    with pytest.raises(InvalidSpec, match="leads out of the pipeline's folder"):
        opened(folder).source_files()


def test_a_library_that_is_not_there(folder: Path):
    """A file named under libraries must be there."""
    (folder / "pipeline.yml").write_text("name: a\nlibraries: [{file: {path: src/missing.py}}]\n")
    with pytest.raises(InvalidSpec, match=r"src/missing\.py"):
        opened(folder).source_files()


def test_roots_the_nearest_word_wins(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Roots come from the caller, else the environment, else the spec, else the working directory."""
    monkeypatch.chdir(tmp_path)
    project = opened(folder)
    assert project.storage == tmp_path / ".headwater/storage"
    assert project.warehouse == tmp_path / ".headwater/warehouse"
    assert project.state_folder == project.storage / "pipelines/orders"
    (folder / "pipeline.yml").write_text(SPEC + "storage: file://state\n".replace("file://", ""))
    assert opened(folder).storage == folder / "state"
    environment = {"HEADWATER_STORAGE": str(tmp_path / "e"), "HEADWATER_WAREHOUSE": str(tmp_path / "f")}
    assert opened(folder, environment=environment).storage == tmp_path / "e"
    assert opened(folder, environment=environment).warehouse == tmp_path / "f"
    assert opened(folder, environment=environment, storage=tmp_path / "g").storage == tmp_path / "g"


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_roots_behind_a_file(folder: Path, below: str):
    """Where a file lies in the way of storage or warehouse, the error names it, not what could not be read there."""
    file = folder / "pipeline.yml"
    for root in ("storage", "warehouse"):
        with pytest.raises(UsageError, match=r"pipeline\.yml is a file"):
            open_project(folder, **{root: str(file / below)})


def test_roots_on_an_object_store(folder: Path):
    """S3 is a place, reached by the spec's settings; stores without exclusive writers, and other schemes, are refused."""
    (folder / "pipeline.yml").write_text(f"{SPEC}object_store: {{endpoint: 'http://minio:9000'}}\n")
    project = opened(folder, environment={"HEADWATER_STORAGE": "s3://bucket/state", "AWS_REGION": "eu-1"})
    assert str(project.state_folder) == "s3://bucket/state/pipelines/orders"
    assert project.state_folder.bucket.store == ObjectStore(
        "s3", "http://minio:9000", "eu-1", path_style=True
    )
    with pytest.raises(UnsupportedStore):
        opened(folder, storage="gs://bucket/state")
    with pytest.raises(UsageError, match="not a local folder"):
        opened(folder, storage="hdfs://name/state")
    with pytest.raises(UsageError, match="two ways"):
        opened(folder, storage="s3://bucket/my%20state")
    for spelling in ("s3a://bucket/state", "S3://bucket/state", "s3:/bucket/state"):
        with pytest.raises(UsageError, match="not a local folder") as caught:
            opened(folder, storage=spelling)
        assert "Write s3://bucket/folder" in caught.value.remedy
    assert opened(folder, storage=f"file://{folder}/a%20b").storage == folder / "a b"


def test_roots_on_azure(folder: Path):
    """Both roots are reached by the spec's server; a second kind of store beside it, and a connection for S3, are refused."""
    address, azure = "abfss://lake@company.dfs.core.windows.net/state", ObjectStore("abfss")
    on_azure = {"HEADWATER_STORAGE": address}
    assert opened(folder, environment=on_azure).object_store == azure
    assert opened(folder, environment={"HEADWATER_WAREHOUSE": address}).object_store == azure
    with pytest.raises(UnsupportedStore, match="two kinds"):
        opened(folder, environment={**on_azure, "HEADWATER_WAREHOUSE": "s3://bucket/warehouse"})
    (folder / "pipeline.yml").write_text(f"{SPEC}object_store: {{endpoint: 'http://azurite:10000'}}\n")
    project = opened(folder, environment=on_azure)
    assert project.state_folder.bucket.store == project.object_store
    assert project.object_store.endpoint == "http://azurite:10000"
    (folder / "pipeline.yml").write_text(f"{SPEC}airflow: {{store_connection: my_s3}}\n")
    with pytest.raises(InvalidSpec, match="store_connection"):
        opened(folder, environment=on_azure)


def test_parameters_win_over_configuration(folder: Path):
    """A parameter of the run replaces the spec's value of that name."""
    assert opened(folder).configuration == {"x": "1"}
    assert opened(folder, parameters={"x": "2", "y": "3"}).configuration == {"x": "2", "y": "3"}


@pytest.mark.parametrize(
    "change",
    ["src/a.py", "shared.py", "src/deep/c.ipynb", "new.py", "spec", "rename"],
)
def test_the_hash_changes_with_what_matters(folder: Path, change: str):
    """A change of a source, of a module beside them or of the spec is another hash."""
    before = opened(folder).source_hash()
    if change == "spec":
        (folder / "pipeline.yml").write_text(SPEC + "spark: {spark.sql.ansi.enabled: false}\n")
    elif change == "rename":
        (folder / "src/a.py").rename(folder / "src/z.py")
    else:
        (folder / change).write_text("changed = True\n")
    assert opened(folder).source_hash() != before


def test_values_of_a_run_have_a_hash_of_their_own(folder: Path):
    """What is given for one run leaves the committed manifest in force, and is news for the next run all the same."""
    plain, given = opened(folder), opened(folder, parameters={"x": "9"})
    assert plain.source_hash() == given.source_hash()
    assert plain.parameters_hash() == ""
    assert given.parameters_hash() not in ("", opened(folder, parameters={"x": "8"}).parameters_hash())


def test_the_hash_stays_where_nothing_matters(folder: Path, tmp_path: Path):
    """Notes, Airflow's settings, values of the environment, comments of the spec, the manifest and the place don't count."""
    before = opened(folder).source_hash()
    (folder / "src/notes.md").write_text("more notes")
    (folder / "manifest.json").write_text("{}")
    for copy in ("src/__pycache__/a.py", "src/.ipynb_checkpoints/c-checkpoint.ipynb", ".venv/lib.py"):
        (folder / copy).parent.mkdir()
        (folder / copy).write_text("x")
    (folder / "pipeline.yml").write_text("# a comment\n" + SPEC + "airflow: {retries: 5}\n")
    assert opened(folder, environment={"X": "other"}).source_hash() == before
    folder.rename(tmp_path / "elsewhere")
    assert opened(tmp_path / "elsewhere").source_hash() == before


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        (
            "glob: {include: src/**}",
            ["src/a.py", "src/b.py", "src/deep/c.ipynb", "src/deep/x.sql", "src/deep/y.SQL"],
        ),
        ("file: {path: src/deep/x.sql}", ["src/deep/x.sql"]),
        ("notebook: {path: src/deep/x.sql}", ["src/deep/x.sql"]),
        ("glob: {include: 'src/deep/*'}", ["src/deep/c.ipynb", "src/deep/x.sql", "src/deep/y.SQL"]),
    ],
)
def test_sources_in_sql(folder: Path, library: str, expected: list[str]):
    """A .sql file that a library takes in is a source, and counts in the hash; one beside the sources is nobody's."""
    (folder / "pipeline.yml").write_text(f"name: orders\nlibraries: [{{{library}}}]\n")
    for name in ("queries.sql", "src/deep/x.sql", "src/deep/y.SQL"):
        (folder / name).write_text("CREATE STREAMING TABLE a")
    assert [path.relative_to(folder).as_posix() for path in opened(folder).source_files()] == expected
    before = opened(folder).source_hash()
    (folder / "queries.sql").write_text("another")
    assert opened(folder).source_hash() == before
    (folder / "src/deep/x.sql").write_text("another")
    assert opened(folder).source_hash() != before


def test_what_cant_be_imported_is_no_source(folder: Path):
    """A folder that is named like a module and a link to nowhere are left out: no update and no DAG fails for them."""
    before = opened(folder).source_hash()
    (folder / "old.py").mkdir()
    (folder / "gone.py").symlink_to(folder / "nowhere.py")
    assert opened(folder).source_hash() == before


def test_a_name_that_is_no_utf_8_has_a_hash(folder: Path):
    """As files of an old archive have it."""
    before = opened(folder).source_hash()
    (folder / os.fsdecode(b"caf\xe9.py")).write_text("x = 1")
    assert opened(folder).source_hash() != before


def test_a_file_in_the_place_of_its_storage(tmp_path: Path):
    """Where the pipeline's own folder should be, or one above it, the file is named before anything is read."""
    (tmp_path / "pipeline.yml").write_text("name: p\n")
    for place in ("storage/pipelines/p", "storage/pipelines"):
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        with pytest.raises(UsageError, match=f"{file} is a file") as raised:
            open_project(tmp_path, storage=tmp_path / "storage", environment={})
        assert "Move it" in raised.value.remedy
        file.unlink()
        if file.name == "p":
            file.parent.rmdir()
