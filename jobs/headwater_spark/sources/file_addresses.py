"""Which addresses of files a pipeline may read: folders, and ``s3://`` in a session that was started for it.

Decision 0193.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from headwater.errors import UnsupportedSource
from headwater.event_log.redaction import public_address
from headwater.runtime.object_store import FILE_SYSTEM
from headwater.storage.globs import alternatives, plain_part
from headwater.storage.object_files import anything_at
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import is_s3, place_of

# Of Spark's file source; what names none is Parquet.
FILE_FORMATS = frozenset({"", "json", "csv", "parquet", "text", "orc", "avro", "xml", "binaryfile"})
_OTHER_SPELLINGS = ("s3a", "s3n")
_OTHER_STORES = ("gs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "cos", "cosn", "obs")


def check_address(session: SparkSession, path: str) -> bool:
    """Refuse an address of a store that can't be read, before Spark looks for it.

    Returns:
        Whether something may be there: False only for a prefix of S3 that nothing lies at or below; of a glob, below all of its folders.

    Raises:
        UnsupportedSource: of another store than S3, spelled as Spark's client spells it, with a login in it, or in a session that
            was not started for S3.
        StoreRefused, StoreUnreachable: the bucket is not there, may not be listed, or does not answer.
    """
    scheme, separator, _ = path.partition("://")
    if not separator:
        return True
    shown = public_address(path)
    if scheme.lower() in _OTHER_SPELLINGS or (scheme.lower() == "s3" and not is_s3(path)):
        raise UnsupportedSource(
            f"{shown} is a spelling of Spark's client alone.",
            remedy="Write s3://bucket/folder: files are known by their addresses, and two spellings would be two files.",
        )
    if scheme.lower() in _OTHER_STORES:
        raise UnsupportedSource(
            f"{shown} can't be read: of object stores, only s3:// can.",
            remedy="Copy the files into a folder or into s3://, or mount the store.",
        )
    return not is_s3(path) or _check_s3(session, path, shown)


def check_cloud_address(session: SparkSession, path: str) -> bool:
    """As ``check_address`` for ``cloudFiles``, which lists files itself: there is nothing else that it could read."""
    there = check_address(session, path)
    if not is_s3(path) and urlsplit(path).scheme not in ("", "file"):
        raise UnsupportedSource(
            f"cloudFiles can't read {public_address(path)}: it is neither on a file system of this machine nor in s3://.",
            remedy="Mount the store, or copy the files.",
        )
    return there


def addresses(path: object) -> Iterable[str]:
    """The addresses in what a reader was given: one, several, or none."""
    several = path if isinstance(path, list | tuple) else [path]
    return [one for one in several if isinstance(one, str)]


def _check_s3(session: SparkSession, path: str, shown: str) -> bool:
    if "@" in urlsplit(path).netloc:
        raise UnsupportedSource(
            f"{shown} has a login in it.",
            remedy="Write s3://bucket/folder: credentials are found in the environment, by the store's default chain.",
        )
    if not session.conf.get(FILE_SYSTEM, ""):
        raise UnsupportedSource(
            f"{shown} can't be read: this session was started without the jars for S3.",
            remedy="Write `object_store: {sources: true}` into pipeline.yml. They are fetched by themselves where an address is written out in a "
            "source, in `configuration` or in a parameter; this one is put together when the source runs.",
        )
    places = [place_of(plain_part(one)) for one in alternatives(path)]
    there = [anything_at(place) for place in places if isinstance(place, ObjectPath)]
    return any(there)
