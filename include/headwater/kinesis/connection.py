"""A client of Kinesis, and its errors as Headwater's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headwater.errors import FlowFailed, SourceAccessDenied, SourceNotFound, SourceUnreachable

_DENIED = {
    "AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException",
    "InvalidClientTokenId", "SignatureDoesNotMatch", "MissingAuthenticationTokenException", "IncompleteSignature",
    "KMSAccessDeniedException", "AuthFailure",
}  # fmt: skip
_PASSING = {
    "ProvisionedThroughputExceededException", "LimitExceededException", "ThrottlingException", "KMSThrottlingException",
    "InternalFailure", "InternalFailureException", "ServiceUnavailable", "ServiceUnavailableException",
}  # fmt: skip
# Part of an error that a worker raises: the driver recognises it by these words.
NOT_AGGREGATED = (
    "Turn aggregation off at the producer (AggregationEnabled = false): it can't be undone here yet."
)


@dataclass(frozen=True)
class Credentials:
    """Keys that were given with a read; never printed."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Connection:
    """How to reach the streams. ``region`` and ``endpoint`` (a URL): None for what the environment says.

    ``credentials``: None for the default chain of AWS (environment, profile, role of the machine).
    """

    region: str | None = None
    endpoint: str | None = None
    credentials: Credentials | None = None

    def client(self, *, attempts: int = 6) -> Any:
        """A new client; raises SourceAccessDenied where the region is not known. ``attempts``: tries of one request."""
        import boto3
        from botocore.config import Config

        keys = self.credentials
        # The client waits and tries again by itself where a shard's limits of requests are reached.
        config = Config(
            retries={"mode": "standard", "max_attempts": attempts}, connect_timeout=5, read_timeout=30
        )
        with kinesis_errors():
            return boto3.session.Session().client(
                "kinesis",
                region_name=self.region,
                endpoint_url=self.endpoint,
                aws_access_key_id=keys.access_key if keys else None,
                aws_secret_access_key=keys.secret_key if keys else None,
                aws_session_token=keys.session_token if keys else None,
                config=config,
            )


@contextmanager
def kinesis_errors(stream: str = "") -> Iterator[None]:
    """Turn what boto3 raises into errors that are terminal or transient; ``stream`` is named in them.

    Raises:
        SourceNotFound, SourceAccessDenied, FlowFailed: a retry does not help.
        SourceUnreachable: a retry may help.
    """
    from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code == "ResourceNotFoundException":
            raise SourceNotFound(
                f"There is no Kinesis stream {stream!r}, or a shard of it is gone.",
                remedy="Check streamName, region and endpoint, and that the account is the one that owns the stream.",
            ) from None
        if code in _DENIED:
            raise SourceAccessDenied(
                f"Kinesis refused to let the stream {stream!r} be read: {code}.",
                remedy="The keys need kinesis:DescribeStreamSummary, ListShards, GetShardIterator and GetRecords.",
            ) from None
        if code in _PASSING:
            raise SourceUnreachable(
                f"Kinesis could not answer for the stream {stream!r}: {code}.",
                remedy="Airflow retries it; by hand, run the update again.",
            ) from None
        raise FlowFailed(
            f"Kinesis refused a request for the stream {stream!r}: {code}.",
            remedy="Correct the options of the read, or see what AWS says of that code; nothing of the batch was written.",
        ) from None
    except (ConnectionError, HTTPClientError) as error:
        raise SourceUnreachable(
            f"Kinesis could not be reached for the stream {stream!r}: {type(error).__name__}.",
            remedy="Check region, endpoint and network; the next update goes on from where this one stood.",
        ) from None
    except BotoCoreError as error:
        raise SourceAccessDenied(
            f"The client of Kinesis{f' for the stream {stream!r}' if stream else ''} can't be made: {type(error).__name__}.",
            remedy="Set the options region, awsAccessKey and awsSecretKey, or let AWS's default chain find them: "
            "AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE).",
        ) from None
