"""The jars that Spark and the broker run with: fetched once, checked, then taken from the cache.

``python -m headwater.runtime.jars`` fetches them; with ``--lock`` it resolves the coordinates below again
and writes the lock file.
"""

from __future__ import annotations

import argparse
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.runtime.cache import cache_root
from headwater.runtime.ivy import Coordinate, retrieve
from headwater.runtime.jar_lock import PinnedJar, fingerprint, pin, pinned_jars, verify, write_lock
from headwater.runtime.jar_stamps import are_verified

# The token provider's last release is 4.0.0: the one of 4.2.0 was never published, and without
# delegation tokens nothing of it is called.
_SPARK = (
    *(
        Coordinate("io.delta", name, "4.4.0")
        for name in (
            "delta-spark_4.2_2.13",
            "delta-storage",
            "delta-kernel-api",
            "delta-kernel-defaults",
            "delta-kernel-unitycatalog",
        )
    ),
    Coordinate("io.unitycatalog", "unitycatalog-client", "0.6.0"),
    Coordinate("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    Coordinate("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Coordinate("org.apache.kafka", "kafka-clients", "3.9.2"),
    Coordinate("org.apache.commons", "commons-pool2", "2.13.1"),
    Coordinate("org.apache.spark", "spark-avro_2.13", "4.1.1"),
    Coordinate("org.postgresql", "postgresql", "42.7.8"),
)
# The last is what makes the broker write a log: its own jars bring no binding.
_KAFKA_BROKER = (
    Coordinate("org.apache.kafka", "kafka_2.13", "4.2.0", transitive=True),
    Coordinate("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
)
# Hadoop's S3A and the parts of Amazon's SDK that it loads, instead of the SDK's bundle, which has fifty times their size.
# What Spark brings itself (netty, httpclient, commons) is left out.
_SDK = "software.amazon.awssdk"
_S3 = (
    Coordinate("org.apache.hadoop", "hadoop-aws", "3.5.0"),
    Coordinate("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    Coordinate("org.reactivestreams", "reactive-streams", "1.0.4"),
    Coordinate("software.amazon.eventstream", "eventstream", "1.0.1"),
    *(
        Coordinate(_SDK, name, "2.35.4")
        for name in (
            *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol"),
            *("aws-xml-protocol", "checksums", "checksums-spi", "crt-core", "endpoints-spi"),
            *("http-auth", "http-auth-aws", "http-auth-aws-eventstream", "http-auth-spi", "http-client-spi"),
            *("identity-spi", "json-utils", "metrics-spi", "netty-nio-client", "profiles", "protocol-core"),
            *("regions", "retries", "retries-spi", "s3", "s3-transfer-manager", "sdk-core", "sts"),
            *("third-party-jackson-core", "utils", "utils-lite"),
        )
    ),
)
# Hadoop's client of Azure, and what of its libraries Spark does not bring.
_ABFSS = (
    Coordinate("org.apache.hadoop", "hadoop-azure", "3.5.0"),
    Coordinate("org.hdrhistogram", "HdrHistogram", "2.1.12"),
)
GROUPS = {"spark": _SPARK, "s3": _S3, "abfss": _ABFSS, "kafka_broker": _KAFKA_BROKER}


def ensure_jars(group: str) -> list[Path]:
    """Return the jars of a group, fetched on the first call; safe to call from several processes at once.

    Args:
        group: ``spark`` (Delta, the sources Kafka and Avro, the driver of Postgres), ``s3`` (Hadoop's client of S3),
            ``abfss`` (that of Azure) or ``kafka_broker``.

    Raises:
        JarsUnavailable: if they are not in the cache and could not be fetched.
        JarChecksumMismatch: if a fetched file is not the pinned one.

    """
    jars = pinned_jars(group)
    folder = cache_root() / "jars" / f"{group}-{fingerprint(jars)}"
    if not are_verified(folder, jars):
        with _only_one_process(folder):
            if not are_verified(folder, jars):
                _fetch(jars, folder)
                are_verified(folder, jars)  # recorded, so that the next start compares nothing
    return [folder / jar.file_name for jar in jars]


@contextmanager
def _only_one_process(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(jars: tuple[PinnedJar, ...], folder: Path) -> None:
    """Fetch beside the final place, check, and only then rename."""
    ivy_cache = folder.with_suffix(".ivy")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as temporary:
        fetched = Path(temporary) / "fetched"
        retrieve([Coordinate(jar.organisation, jar.name, jar.revision) for jar in jars], fetched, ivy_cache)
        complete = Path(temporary) / "complete"
        complete.mkdir()
        for jar in jars:
            source = fetched / jar.organisation / jar.name / jar.revision / jar.file_name
            if source.is_file():
                source.rename(complete / jar.file_name)
        try:
            verify(complete, jars)
        finally:
            # After a mismatch the next try must download again; after success it is a second copy.
            shutil.rmtree(ivy_cache, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(folder)
        complete.rename(folder)


def _resolve(group: str) -> list[PinnedJar]:
    with tempfile.TemporaryDirectory() as temporary:
        fetched = Path(temporary) / "fetched"
        retrieve(GROUPS[group], fetched, Path(temporary) / "ivy")
        pinned = []
        for jar in sorted(fetched.glob("*/*/*/*.jar"), key=lambda file: file.name):
            organisation, name, revision = jar.relative_to(fetched).parts[:3]
            pinned.append(pin(organisation, name, revision, jar))
        return pinned


def main() -> None:
    """Fetch all groups, or renew the lock file."""
    options = argparse.ArgumentParser(prog="python -m headwater.runtime.jars", description=__doc__)
    options.add_argument("--lock", action="store_true", help="resolve again and write the lock file")
    if options.parse_args().lock:
        write_lock({group: _resolve(group) for group in GROUPS})
    for group in GROUPS:
        print(f"{group}: {len(ensure_jars(group))} jars in {ensure_jars(group)[0].parent}")


if __name__ == "__main__":
    main()
