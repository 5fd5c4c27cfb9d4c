"""A pipeline as it lies on disk: its folder, its spec, its sources, and the roots it writes below."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlparse

from headwater.checkpoints.relocation_note import refuse_relocated
from headwater.checkpoints.table_move import refuse_unfinished
from headwater.definitions.parameter_value import Value
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import InvalidSpec, UsageError
from headwater.graph.outside_libraries import leads_out
from headwater.graph.pipeline_ids import known_homes, note_home, refuse_shared_id
from headwater.graph.run_parameters import RunParameters, given_values
from headwater.graph.spec_file import find_spec_file, read_spec, read_written
from headwater.graph.spec_secrets import note_secrets
from headwater.leases.conditional_store import StoredObject
from headwater.leases.file_lease import update_lease
from headwater.leases.holder import Holder
from headwater.leases.lease import Lease
from headwater.leases.storage_lease import storage_lease
from headwater.leases.store_lease import lock_identity, store_lease
from headwater.runtime.conditions import UnsupportedStore
from headwater.runtime.masters import python_settings
from headwater.runtime.object_store import scheme_of, scheme_of_root, session_conf
from headwater.storage import azure
from headwater.storage.access import Login, ObjectStore, object_store
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import S3_SPELLINGS, Place, is_url, place_of, refuse_escapes, without_login

# Keys of the spec that no row depends on.
_NOT_DATA = (
    "airflow", "lint", "brokers", "event_log", "lease", "maintenance", "object_store", "cluster", "readers", "metastore",
)  # fmt: skip
# A text in a source that begins with an address.
_S3_TEXT = re.compile(rb"""["'`]s3://""")
SOURCE_SUFFIXES = (".py", ".ipynb", ".sql")


@dataclass(frozen=True)
class PipelineProject:
    """Everything that is known of a pipeline before its sources are run.

    ``storage`` holds what Headwater keeps (checkpoints, event log, manifest); ``warehouse`` holds the tables.
    ``parameters``: what was given for this run over the defaults. ``environment``: where secrets of parameters lie.
    ``login``: with which its stores are reached, instead of by the default chain.
    """

    folder: Path
    spec_file: Path
    spec: PipelineSpec
    storage: Place
    warehouse: Place
    parameters: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)
    login: Login | None = field(default=None, repr=False, compare=False)

    @property
    def pipeline_id(self) -> str:
        """The id that names the pipeline's folder in storage."""
        return self.spec.pipeline_id

    @property
    def state_folder(self) -> Place:
        """Where this pipeline's checkpoints, event log and manifest lie."""
        return self.storage / "pipelines" / self.pipeline_id

    @property
    def configuration(self) -> dict[str, str]:
        """``configuration`` of the spec and the declared parameters, with what was given for this run on top."""
        declared = self._run_parameters
        others = {name: text for name, text in self.parameters.items() if name not in declared.declared}
        return {**self.spec.configuration, **others, **declared.texts()}

    @property
    def parameter_values(self) -> dict[str, Value | None]:
        """Each declared parameter with its value as its type; None where it has neither a value nor a default.

        Raises:
            InvalidParameter: a required one has no value, one is of another type, or a secret can't be looked up.
        """
        return self._run_parameters.values()

    def check_parameters(self) -> None:
        """Raise InvalidParameter where the sources can't be run with the parameters, as ``parameter_values`` does."""
        self._run_parameters.values()

    @property
    def shown_parameters(self) -> dict[str, str]:
        """Declared parameters, and what else was given for this run, as they may be shown: without secrets."""
        return {**self.parameters, **self._run_parameters.shown()}

    @property
    def _run_parameters(self) -> RunParameters:
        return RunParameters(self.spec.parameters, self.parameters, self.environment, self.spec_file)

    @property
    def object_store(self) -> ObjectStore:
        """How the store of the roots is reached, or ``s3://``: by the spec's ``object_store``, else by the login, else by the environment."""
        schemes = [scheme_of(root) for root in (self.storage, self.warehouse)]
        scheme = next(filter(None, schemes), "s3")
        return object_store(scheme, self.spec.object_store.model_dump(), self.environment, login=self.login)

    def login_variables(self) -> dict[str, str]:
        """The login as variables for the environment of a driver, and for nothing that can be read; empty where there is none."""
        return {} if self.login is None else dict(self.login())

    @property
    def spark_conf(self) -> dict[str, str]:
        """As ``spark_conf_on``, with the master that the spec names."""
        return self.spark_conf_on(self.spec.spark.get("spark.master", ""))

    def spark_conf_on(self, master: str) -> dict[str, str]:
        """The settings of the pipeline's session on a master: ``spark`` of the spec, over what a store and a cluster need.

        Raises:
            UnsafeStoreSetting, UnsupportedStore: as ``session_conf`` does.
        """
        python = python_settings(master, self.spec.cluster.python)
        roots = (self.storage, self.warehouse)
        conf = {**python, **self.spec.spark}
        return session_conf(roots, self.object_store, conf, sources=self.reads_s3)

    @property
    def reads_s3(self) -> bool:
        """Whether the session has to be able to read ``s3://`` for sources, as far as that is seen before they are run.

        It is where ``object_store`` of the spec says so, or where a text in a source or a value of the configuration begins with an
        address. Decision 0193.
        """
        if self.spec.object_store.sources:
            return True
        defaults = (str(each.default_value) for each in self.spec.parameters.values() if not each.secret)
        texts = (*self.spec.configuration.values(), *self.parameters.values(), *defaults)
        if any(text.strip().startswith("s3://") for text in texts):
            return True
        try:
            return any(_S3_TEXT.search(path.read_bytes()) for path in self._code_files())
        except InvalidSpec:  # whoever runs the sources reports it
            return False

    @contextmanager
    def lease(self, holder: str, *, wait: timedelta = timedelta(0), moving: bool = False) -> Iterator[Lease]:
        """Hold the right to write this pipeline's checkpoints and tables inside the block.

        Args:
            holder: an id that is shown to others.
            wait: how long to wait for another holder to end.
            moving: the holder is going to finish the interrupted move of a table, or of the pipeline.

        Raises:
            UpdateInProgress: another process holds it; the message names it.
            LeaseUnreachable: the store of the spec's ``lease`` does not answer.
            StoreRefused: it denies access, or has no such bucket.
            MoveUnfinished: where a table is half-way to another name or pipeline.
            PipelineRelocated: where the pipeline has other roots now, or is half-way to these.
        """
        if isinstance(self.state_folder, ObjectPath):
            with storage_lease(self.state_folder, holder, wait=wait) as stored:
                self._entered(moving=moving)
                yield stored
            return
        place = self.spec.lease
        store = self._lease_object(place) if place else None
        with update_lease(self.state_folder, holder, wait=wait) as local:
            self._entered(moving=moving)
            if store is None:
                yield local
                return
            lock = lock_identity(local.path)
            with store_lease(store, Holder(holder, lock=lock), wait=wait) as lease:
                yield lease

    def _lease_object(self, folder: str) -> StoredObject:
        place = place_of(f"{folder.rstrip('/')}/{self.pipeline_id}/update.lease", store=self.object_store)
        assert isinstance(place, ObjectPath)  # the spec takes nothing else
        return StoredObject(place)

    def _entered(self, *, moving: bool) -> None:
        """What is done as soon as nobody else can write."""
        if not moving:
            refuse_unfinished(self.state_folder)
            refuse_relocated(self.state_folder)
        note_home(self.state_folder, self.folder)

    def source_files(self) -> list[Path]:
        """The files that the libraries name, in a stable order; raises InvalidSpec where one leaves the folder."""
        source_paths: dict[Path, None] = {}
        for library in self.spec.libraries:
            pattern = library.pattern
            if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
                raise leads_out(pattern, self.spec_file)
            matches = self._matches(pattern + "/*" if pattern.endswith("**") else pattern)
            files = [path for path in matches if path.is_file() and path.suffix.lower() in SOURCE_SUFFIXES]
            if library.glob is not None:
                files = [path for path in files if not self._aside(path)]
            if library.glob is None and not files:
                raise InvalidSpec(f"There is no source file {pattern!r}.", where=self.spec_file)
            source_paths.update(dict.fromkeys(files))
        return list(source_paths)

    def _matches(self, pattern: str) -> list[Path]:
        try:
            return sorted(self.folder.glob(pattern))
        except (ValueError, OSError) as error:
            raise InvalidSpec(
                f"The library {pattern!a} is not a pattern of files: {error}.",
                where=self.spec_file,
                remedy='Write it as "transformations/**".',
            ) from None

    def parameters_hash(self) -> str:
        """A digest of what was given for this run; empty where nothing was. Secrets count as little as the environment does."""
        secrets = {name for name, spec in self.spec.parameters.items() if spec.secret}
        given = sorted((name, text) for name, text in self.parameters.items() if name not in secrets)
        return "sha256:" + hashlib.sha256(repr(given).encode()).hexdigest() if given else ""

    def source_hash(self) -> str:
        """A digest of the spec as it is written and every file that sources could import, or run with %run.

        Values from the environment are left out, and those given for a run: a manifest is committed on one machine and
        read on others.
        """
        digest = hashlib.sha256()
        written = {key: value for key, value in read_written(self.spec_file).items() if key not in _NOT_DATA}
        digest.update(json.dumps(written, sort_keys=True, default=str).encode())
        digest.update(b"[]")  # once the parameters of the run: manifests that are committed keep their hash
        for path in self._code_files():
            # A name that is no UTF-8 has its bytes.
            name = os.fsencode(path.relative_to(self.folder).as_posix())
            digest.update(name + b"\0" + path.read_bytes() + b"\0")
        return "sha256:" + digest.hexdigest()

    def _code_files(self) -> list[Path]:
        """Every file that sources could import, or run with %run."""
        files = (path for pattern in ("*.py", "*.ipynb") for path in self.folder.rglob(pattern))
        # Neither a folder of such a name nor a link to nowhere can be imported.
        modules = {path for path in files if not self._aside(path) and path.is_file()}
        return sorted(modules | set(self.source_files()))

    def _aside(self, path: Path) -> bool:
        """Whether a file lies where editors and Python keep their own (``.ipynb_checkpoints`` holds copies of notebooks)."""
        parts = path.relative_to(self.folder).parts
        return any(part.startswith(".") or part == "__pycache__" for part in parts)


def open_project(
    folder: str | Path,
    *,
    storage: str | Place | None = None,
    warehouse: str | Place | None = None,
    parameters: Mapping[str, object] | None = None,
    environment: Mapping[str, str] = os.environ,
    alone: bool = False,
    login_of: Callable[[str | None], Login | None] = lambda _: None,
) -> PipelineProject:
    """Find and check a pipeline's spec and decide its roots.

    ``storage`` and ``warehouse``: the caller's arguments; else HEADWATER_STORAGE and HEADWATER_WAREHOUSE; else
    the spec's ``storage`` (from its folder); else ``.headwater`` in the working directory.
    ``parameters``: values for this run, as texts or as JSON has them; raises InvalidParameter where one does not fit.
    ``alone``: do not check whether a folder beside this one has the same id. ``login_of``: gives the login of the spec's
    ``store_connection``, which only Airflow knows.
    """
    root = _resolved(folder)
    spec_file = find_spec_file(root)
    spec = read_spec(spec_file, environment)
    given = given_values(spec, parameters or {}, spec_file)
    others = {name: text for name, text in given.items() if name not in spec.parameters}
    note_secrets(spec, read_written(spec_file), environment, others)
    RunParameters(spec.parameters, given, environment).note_secrets()
    from_spec = _from_folder(root, spec.storage) if spec.storage else None
    chosen_storage = storage or environment.get("HEADWATER_STORAGE") or from_spec or ".headwater/storage"
    chosen_warehouse = warehouse or environment.get("HEADWATER_WAREHOUSE") or ".headwater/warehouse"
    login = login_of(spec.airflow.store_connection)

    def reached(scheme: str) -> ObjectStore:
        return object_store(scheme, spec.object_store.model_dump(), environment, login=login)

    project = PipelineProject(
        root,
        spec_file,
        spec,
        _root(chosen_storage, reached),
        _root(chosen_warehouse, reached),
        given,
        environment,
        login,
    )
    _check_roots(project)
    if not alone:
        # Two checkouts beside each other, each with its storage inside, share nothing.
        refuse_shared_id(
            _named(folder),
            spec.pipeline_id,
            environment,
            own_storage=chosen_storage is from_spec,
            written=[Path(home.folder) for home in known_homes(project.state_folder)]
            if storage or project.storage.is_relative_to(root)
            else None,
        )
    return project


def _from_folder(root: Path, storage: str) -> str | Path:
    """``storage`` of the spec: an address as it is, a path from the folder of the spec."""
    return storage if is_url(storage) else root / local_path(storage)


def _check_roots(project: PipelineProject) -> None:
    """Raise UnsupportedStore or InvalidSpec where the spec does not fit the stores of the roots; UsageError where a file lies in the way."""
    if isinstance(project.state_folder, Path):
        _folder(project.state_folder)
    if project.spec.lease is not None and isinstance(project.storage, ObjectPath):
        raise InvalidSpec(
            "`lease` has nothing to add where storage lies on an object store: the lease lies there already.",
            where=project.spec_file,
            remedy="Take `lease` out.",
        )
    schemes = {scheme_of(root) for root in (project.storage, project.warehouse)} - {""}
    if len(schemes) > 1:
        raise UnsupportedStore(
            "Storage and warehouse lie in stores of two kinds.",
            where=project.spec_file,
            remedy="Put both into one kind of store, or one of them into a folder.",
        )
    if azure.SCHEME in schemes and project.spec.airflow.store_connection is not None:
        raise InvalidSpec(
            "`store_connection` is for s3://, and storage or warehouse lies in abfss://.",
            where=project.spec_file,
            remedy="Take it out, and give Airflow's services the variables of Azure (docs/object-stores.md).",
        )


def _root(chosen: str | Place, reached: Callable[[str], ObjectStore]) -> Place:
    """Storage or warehouse as they were chosen; raises UsageError where it can be neither a folder nor a place on a store."""
    if isinstance(chosen, ObjectPath):
        return chosen
    if not is_url(str(chosen)):
        return _folder(chosen)
    root = place_of(str(chosen), store=reached(scheme_of_root(str(chosen))))
    refuse_escapes(root)
    return root


def _folder(chosen: str | Path) -> Path:
    """A folder that is there or can be made; raises UsageError where a file lies in its way."""
    folder = _resolved(chosen)
    # Path.exists() would raise below a folder that may not be looked into.
    nearest = next((path for path in (folder, *folder.parents) if os.path.exists(path)), None)  # noqa: PTH110
    if nearest is not None and not nearest.is_dir():
        raise UsageError(
            f"{str(chosen)!a} can't be a folder: {nearest} is a file.", remedy="Move it, or name another."
        )
    return folder


def _named(folder: str | Path) -> Path:
    """The folder as it was named: what lies beside a link is beside the pipeline, not what lies beside its target."""
    return Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow the link


def _resolved(chosen: str | Path) -> Path:
    try:
        return local_path(chosen).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL, links in a circle
        raise UsageError(
            f"{str(chosen)!a} can't be a folder: {error}.", remedy="Give the path of a folder."
        ) from None


def local_path(value: str | Path) -> Path:
    """A folder as an environment variable or a spec names it; raises UsageError where it is not on a file system."""
    text = str(value)
    try:
        url = urlparse(text)
    except ValueError as error:
        raise UsageError(
            f"{text!a} is not a local folder: {error}.",
            remedy="Give a path, or file:///absolute/path.",
        ) from None
    if url.scheme == "file":
        return Path(unquote(url.path))
    # With one slash it would be a folder beside the working directory, named like a scheme.
    if url.scheme and ("://" in text or url.scheme in S3_SPELLINGS):
        remedy = "Give a path, or s3://bucket/folder (abfss://container@account.dfs.core.windows.net/folder) for storage and warehouse."
        if url.scheme in S3_SPELLINGS:
            remedy = "Write s3://bucket/folder: S3 has this one spelling here."
        raise UsageError(f"{without_login(text)!r} is not a local folder.", remedy=remedy)
    return Path(text)
