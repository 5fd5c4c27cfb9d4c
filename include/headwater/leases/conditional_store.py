"""What a lease needs of an object store: conditional writes, which fail where another process has written meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import urlparse

from headwater.errors import LeaseUnreachable

# Answers of S3 when the condition of a write failed; the last one where two writes race.
_REFUSED = {"PreconditionFailed", "412", "ConditionalRequestConflict", "409"}
_ABSENT = {"NoSuchKey", "404"}


@dataclass(frozen=True)
class StoredText:
    """An object as it was read. ``tag``: names this very text; ``age``: since it was written, by the store's own clock."""

    text: str
    tag: str
    age: timedelta


class ConditionalStore(Protocol):
    """One object. All methods raise LeaseUnreachable where the store can't be reached, or denies access."""

    def read(self) -> StoredText | None:
        """The object, None where there is none."""

    def write(self, text: str, *, expected: str | None) -> str | None:
        """Write where the object has the tag ``expected`` (None: where there is none); its new tag, or None if refused."""


@dataclass
class S3Object:
    """An object in S3, or in a store that speaks like it and knows conditional writes.

    Region, keys and endpoint are found by AWS's default chain (``AWS_ENDPOINT_URL_S3`` for other stores).
    """

    bucket: str
    key: str
    _known_client: Any = None

    @classmethod
    def of(cls, url: str) -> S3Object:
        """The object of ``s3://bucket/key``."""
        parsed = urlparse(url)
        return cls(parsed.netloc, parsed.path.strip("/"))

    def read(self) -> StoredText | None:
        """As of ConditionalStore."""
        from botocore.exceptions import ClientError

        with _errors(self):
            try:
                answer = self._client().get_object(Bucket=self.bucket, Key=self.key)
            except ClientError as error:
                if _code(error) in _ABSENT:
                    return None
                raise
            text = answer["Body"].read().decode("utf-8", errors="replace")
        # Both times are the store's own, so the clock of this machine does not matter.
        now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
        return StoredText(text, answer["ETag"], now - answer["LastModified"])

    def write(self, text: str, *, expected: str | None) -> str | None:
        """As of ConditionalStore."""
        from botocore.exceptions import ClientError

        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        with _errors(self):
            try:
                answer = self._client().put_object(
                    Bucket=self.bucket, Key=self.key, Body=text.encode(), **condition
                )
            except ClientError as error:
                gone = expected is not None and _code(error) in _ABSENT
                if gone or _code(error) in _REFUSED:
                    return None
                raise
        return str(answer["ETag"])

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def _client(self) -> Any:
        if self._known_client is None:
            import boto3
            from botocore.config import Config

            # Short, since a renewal that hangs is late.
            config = Config(
                retries={"mode": "standard", "max_attempts": 2}, connect_timeout=3, read_timeout=5
            )
            self._known_client = boto3.session.Session().client("s3", config=config)
        return self._known_client


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def _errors(place: S3Object) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        reason = _code(error) if isinstance(error, ClientError) else type(error).__name__
        raise LeaseUnreachable(
            f"The lease of this pipeline could not be read or written: {reason}.",
            where=place,
            remedy="Check that the bucket is there, and region, keys and network; the keys need s3:GetObject and s3:PutObject. "
            "Without the lease nothing is written; then run the update again.",
        ) from None
