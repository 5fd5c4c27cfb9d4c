"""Settings of a Spark session whose storage, warehouse or sources lie in an object store.

Decision 0186, decision 0193.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from headwater.runtime.conditions import UnsafeStoreSetting, UnsupportedStore
from headwater.runtime.own_classes import CHECKPOINT_MANAGER, LOG_STORE
from headwater.storage.access import ObjectStore

_HADOOP = "spark.hadoop."
FILE_SYSTEM = f"{_HADOOP}fs.s3.impl"
_CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
# Each makes a plain create of S3A an overwrite that looks at nothing, or takes conditional puts away.
_FLAGS = re.compile(r"fs\.s3a(?:\.bucket\.[^.].*?)?\.performance\.flags")
_QUICK_CREATE = re.compile(r"fs\.s3a(?:\.bucket\.[^.].*?)?\.create\.performance")
_CONDITIONAL = re.compile(r"fs\.s3a(?:\.bucket\.[^.].*?)?\.create\.conditional\.enabled")
# The class of every scheme, which Delta takes before those of one scheme.
_OF_ALL_SCHEMES = "spark.delta.logStore.class"


def store_settings(store: ObjectStore) -> dict[str, str]:
    """What a session needs to read and write below a store, without credentials: those are found by S3A's own chain.

    Raises:
        UnsupportedStore: where Headwater has no exclusive writers for the scheme.
    """
    if store.scheme != "s3":
        raise unsupported(store.scheme)
    settings = _exclusive()
    if store.later is not None:  # its login is in the environment of the driver, which sets the rest
        return settings
    settings[f"{_HADOOP}fs.s3a.path.style.access"] = str(store.path_style).lower()
    if store.endpoint is not None:
        settings[f"{_HADOOP}fs.s3a.endpoint"] = store.endpoint
        settings[f"{_HADOOP}fs.s3a.connection.ssl.enabled"] = str(store.encrypted).lower()
    region = store.region or ("us-east-1" if store.endpoint is not None else None)
    if region is not None:
        settings[f"{_HADOOP}fs.s3a.endpoint.region"] = region
    return settings


def session_conf(
    roots: Iterable[object], store: ObjectStore, user_conf: Mapping[str, str], *, sources: bool = False
) -> dict[str, str]:
    """The settings of a pipeline's session: the user's, over those of the store where a root, or what is read, lies in one.

    Args:
        roots: storage and warehouse.
        store: how ``s3://`` is reached.
        user_conf: the ``spark`` section of ``pipeline.yml``.
        sources: sources lie there, whatever the roots do.

    Raises:
        UnsafeStoreSetting: the user's would let two writers overwrite each other.
        UnsupportedStore: a root lies in a store without exclusive writers.
    """
    schemes = {scheme_of(root) for root in roots} - {""}
    for scheme in sorted(schemes - {"s3"}):
        raise unsupported(scheme)
    ours = _exclusive()
    others = [name for name, value in user_conf.items() if value != ours.get(name, value)]
    if not schemes and (not sources or others):
        return dict(user_conf)  # who names another client of S3 has brought its jars, too
    refuse_unsafe({name.removeprefix(_HADOOP): value for name, value in user_conf.items()}, "pipeline.yml")
    for name, value in user_conf.items():
        if name == _OF_ALL_SCHEMES or name in others:
            raise _unsafe(name, value, "pipeline.yml", "takes the place of the writers that never overwrite")
    settings = store_settings(store)
    if not schemes:  # checkpoints lie in folders, and Spark has its own way of writing those
        del settings[_CHECKPOINTS]
    return {**settings, **user_conf}


def scheme_of(root: object) -> str:
    """The scheme of a place, empty for a folder."""
    before, separator, _ = str(root).partition("://")
    return before.lower() if separator and before.lower() != "file" else ""


def needs_s3(conf: Mapping[str, str]) -> bool:
    """Whether a session with these settings reads ``s3://``, and needs the jars for it."""
    return FILE_SYSTEM in conf


def refuse_unsafe(hadoop_conf: Mapping[str, str], where: str) -> None:
    """Raise UnsafeStoreSetting where Hadoop's settings would let two writers overwrite each other.

    Args:
        hadoop_conf: by the names that Hadoop knows.
        where: where they come from, for the message.
    """
    for name, value in hadoop_conf.items():
        text = value.strip().lower()
        if _FLAGS.fullmatch(name) and {"create", "*"} & set(re.split(r"[\s,]+", text)):
            raise _unsafe(name, value, where, "makes plain creates of files overwrites that look at nothing")
        if _QUICK_CREATE.fullmatch(name) and text == "true":
            raise _unsafe(name, value, where, "makes plain creates of files overwrites that look at nothing")
        if _CONDITIONAL.fullmatch(name) and text != "true":
            raise _unsafe(name, value, where, "turns conditional puts off")


def unsupported(scheme: str) -> UnsupportedStore:
    """The error of a root in a store that Headwater can't write to."""
    return UnsupportedStore(
        f"Tables and checkpoints can't lie in {scheme}://.",
        remedy="Put storage and warehouse into a folder or into s3://. Without a writer that never overwrites, two updates could "
        "lose each other's commits.",
    )


def _exclusive() -> dict[str, str]:
    return {
        FILE_SYSTEM: "org.apache.hadoop.fs.s3a.S3AFileSystem",
        f"{_HADOOP}fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
        "spark.delta.logStore.s3.impl": LOG_STORE,
        "spark.delta.logStore.s3a.impl": LOG_STORE,
        _CHECKPOINTS: CHECKPOINT_MANAGER,
    }


def _unsafe(name: str, value: str, where: str, why: str) -> UnsafeStoreSetting:
    return UnsafeStoreSetting(
        f"{name}={value} {why}: two updates could lose each other's commits without an error.",
        where=where,
        remedy=f"Take {name} away.",
    )
