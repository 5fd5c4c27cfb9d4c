"""What an object store may refuse, and what may pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headwater.errors import HeadwaterError, UpdateFailed, UsageError
from headwater.storage.retries import waited_in_vain

# obstore has classes of its own for these where one object is asked for, but not for listings, copies and removals.
_DENIED = re.compile(r"status code:? 40[13]\b")
# What the client itself does wrong, as far as an answer tells: it gets the same answer each time.
_REFUSED = re.compile(r"status code:? 4(?!08|09|12|25|29)\d\d\b")
# Of these 400 says only that the body did not arrive whole, or in time.
_NOT_ARRIVED = ("RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_EXPIRED = ("ExpiredToken", "InvalidToken", "TokenRefreshRequired")
# What every client of obstore's kind begins with, the one in delta-rs too.
_OF_A_STORE = re.compile(
    r"Generic (S3|MicrosoftAzure|GCS) error|Error performing (GET|PUT|HEAD|POST|DELETE|LIST|list)\b"
)
_GONE = re.compile(r"status code:? 404\b|NoSuchKey|BlobNotFound")
_SIGNS = re.compile(r"(\x1b\[[\d;]*m|\u21b3|\s)+")
# A signature holds for some minutes.
_WRONG_TIME = ("RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture")


class StoreUnreachable(UpdateFailed):
    """An object store did not answer, or asked for a pause, until all retries were used up."""

    condition = "STORE_UNREACHABLE"
    transient = True


class StoreRefused(UsageError):
    """An object store answered, and can't serve: no such bucket, no right, no conditional writes."""

    condition = "STORE_REFUSED"


# What is wrong with a store, whatever is read or written: it serves nobody like this, or nobody now.
STORE_ERRORS = (StoreRefused, StoreUnreachable)


class NotOnAStore(UsageError):
    """What is asked for works in local folders only."""

    condition = "NOT_ON_A_STORE"


def not_on_a_store(what: str, place: object) -> NotOnAStore:
    """The error for ``what`` (a sentence's subject), which needs a local folder."""
    return NotOnAStore(
        f"{what} works in local folders only, not on an object store yet.",
        where=place,
        remedy="Nothing was changed. Keep storage and warehouse of this pipeline in folders if you need it.",
    )


@contextmanager
def store_errors(place: object, *, conditional: bool = False) -> Iterator[None]:
    """Turn what obstore raises inside the block into errors of ours; a key that is not there stays a FileNotFoundError.

    ``conditional``: a condition that does not hold stays what obstore raises; where none was sent, a conflict is one that passes.

    Raises:
        StoreRefused: the bucket is not there, the credentials do not do, or the store will never serve the request.
        StoreUnreachable: no answer, or none but errors of the server.
    """
    from obstore import exceptions as o

    try:
        yield
    except FileNotFoundError as error:
        if any(code in str(error) for code in _NO_BUCKET):
            raise _refused("The bucket is not there.", place) from None
        raise
    except (o.PermissionDeniedError, o.UnauthenticatedError, PermissionError) as error:
        raise _denied(error, place) from None
    except o.NotSupportedError:
        raise
    except (o.PreconditionError, o.AlreadyExistsError, FileExistsError) as error:
        if conditional and not any(code in str(error) for code in _NO_BUCKET):
            raise
        raise _answer(error, place) from None
    except o.BaseError as error:
        raise _answer(error, place) from None


@contextmanager
def store_errors_of_delta(place: object) -> Iterator[None]:
    """As ``store_errors``, of what delta-rs raises inside the block: it tells a store that is away from other failures by its text alone.

    Raises:
        StoreRefused, StoreUnreachable: as there. Whatever else delta-rs raises passes as it is.
    """
    try:
        yield
    except HeadwaterError:
        raise
    except Exception as error:
        # It writes the causes below each other, with signs and colours between them.
        text = _SIGNS.sub(" ", str(error))
        # A file that is gone is the table's matter.
        gone = _GONE.search(text) and not any(code in text for code in _NO_BUCKET)
        if gone or not _OF_A_STORE.search(text):
            raise
        raise _answer(OSError(text), place) from None


def refuse_what_is_no_store(meta: Mapping[str, Any], place: object) -> None:
    """Refuse an answer without a tag: every store gives one with each object, and a web page or a proxy that answers in its place does not.

    Args:
        meta: what obstore says of an object.
        place: where it lies.

    Raises:
        StoreRefused: it has no tag.
    """
    if meta["e_tag"] is None:
        raise StoreRefused(
            "What answers here is no object store: it gives something for this object, and no tag (`ETag`) with it.",
            where=place,
            remedy="Check `object_store` (endpoint) in pipeline.yml and AWS_ENDPOINT_URL: another service, a login page or a proxy may "
            "have that address. Nothing was written.",
        )


def _answer(error: BaseException, place: object) -> HeadwaterError:
    from obstore import exceptions as o

    text = str(error)
    if isinstance(error, o.InvalidPathError):
        return StoreRefused(
            f"An object has a name that no path can have: {_reason(error)}.",
            where=place,
            remedy="Rename or remove it: empty names between slashes, `.` and `..` lead nowhere for Spark either.",
        )
    if any(code in text for code in _NO_BUCKET):
        return _refused("The bucket is not there.", place)
    # The address is where obstore looks last: nothing else has any. Of a key and its secret, only one may be there.
    if "169.254.169.254" in text or "Missing SecretAccessKey" in text or "Missing AccessKeyId" in text:
        return _refused("No credentials were found.", place)
    if any(
        word in text
        for word in ("incorrectly configured region", "PermanentRedirect", "AuthorizationHeaderMalformed")
    ):
        return _refused(f"The bucket is in another region: {_reason(error)}.", place)
    if _DENIED.search(text) or _reason(error) in (*_EXPIRED, *_WRONG_TIME):
        return _denied(error, place)
    return _refused_or_away(error, place)


def _refused_or_away(error: BaseException, place: object) -> HeadwaterError:
    """The error of an answer by which nothing is known but whether it is for good."""
    text = str(error)
    if _REFUSED.search(text) and _reason(error) not in _NOT_ARRIVED:
        return StoreRefused(
            f"The store refuses this request: {_reason(error)}.",
            where=place,
            remedy="Trying again gives the same answer. Check the address (an object's name has 1024 bytes at most), `object_store` "
            "(endpoint, path_style) in pipeline.yml, and that the credentials have not expired.",
        )
    waited_in_vain(text)
    return StoreUnreachable(
        f"The object store does not answer as it should: {_reason(error)}.",
        where=place,
        remedy="Nothing is lost. Check the network and `object_store` (endpoint, region), and that credentials can be found; "
        "then run it again.",
    )


def _denied(error: BaseException, place: object) -> StoreRefused:
    """The error of who may not do what was asked for, or whose request has another time than the store's clock allows."""
    reason = _reason(error)
    if reason not in _WRONG_TIME:
        return _refused(f"The store denies access: {reason}.", place)
    return StoreRefused(
        f"The clock of this machine is too far from the store's: {reason}.",
        where=place,
        remedy="Nothing was written. Set the clock of this machine (`timedatectl` shows whether it is kept by NTP), then run it again.",
    )


def _refused(what: str, place: object) -> StoreRefused:
    return StoreRefused(
        what,
        where=place,
        remedy="Check the name of the bucket, `object_store` (endpoint, region) in pipeline.yml, and that the credentials in "
        "the environment may list, read, write and delete there.",
    )


def _reason(error: BaseException) -> str:
    """What obstore says in one line, without the dump of its source; of a server's XML, its code."""
    text = str(error).split("\n\nDebug source", 1)[0]
    code = re.search(r"<Code>(\w+)</Code>", text)
    if code is not None:
        return code[1]
    first = text.strip().split("\n")[0]
    return (first or type(error).__name__).rstrip(" .")[:400]
