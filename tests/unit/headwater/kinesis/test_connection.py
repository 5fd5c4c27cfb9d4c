"""What boto3 raises becomes an error that says whether another try helps, and shows no key."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from headwater.errors import FlowFailed, HeadwaterError, SourceAccessDenied, SourceNotFound, SourceUnreachable
from headwater.kinesis.connection import Connection, Credentials, kinesis_errors


def answer(code: str) -> ClientError:
    """What the service answers with."""
    return ClientError({"Error": {"Code": code, "Message": "secret AKIA"}}, "GetRecords")


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (answer("ResourceNotFoundException"), SourceNotFound),
        (answer("AccessDeniedException"), SourceAccessDenied),
        (answer("ProvisionedThroughputExceededException"), SourceUnreachable),
        (answer("InvalidArgumentException"), FlowFailed),
        (EndpointConnectionError(endpoint_url="https://h"), SourceUnreachable),
        (ReadTimeoutError(endpoint_url="https://h"), SourceUnreachable),
        (NoCredentialsError(), SourceAccessDenied),
    ],
)
def test_errors_of_the_client(raised: Exception, error: type[HeadwaterError]):
    """Each has its kind, names the stream, and repeats nothing that the service said."""
    with pytest.raises(HeadwaterError) as caught, kinesis_errors("orders"):
        raise raised
    assert type(caught.value) is error
    assert "orders" in caught.value.what
    assert "AKIA" not in str(caught.value)
    assert caught.value.remedy


def test_a_client_without_a_region(monkeypatch: pytest.MonkeyPatch):
    """Where nothing says which region, the error says how to."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(SourceAccessDenied, match="NoRegion") as caught:
        Connection().client()
    assert "AWS_REGION" in caught.value.remedy


def test_keys_are_not_shown():
    """A connection can be printed."""
    assert "secret" not in repr(Connection(credentials=Credentials("AK", "secret", "token")))
