"""Settings of a Spark session whose storage, warehouse or sources lie in an object store.

Decision 0186, decision 0193, decision 0212.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from headwater.runtime.conditions import UnsafeStoreSetting, UnsupportedStore
from headwater.runtime.own_classes import CHECKPOINT_MANAGER, LOG_STORE, PLAIN_AZURE
from headwater.storage import azure
from headwater.storage.access import ObjectStore

# In these, storage and warehouse can lie.
_SUPPORTED = ("s3", azure.SCHEME)
_HADOOP = "spark.hadoop."
FILE_SYSTEM = f"{_HADOOP}fs.s3.impl"
AZURE_FILE_SYSTEM = f"{_HADOOP}fs.abfss.impl"
_AZURE = "org.apache.hadoop.fs.azurebfs"
_CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
# Each makes a plain create of S3A an overwrite that looks at nothing, or takes conditional puts away.
_FLAGS = re.compile(r"fs\.s3a(?:\.bucket\.[^.].*?)?\.performance\.flags")
_QUICK_CREATE = re.compile(r"fs\.s3a(?:\.bucket\.[^.].*?)?\.create\.performance")
_CONDITIONAL = re.compile(r"fs\.s3a(?:\.bucket\.[^.].*?)?\.create\.conditional\.enabled")
# The class of every scheme, which Delta takes before those of one scheme.
_OF_ALL_SCHEMES = "spark.delta.logStore.class"


def store_settings(store: ObjectStore) -> dict[str, str]:
    """What a session needs to read and write below a store, without credentials: those are found by the driver.

    Raises:
        UnsupportedStore: where Headwater has no exclusive writers for the scheme.
    """
    settings = _exclusive(store)
    if store.scheme == azure.SCHEME:
        return settings | _azure_server(store)
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


def _azure_server(store: ObjectStore) -> dict[str, str]:
    """Azure's own account has a hierarchy, as the client expects; a server of one's own is an emulator, which has none."""
    # The other channel needs a library for each platform.
    channel = {f"{_HADOOP}fs.azure.ssl.channel.mode": "Default_JSSE"}
    if store.endpoint is None:
        return channel
    settings = {
        "abfs.endpoint": store.endpoint.partition("://")[2],
        "always.use.https": str(store.encrypted).lower(),
        "account.hns.enabled": "false",
        "fns.account.service.type": "BLOB",
    }
    if not store.encrypted:
        settings["networking.library"] = "JDK_HTTP_URL_CONNECTION"  # the other one starts with TLS only
    return channel | {f"{_HADOOP}fs.azure.{name}": value for name, value in settings.items()}


def session_conf(
    roots: Iterable[object], store: ObjectStore, user_conf: Mapping[str, str], *, sources: bool = False
) -> dict[str, str]:
    """The settings of a pipeline's session: the user's, over those of the store where a root, or what is read, lies in one.

    Args:
        roots: storage and warehouse.
        store: how ``s3://`` is reached, or ``abfss://`` where roots lie there.
        user_conf: the ``spark`` section of ``pipeline.yml``.
        sources: sources lie there, whatever the roots do.

    Raises:
        UnsafeStoreSetting: the user's would let two writers overwrite each other.
        UnsupportedStore: a root lies in a store without exclusive writers, or what is read is in another kind of store.
    """
    schemes = {scheme_of(root) for root in roots} - {""}
    for scheme in sorted(schemes - {store.scheme}):
        raise unsupported(scheme)
    if sources and store.scheme != "s3":
        raise UnsupportedStore(
            "Sources can't lie in s3:// where storage and warehouse lie in abfss://.",
            remedy="Copy the files into a folder, or keep storage and warehouse in s3://.",
        )
    ours = _exclusive(store)
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


def needs_azure(conf: Mapping[str, str]) -> bool:
    """Whether a session with these settings has its roots in ``abfss://``, and needs the jars for it."""
    return AZURE_FILE_SYSTEM in conf


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


def scheme_of_root(address: str) -> str:
    """The scheme of the address of a root; raises UnsupportedStore where no root can lie there."""
    scheme = address.partition("://")[0]
    if scheme not in _SUPPORTED:
        raise unsupported(scheme)
    return scheme


def unsupported(scheme: str) -> UnsupportedStore:
    """The error of a root in a store that Headwater can't write to."""
    return UnsupportedStore(
        f"Tables and checkpoints can't lie in {scheme}://.",
        remedy="Put storage and warehouse into a folder, or both into one of s3:// and abfss://. Without a writer that never "
        "overwrites, two updates could lose each other's commits.",
    )


def _exclusive(store: ObjectStore) -> dict[str, str]:
    """The classes that write to a store; raises UnsupportedStore where there are none."""
    if store.scheme == azure.SCHEME:
        # A rename there fails where the new name is taken, and the store decides that: Delta's commits and Spark's checkpoints go by it.
        plain = not store.encrypted
        return {
            AZURE_FILE_SYSTEM: f"{_AZURE}.{'' if plain else 'Secure'}AzureBlobFileSystem",
            f"{_HADOOP}fs.AbstractFileSystem.abfss.impl": PLAIN_AZURE if plain else f"{_AZURE}.Abfss",
            "spark.delta.logStore.abfss.impl": "io.delta.storage.AzureLogStore",
            _CHECKPOINTS: CHECKPOINT_MANAGER,
        }
    if store.scheme != "s3":
        raise unsupported(store.scheme)
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
