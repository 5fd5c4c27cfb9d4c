"""The options of ``format("kinesis")``: a closed list, each honoured, noted, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwater.errors import InvalidSourceOption
from headwater.kinesis.connection import Connection, Credentials
from headwater.kinesis.shards import LATEST, MAX_RECORDS, TRIM_HORIZON
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.sources.kafka_options import epoch_millis

_HONOURED = (
    "streamName", "region", "endpoint", "endpointUrl", "initialPosition", "awsAccessKey", "awsSecretKey",
    "awsSessionToken", "maxRecordsPerFetch", "maxRecordsPerTrigger", "consumerMode",
)  # fmt: skip
# How the closed runtime prefetches. Here the tasks of a batch read its records.
_NOTED = (
    "maxFetchRate", "minFetchPeriod", "maxFetchDuration", "fetchBufferSize", "shardsPerTask", "shardFetchInterval",
    "coalesceThresholdBlockSize", "coalesceBinSize",
)  # fmt: skip
_ROLE = "Let a profile of AWS's configuration take the role, and name it in AWS_PROFILE: the default chain finds it."
_REFUSED = {
    "rolearn": _ROLE,
    "roleexternalid": _ROLE,
    "rolesessionname": _ROLE,
    "stsendpoint": _ROLE,
    "servicecredential": "It is for the closed platform alone: use awsAccessKey and awsSecretKey, or AWS's default chain.",
    "streamarn": "Name the streams in streamName; the account is that of the keys.",
}
# Reads a time by a pattern of Java's: (text, pattern) -> milliseconds since 1970.
ParseTime = Callable[[str, str], int]


@dataclass(frozen=True)
class KinesisOptions:
    """The options of a read.

    ``since``: where a first run begins: milliseconds since 1970, ``"trim_horizon"``, or None for what arrives from then
    on. ``per_request``, ``per_batch``: records. ``notes``: options that have no effect.
    """

    streams: tuple[str, ...]
    connection: Connection
    since: int | str | None
    per_request: int = MAX_RECORDS
    per_batch: int | None = None
    notes: tuple[str, ...] = field(default=())


def parse_kinesis_options(
    read_options: Mapping[str, str], parse_time: ParseTime, time_zone: str
) -> KinesisOptions:
    """Check the options of a read (``read_options``: keys in lower case).

    Raises:
        InvalidSourceOption: an unknown option (with the nearest name), a bad value, or one that can't be honoured.
    """
    notes = _known_options(read_options)
    streams = tuple(part.strip() for part in read_options.get("streamname", "").split(",") if part.strip())
    if not streams:
        raise InvalidSourceOption(
            "The read does not say which Kinesis stream.", remedy='Set .option("streamName", "orders").'
        )
    if read_options.get("consumermode", "polling").lower() != "polling":
        raise InvalidSourceOption(
            f"consumerMode = {read_options['consumermode']!r} can't be: enhanced fan-out is not there.",
            remedy="Leave it out: shards are polled.",
        )
    endpoint = read_options.get("endpoint") or read_options.get("endpointurl")
    if endpoint is not None and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    return KinesisOptions(
        streams,
        Connection(read_options.get("region"), endpoint, _credentials(read_options)),
        _since(read_options.get("initialposition", LATEST), parse_time, time_zone),
        _number("maxRecordsPerFetch", read_options, MAX_RECORDS) or MAX_RECORDS,
        _number("maxRecordsPerTrigger", read_options, None),
        notes,
    )


def _known_options(read_options: Mapping[str, str]) -> tuple[str, ...]:
    names = {name.lower(): name for name in (*_HONOURED, *_NOTED)}
    notes = []
    for key in read_options:
        if key in _REFUSED:
            raise InvalidSourceOption(
                f"The Kinesis option {key} can't be honoured here.", remedy=_REFUSED[key]
            )
        if key not in names:
            near = nearest(key, names)
            raise InvalidSourceOption(
                f"Kinesis has no option {key!r}.",
                remedy=did_you_mean(near and names[near], f"Known are: {', '.join(_HONOURED)}."),
            )
        if names[key] in _NOTED:
            notes.append(f"the Kinesis option {names[key]} has no effect here: nothing is fetched ahead")
    return tuple(notes)


def _credentials(read_options: Mapping[str, str]) -> Credentials | None:
    access, secret = read_options.get("awsaccesskey"), read_options.get("awssecretkey")
    token = read_options.get("awssessiontoken")
    if not access and not secret and not token:
        return None
    if not access or not secret:
        raise InvalidSourceOption(
            "Of awsAccessKey and awsSecretKey one is missing.",
            remedy="Give both, or neither: then AWS's default chain finds them.",
        )
    return Credentials(access, secret, token)


def _since(text: str, parse_time: ParseTime, time_zone: str) -> int | str | None:
    lowered = text.strip().lower()
    if lowered == LATEST:
        return None
    if lowered in (TRIM_HORIZON, "earliest"):
        return TRIM_HORIZON
    try:
        position = {str(key).lower(): value for key, value in json.loads(text).items()}
        at = position["at_timestamp"]
    except (json.JSONDecodeError, AttributeError, KeyError):
        raise InvalidSourceOption(
            f"initialPosition = {text!r} can't be.",
            remedy='It is latest, trim_horizon (or earliest), or {"at_timestamp": "2025-01-31 10:00:00"}, which may '
            'have a "format" of Java\'s: {"at_timestamp": "01/31/2025 10:00:00 PDT", "format": "MM/dd/yyyy HH:mm:ss ZZZ"}.',
        ) from None
    if position.get("format"):
        return parse_time(str(at), str(position["format"]))
    return epoch_millis(at, "initialPosition", time_zone)


def _number(name: str, read_options: Mapping[str, str], most: int | None) -> int | None:
    text = read_options.get(name.lower())
    if text is None:
        return None
    if not text.isdigit() or int(text) < 1 or (most is not None and int(text) > most):
        limit = f"from 1 to {most:,}" if most else "from 1"
        raise InvalidSourceOption(f"{name} = {text!r} can't be.", remedy=f"It is a whole number {limit}.")
    return int(text)
