"""``pipeline.yml``: the fields of Spark's own pipeline spec and ours, every key known, every value typed."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlparse

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from headwater.definitions.airflow_spec import AirflowSpec
from headwater.definitions.broker_login import BrokerLogin
from headwater.definitions.cluster_spec import ClusterSpec
from headwater.definitions.finding import LINT_RULES
from headwater.definitions.flow_settings import UPDATE_RETRIES, wrong_setting
from headwater.definitions.metastore_spec import MetastoreSpec
from headwater.definitions.names import FOLDER_PATTERN, NAME_PATTERN, is_folder_name
from headwater.definitions.object_store_spec import ObjectStoreSpec
from headwater.definitions.other_engines import Engine
from headwater.definitions.parameter import ParameterName, ParameterSpec, undeclared_secret
from headwater.definitions.platform_settings import SettingPlace, wrong_place
from headwater.definitions.spec_model import Duration, WrongAt
from headwater.definitions.spec_model import Strict as _Strict
from headwater.definitions.trigger import AvailableNow, Continuous, ProcessingTime, Trigger

_ID = rf"^{FOLDER_PATTERN.pattern}$"  # to pydantic, $ is the end of the text
_PART = rf"^{NAME_PATTERN.pattern}$"
_DEPLOY_MODE = "spark.submit.deployMode"
_STORE = re.compile(r"s3://([^/]*)(/[^\s\x00-\x1f]*)?")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,62}")


def _conf_text(value: object) -> object:
    """Spark knows strings only; YAML gives numbers and booleans."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


ConfText = Annotated[str, BeforeValidator(_conf_text)]


class Glob(_Strict):
    """A pattern of source files, from the pipeline's folder."""

    include: str


class FilePath(_Strict):
    """One source file, from the pipeline's folder."""

    path: str


class Library(_Strict):
    """Where sources are: exactly one of the three spellings."""

    glob: Glob | None = None
    file: FilePath | None = None
    notebook: FilePath | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Library:
        patterns = [value for value in (self.glob, self.file, self.notebook) if value is not None]
        if len(patterns) != 1:
            raise ValueError("say exactly one of glob, file or notebook")
        return self

    @property
    def pattern(self) -> str:
        """The library as one glob pattern."""
        if self.glob is not None:
            return self.glob.include
        chosen = self.file or self.notebook
        assert chosen is not None
        return chosen.path


class ProcessingTimeSpec(_Strict):
    """A long-running update: look every ``processing_time``, end after ``run_for``."""

    processing_time: Duration
    run_for: Duration = timedelta(minutes=30)


_CONTINUOUS = "continuous"
_SPARKS_OWN = {
    _CONTINUOUS: "Spark's continuous mode can't write Delta tables, aggregate or join",
    "realtime": "Spark's real-time mode is for single flows from Kafka to Kafka, which ask for it in their spark_conf",
}


_OF_ONE_WORD = {"availablenow": "available_now", "once": "once"}


def _refuse_sparks_own(value: object) -> object:
    """Refuse the triggers that Spark has and a pipeline can't be run with, with the reason, and Spark's spelling of others."""
    for name in value if isinstance(value, dict) else [value]:
        plain = re.sub(r"[^a-z]", "", name.lower()) if isinstance(name, str) else ""
        word, reason = _OF_ONE_WORD.get(plain), _SPARKS_OWN.get(plain)
        if word is not None and value != word:
            raise ValueError(f"Write `trigger: {word}`")
        if reason is not None and value != _CONTINUOUS:
            raise ValueError(
                f"{reason}. Write `trigger: continuous`, with pipelines.trigger.interval under `configuration`"
            )
    return value


def _trigger_form(value: object) -> str:
    return "processing time" if isinstance(value, dict | ProcessingTimeSpec) else "named"


# Distinguished before validation, so that an error is about the form that the user wrote. No tag is a key of the file.
TriggerSpec = Annotated[
    Annotated[Literal["available_now", "once", "continuous"], Tag("named")]
    | Annotated[ProcessingTimeSpec, Tag("processing time")],
    Discriminator(_trigger_form),
    BeforeValidator(_refuse_sparks_own),
]


class LintSpec(_Strict):
    """What `validate` leaves out for the whole pipeline. ``strict``: warnings count as errors."""

    ignore: tuple[str, ...] = ()
    strict: bool = False

    @field_validator("ignore")
    @classmethod
    def _known(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [code for code in codes if code not in LINT_RULES]
        if unknown:
            raise ValueError(f"no rule has the code {unknown[0]}; the codes are in docs/linter.md")
        return codes


class EventLogSpec(_Strict):
    """How long the event log is kept. ``retention_days``: whole days; null for ever."""

    retention_days: Annotated[int, Field(strict=True, ge=1, le=36500)] | None = 90


class ReaderSpec(_Strict):
    """A reader of a table that is not a flow of ours; vacuum keeps what it has not read yet.

    ``checkpoint``: the folder of a Spark stream's checkpoint, from the pipeline's folder. ``needs``: it needs what was
    removed within this time.
    """

    name: str = Field(min_length=1)
    table: str = Field(min_length=1)
    checkpoint: str | None = None
    needs: Duration | None = None

    @model_validator(mode="after")
    def _says_what(self) -> ReaderSpec:
        if self.checkpoint is None and self.needs is None:
            raise ValueError("say checkpoint, needs or both")
        return self


class MaintenanceSpec(_Strict):
    """What maintenance does. ``retention``: of removed files, else each table's property; ``keep``: of old epochs and copies."""

    retention: Duration | None = None
    keep: Duration = timedelta(days=30)
    readers: tuple[ReaderSpec, ...] = ()


class PipelineSpec(_Strict):
    """The whole of ``pipeline.yml``."""

    name: str = Field(min_length=1, max_length=128)
    id: str | None = Field(default=None, pattern=_ID)
    catalog: str | None = Field(default=None, pattern=_PART)
    schema_name: str | None = Field(
        default=None,
        pattern=_PART,
        alias="schema",
        validation_alias=AliasChoices("schema", "database", "target"),
    )
    storage: str | None = None
    libraries: tuple[Library, ...] = (Library(glob=Glob(include="transformations/**")),)
    configuration: dict[str, ConfText] = Field(default_factory=dict)
    parameters: dict[ParameterName, ParameterSpec] = Field(default_factory=dict)
    spark: dict[str, ConfText] = Field(default_factory=dict)
    trigger_spec: TriggerSpec = Field(default="available_now", alias="trigger")
    airflow: AirflowSpec = AirflowSpec()
    lint: LintSpec = LintSpec()
    brokers: dict[str, BrokerLogin] = Field(default_factory=dict)
    event_log: EventLogSpec = EventLogSpec()
    maintenance: MaintenanceSpec = MaintenanceSpec()
    lease: str | None = None
    object_store: ObjectStoreSpec = ObjectStoreSpec()
    cluster: ClusterSpec = ClusterSpec()
    readers: tuple[Engine, ...] = ()
    metastore: MetastoreSpec | None = None

    @field_validator("configuration", "spark")
    @classmethod
    def _settings_of_flows(cls, configuration: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        wrong = wrong_setting(configuration)
        if wrong is not None:
            raise ValueError(wrong)
        refused = wrong_place(configuration, SettingPlace(str(info.field_name)))
        if refused is not None:
            raise ValueError(f"{refused.what}. {refused.remedy.rstrip('.')}")
        return configuration

    @field_validator("spark")
    @classmethod
    def _no_deploy_mode(cls, conf: dict[str, str]) -> dict[str, str]:
        if conf.get(_DEPLOY_MODE, "client") != "client":
            raise ValueError(
                f"{_DEPLOY_MODE} has no place here: `headwater run` is the driver itself, under Airflow the connection's deploy-mode "
                "decides, and on a standalone master (spark://) Spark has no cluster mode for Python programs"
            )
        return conf

    @field_validator("name")
    @classmethod
    def _one_line(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("a name is one line of visible characters")
        return name

    @field_validator("storage")
    @classmethod
    def _an_address(cls, place: str | None) -> str | None:
        if place is not None:
            urlparse(place)  # raises ValueError
        return place

    @field_validator("readers", mode="before")
    @classmethod
    def _known_readers(cls, readers: object) -> object:
        known = [str(engine) for engine in Engine]
        for reader in readers if isinstance(readers, list | tuple) else ():
            if reader not in known:
                raise ValueError(
                    f"{reader!r} was never tried on tables of Headwater; name readers among {', '.join(known)}"
                )
        return readers

    @field_validator("lease")
    @classmethod
    def _known_store(cls, place: str | None) -> str | None:
        if place is None:
            return place
        if not place.startswith("s3://"):
            raise ValueError("write s3://bucket/folder; leases can lie in no other store")
        named = _STORE.fullmatch(place)
        if named is None:
            raise ValueError("write s3://bucket/folder; there is a blank or a line break in it")
        if not _BUCKET.fullmatch(named[1]):
            raise ValueError(
                "write s3://bucket/folder; the name of a bucket has 3 to 63 letters, digits, dots, hyphens and underscores"
            )
        return place

    @model_validator(mode="before")
    @classmethod
    def _no_continuous(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("continuous"):
            raise ValueError("`continuous` is Lakeflow's key. Write `trigger: continuous`")
        return data

    @model_validator(mode="before")
    @classmethod
    def _one_schema(cls, data: Any) -> Any:
        if isinstance(data, dict):
            spellings = [key for key in ("schema", "database", "target") if key in data]
            if len(spellings) > 1:
                raise ValueError(f"{' and '.join(spellings)} mean the same; give one of them")
        return data

    @model_validator(mode="after")
    def _usable_id(self) -> PipelineSpec:
        if self.id is None and not is_folder_name(self.name):
            raise ValueError(
                f"the name {self.name!r} can't serve as the id; give an `id` of letters, digits, _ and -"
            )
        return self

    @model_validator(mode="after")
    def _usable_parameters(self) -> PipelineSpec:
        both = next((name for name in self.parameters if name in self.configuration), None)
        if both is not None:
            raise WrongAt(
                f"`parameters` and `configuration` both have {both!r}; take it out of one of them",
                *("parameters", both),
            )
        named = undeclared_secret(self.parameters)
        if named is not None:
            raise WrongAt(
                f"the parameter {named!r} is named like a secret; its key `secret` must say true, or false where it is none",
                *("parameters", named),
            )
        unfilled = next(
            (n for n, spec in self.parameters.items() if spec.required and spec.default is None), None
        )
        endless = (
            self.trigger_spec not in ("available_now", "once")
            and "schedule" not in self.airflow.model_fields_set
        )
        if unfilled is not None and (self.airflow.schedule is not None or endless):
            raise WrongAt(
                f"the parameter {unfilled!r} is required without a default, and a scheduled run has nobody to fill it in; "
                "give a default, or `airflow: {schedule: null}`",
                *("parameters", unfilled),
            )
        return self

    @property
    def update_retries(self) -> int:
        """How often Airflow tries an update again: ``airflow.retries``, else ``pipelines.numUpdateRetryAttempts``."""
        configured = self.configuration.get(UPDATE_RETRIES)
        if configured is None or "retries" in self.airflow.model_fields_set:
            return self.airflow.retries
        return int(configured)

    @property
    def pipeline_id(self) -> str:
        """The id: names folders, so it is one plain word."""
        return self.id or self.name

    @property
    def dag_id(self) -> str:
        """The id of the pipeline's DAG in Airflow; those of its other DAGs have a word behind it."""
        return self.airflow.dag_id or self.pipeline_id

    @property
    def schema(self) -> str:  # type: ignore[override]  # pydantic's own method of this name is deprecated
        """The schema that unqualified dataset names lie in."""
        return self.schema_name or "default"

    @property
    def trigger(self) -> Trigger:
        """When batches start, and when the update ends."""
        spec = self.trigger_spec
        if isinstance(spec, ProcessingTimeSpec):
            return ProcessingTime(spec.processing_time, spec.run_for)
        return Continuous() if spec == _CONTINUOUS else AvailableNow()
