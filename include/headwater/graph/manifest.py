"""The manifest: a pipeline's resolved graph as a file, which others read without Spark.

``headwater validate`` writes it beside ``pipeline.yml``, to be committed with the pipeline: Airflow builds the DAG
from it. An update resolves the graph again and writes it to storage, with what observers need (where sources
are). Paths of tables are kept from the warehouse, files of sources from the pipeline's folder.

Decision 0006.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.source import SourceKind
from headwater.errors import InvalidSpec
from headwater.graph.files_read import changed_files, files_digest
from headwater.runtime.secret_values import REDACTED, names_a_secret, without_known
from headwater.storage.place import Place, located

if TYPE_CHECKING:
    from headwater.graph.pipeline_project import PipelineProject

FORMAT_VERSION = 1
FILE_NAME = "manifest.json"


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class ColumnEntry(_Entry):
    """A column: its name and its type as Spark prints it."""

    name: str
    type: str
    nullable: bool = True


class ExpectationEntry(_Entry):
    """An expectation on a dataset."""

    name: str
    constraint: str
    action: ViolationAction


class SourceTechniques(_Entry):
    """How a view follows one of its tables: where it only got new rows, and where rows of it changed or went.

    ``found_by``: the view's columns by which the changed part is found; ``reads``: how often its query reads the table.
    """

    source: str
    rows_added: str
    rows_changed: str
    found_by: tuple[str, ...] = ()
    reads: int = 1


class IncrementalEntry(_Entry):
    """Whether a materialized view can ever be refreshed by what changed. ``issues``: why not, in Lakeflow's names."""

    policy: str
    eligible: bool
    issues: tuple[dict[str, Any], ...] = ()
    sources: tuple[SourceTechniques, ...] = ()


class DatasetEntry(_Entry):
    """A dataset. ``location`` is the table's folder below the warehouse (or an absolute one), None where it has none.

    ``quarantine``: the folder of the table for rows that its rules kept out, None where no rule quarantines.
    ``sink_format`` and ``sink_options`` (those that say where to, no secrets) are for sinks.
    ``incremental``: of a materialized view, as ``validate`` found it; an update writes none.
    """

    name: str
    kind: DatasetKind
    location: str | None = None
    quarantine: str | None = None
    comment: str | None = None
    columns: tuple[ColumnEntry, ...] = ()
    expectations: tuple[ExpectationEntry, ...] = ()
    table_properties: dict[str, str] = Field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    cluster_columns: tuple[str, ...] = ()
    private: bool = False
    sink_format: str | None = None
    sink_options: dict[str, str] = Field(default_factory=dict)
    incremental: IncrementalEntry | None = None
    defined_at: str | None = None


class SourceEntry(_Entry):
    """What a flow reads. ``location`` (of tables) is as in DatasetEntry, ``path`` (of files) as the user gave it."""

    kind: SourceKind
    streaming: bool
    name: str = ""
    location: str | None = None
    path: str | None = None
    format: str = ""
    options: dict[str, str] = Field(default_factory=dict)


class FlowEntry(_Entry):
    """A flow. ``inputs`` are the datasets of the pipeline that its query names, views among them.

    ``sources`` are what it reads in the end, views resolved: the streaming ones first, in the order of the
    lines in the checkpoint's offset files.
    ``time_dependent``: the result changes though no source does (``current_date()`` in a materialized view).
    ``depends_on``: datasets that its table waits for though it does not read them; ``after_flows``: flows into its own table that it
    waits for.
    ``output_mode``: what its rows do to those that the table has; ``merge_keys``: by which columns they find them.
    """

    name: str
    target: str
    streaming: bool
    once: bool = False
    inputs: tuple[str, ...] = ()
    sources: tuple[SourceEntry, ...] = ()
    time_dependent: bool = False
    output_mode: OutputKind = OutputKind.APPEND
    merge_keys: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    after_flows: tuple[str, ...] = ()
    defined_at: str | None = None


class Manifest(_Entry):
    """The resolved graph. ``parameters_hash``: of the values given for the run that wrote it, empty where none were.

    ``files_read``: what the sources read while they were loaded, with digests (``files_read.py``); ``rows_read``: whether they ran a
    query, whose rows nobody compares.
    ``schedule``: the cron text that a source wants for updates (SCHEDULE of SQL); ``pipeline.yml`` has the last word.
    ``dropped``: datasets that were dropped and not filled again: another pipeline may have them now.
    """

    format_version: int = FORMAT_VERSION
    headwater_version: str
    pipeline_id: str
    pipeline_name: str
    catalog: str | None = None
    schema_name: str
    source_hash: str
    parameters_hash: str = ""
    schedule: str | None = None
    files_read: Mapping[str, str] = Field(default_factory=dict)
    rows_read: bool = False
    dropped: tuple[str, ...] = ()
    datasets: tuple[DatasetEntry, ...]
    flows: tuple[FlowEntry, ...]

    @property
    def definition_hash(self) -> str:
        """What a flow's query was made of: the sources, the values given for the run, and the files that the sources read."""
        return "+".join(filter(None, (self.source_hash, self.parameters_hash, files_digest(self.files_read))))

    def fits(self, project: PipelineProject) -> bool:
        """Whether it was made of the sources that the pipeline has now, and of what they read, as far as that is known."""
        return self.source_hash == project.source_hash() and not changed_files(
            self.files_read, project.folder
        )

    def dataset(self, name: str) -> DatasetEntry:
        """The dataset of this name; raises KeyError where there is none."""
        return next(entry for entry in self.datasets if entry.name == name)

    def flow(self, name: str) -> FlowEntry:
        """The flow of this name; raises KeyError where there is none."""
        for entry in self.flows:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def flows_into(self, dataset: str) -> list[FlowEntry]:
        """The flows that fill a dataset."""
        return [flow for flow in self.flows if flow.target == dataset]

    def upstream(self, dataset: str) -> list[str]:
        """The tables that must be done before ``dataset`` can be, nearest only, in a stable order."""
        names = {name for flow in self.flows_into(dataset) for name in (*flow.inputs, *flow.depends_on)}
        stored = {name for name in names if self.dataset(name).kind is not DatasetKind.TEMPORARY_VIEW}
        for view in names - stored:
            stored.update(self.upstream(view))
        return [entry.name for entry in self.datasets if entry.name in stored and entry.name != dataset]

    @property
    def tables(self) -> list[DatasetEntry]:
        """The datasets that are tables."""
        kinds = (DatasetKind.TEMPORARY_VIEW, DatasetKind.SINK)
        return [entry for entry in self.datasets if entry.kind not in kinds]

    @property
    def outputs(self) -> list[DatasetEntry]:
        """What an update writes to: tables and sinks."""
        return [entry for entry in self.datasets if entry.kind is not DatasetKind.TEMPORARY_VIEW]

    @property
    def output_flows(self) -> list[FlowEntry]:
        """The flows that an update runs. A temporary view's query is part of those that read it, and keeps no position."""
        outputs = {entry.name for entry in self.outputs}
        return [flow for flow in self.flows if flow.target in outputs]

    def table_path(self, warehouse: Place, dataset: str) -> Place:
        """The folder of a stored dataset's table."""
        location = self.dataset(dataset).location
        if location is None:
            raise KeyError(dataset)
        return located(warehouse, location)

    def quarantine_path(self, warehouse: Place, dataset: str) -> Place | None:
        """The folder of a dataset's quarantine table, None where it has none."""
        location = self.dataset(dataset).quarantine
        return None if location is None else located(warehouse, location)

    def to_json(self) -> str:
        """The text of the file: stable, one line a field, so that a change reads well in a review. No secret stands in it."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=False)
        if not self.parameters_hash:
            del data["parameters_hash"]
        if self.schedule is None:
            del data["schedule"]
        for name in ("files_read", "rows_read", "dropped"):
            if not data[name]:
                del data[name]
        for entry in data["datasets"]:
            _hide_in_texts(entry)
            if entry["incremental"] is None:
                del entry["incremental"]
        for entry in data["flows"]:
            for name in ("depends_on", "after_flows"):
                if not entry[name]:
                    del entry[name]
        return json.dumps(data, indent=2, sort_keys=False, ensure_ascii=False) + "\n"


def _hide_in_texts(dataset: dict[str, Any]) -> None:
    """What users write for people and for Delta may quote a secret; names and places are needed as they are."""
    dataset["comment"] = dataset["comment"] and without_known(dataset["comment"])
    for rule in dataset["expectations"]:
        rule["constraint"] = without_known(rule["constraint"])
    for issue in (dataset["incremental"] or {}).get("issues", ()):
        issue["reason"] = without_known(issue["reason"])
    properties = dataset["table_properties"]
    dataset["table_properties"] = {
        key: REDACTED if names_a_secret(key) else without_known(value) for key, value in properties.items()
    }


def portable(manifest: Manifest, configuration: Mapping[str, str]) -> Manifest:
    """The manifest as it is committed: values of the configuration in sources are spelled ``${key}`` again.

    They differ from machine to machine (folders, brokers) and from run to run, and the file must not.
    """
    values = sorted(
        ((v, k) for k, v in configuration.items() if len(v) > 3), key=lambda pair: (-len(pair[0]), pair[1])
    )

    def spelled(text: str) -> str:
        for value, key in values:
            text = text.replace(value, f"${{{key}}}")
        return text

    def source(entry: SourceEntry) -> SourceEntry:
        options = {key: spelled(value) for key, value in entry.options.items()}
        return entry.model_copy(
            update={"path": spelled(entry.path) if entry.path else entry.path, "options": options}
        )

    def dataset(entry: DatasetEntry) -> DatasetEntry:
        options = {key: spelled(value) for key, value in entry.sink_options.items()}
        location = (
            spelled(entry.location) if entry.kind is DatasetKind.SINK and entry.location else entry.location
        )
        incremental = entry.incremental
        if incremental is not None:
            read = (one.model_copy(update={"source": spelled(one.source)}) for one in incremental.sources)
            incremental = incremental.model_copy(update={"sources": tuple(read)})
        changed = {"location": location, "sink_options": options, "incremental": incremental}
        return entry.model_copy(update=changed)

    flows = (flow.model_copy(update={"sources": tuple(map(source, flow.sources))}) for flow in manifest.flows)
    return manifest.model_copy(
        update={
            "parameters_hash": "",
            # Others lie elsewhere on other machines.
            "files_read": {
                name: one for name, one in manifest.files_read.items() if not name.startswith("/")
            },
            "flows": tuple(flows),
            "datasets": tuple(map(dataset, manifest.datasets)),
        }
    )


def _text(path: Place) -> str:
    return path.read_text(encoding="utf-8")


def read_manifest(path: Place, read: Callable[[Place], str] = _text) -> Manifest | None:
    """The manifest at ``path``, or None where there is none; raises InvalidSpec where it is not one of ours.

    ``read``: gives the file's text, or raises FileNotFoundError.
    """
    remedy = (
        "Move it aside. The one beside pipeline.yml is written again by `python -m headwater validate`, the one in storage by the next "
        "update."
    )
    try:
        text = read(path)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise InvalidSpec(
            f"{path.name} can't be read: this user has no right to.",
            where=path,
            remedy="Give the user that runs this the right to read the file; it need not be written again.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec(f"{path.name} can't be read: {error}.", where=path, remedy=remedy) from None
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        raise InvalidSpec(
            f"{path.name} is not a manifest: {error.errors()[0]['msg']}.", where=path, remedy=remedy
        ) from None
    if manifest.format_version > FORMAT_VERSION:
        raise InvalidSpec(
            f"{path.name} was written by a newer Headwater ({manifest.headwater_version}).",
            where=path,
            remedy=remedy,
        )
    return manifest
