"""A store that is a bucket, or a prefix in one, on AWS or any server that speaks S3.

``put_once`` is one PUT with ``If-None-Match: *``: of two writers one wins, and a reader sees all or nothing. The
digest goes along as a checksum, so the server refuses bytes that changed on the way. Credentials come from where
boto3 looks for them (environment, profile, role) and appear in no message; neither do bucket and endpoint.
"""

from __future__ import annotations

import base64
import hashlib
import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.loaders import Loader, create_loader
from botocore.utils import parse_timestamp

from asset_pipeline.errors import ConfigurationError, IntegrityError, StorageError
from asset_pipeline.failpoints import Failpoint, reached
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import (
    CHUNK,
    TEMPORARY,
    Entry,
    Swept,
    fetch_checked,
    holds_digest,
    open_regular,
    prove,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONNECT_SECONDS = 5
READ_SECONDS = 60
TRIES = 4
CONNECTIONS = 32
LARGEST_PUT = 5 * 1024**3

_MISSING = {"404", "NoSuchKey", "NotFound"}
_TAKEN = {"412", "PreconditionFailed"}
_CONFLICT = {"409", "ConditionalRequestConflict", "OperationAborted"}
_DENIED = {
    *("401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("AuthorizationHeaderMalformed", "RequestTimeTooSkewed"),
}
_BUSY = {"429", "503", "SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "TooManyRequests"}
_ALTERED = {"BadDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch", "InvalidDigest"}


_CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "webp": "image/webp",
}


class S3Store:
    """Bytes in objects under ``s3://bucket/prefix``. Safe to use from many threads."""

    def __init__(self, address: str, *, endpoint: str = "", region: str = "us-east-1", name: str = "store") -> None:
        self.bucket, _, prefix = address.removeprefix("s3://").partition("/")
        if not self.bucket:
            raise ConfigurationError(f"The address of the {name} store has no bucket.", "Write s3://bucket/prefix.")
        self.name = name
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._endpoint = endpoint or None
        self._region = region
        self._lock = threading.Lock()
        self._made: S3Client | None = None

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Entries in key order, a page of 1,000 at a time. Folder markers (keys that end in "/") are left out."""
        with self._mapped():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=self._prefix + prefix
            )
            for page in pages:
                for found in page.get("Contents", []):
                    key = found["Key"].removeprefix(self._prefix)
                    if key and not key.endswith("/") and not key.rpartition("/")[2].startswith(TEMPORARY):
                        modified = found["LastModified"].astimezone(UTC)
                        yield Entry(key, found["Size"], _tag(found["ETag"], modified), modified)

    def folders(self) -> Iterator[str]:
        """First parts of longer keys, as the server groups them."""
        with self._mapped():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=self._prefix, Delimiter="/"
            )
            for page in pages:
                for found in page.get("CommonPrefixes", []):
                    yield found["Prefix"].removeprefix(self._prefix).rstrip("/")

    def entry(self, key: str) -> Entry:
        """The entry of one object, by a HEAD request."""
        with self._mapped(key):
            found = self._client.head_object(Bucket=self.bucket, Key=self._prefix + key)
        modified = found["LastModified"].astimezone(UTC)
        return Entry(key, found["ContentLength"], _tag(found["ETag"], modified), modified)

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        """A stream of the bytes, read from the network as it is asked for."""
        with self._mapped(key):
            body = self._client.get_object(Bucket=self.bucket, Key=self._prefix + key)["Body"]
            try:
                yield cast(BinaryIO, io.BufferedReader(_Body(body), CHUNK))
            finally:
                body.close()

    def fetch(self, key: str, target: Path, sha256: str) -> int:
        """Copy to the new file ``target``, checking the digest on the way."""
        return fetch_checked(self, key, target, sha256)

    def exists(self, key: str) -> bool:
        """Whether the object is there."""
        try:
            self.entry(key)
        except KeyError:
            return False
        return True

    def put_once(self, key: str, source: Path, sha256: str) -> bool:
        """PUT on the condition that nothing is there, streamed from the disk."""
        with self._checked(source, sha256) as (stream, size):
            for attempt in range(TRIES):
                stream.seek(0)
                reached(Failpoint.ONCE_WRITTEN)
                try:
                    with self._mapped(passing=_TAKEN | _CONFLICT):
                        self._client.put_object(
                            Bucket=self.bucket,
                            Key=self._prefix + key,
                            Body=stream,
                            ContentLength=size,
                            IfNoneMatch="*",
                            ContentType=_content_type(key),
                            ChecksumSHA256=_checksum(sha256),
                        )
                    return True
                except ClientError as error:
                    if _code(error) in _TAKEN:
                        # It may have been us: when the answer to a PUT gets lost, botocore asks again.
                        return False
                # Two conditional writes met: neither is refused for good until one of them is done.
                time.sleep(0.1 * 2**attempt)
            if self.exists(key):
                return False
        raise StorageError(f"Writers of the {self.name} store kept meeting.", "It is tried again by itself.")

    @contextmanager
    def _checked(self, source: Path, sha256: str) -> Iterator[tuple[BinaryIO, int]]:
        """Stream and size of a file that is about to be sent, which must have the digest ``sha256``."""
        with open_regular(source) as stream:
            digest = hashlib.file_digest(cast(io.BufferedReader, stream), "sha256")
            size = stream.tell()
            if digest.hexdigest() != sha256:
                raise IntegrityError("The bytes to store do not have the expected digest.")
            if size > LARGEST_PUT:
                raise StorageError(f"The {self.name} store takes at most 5 GiB in one piece.", "Lower the limits.")
            stream.seek(0)
            yield stream, size

    def repair(self, key: str, source: Path, sha256: str) -> bool:
        """PUT over bytes that are not the right ones: a reader sees the old or the new object, whole."""
        if holds_digest(self, key, sha256):
            return False
        with self._checked(source, sha256) as (stream, size), self._mapped():
            self._client.put_object(
                Bucket=self.bucket,
                Key=self._prefix + key,
                Body=stream,
                ContentLength=size,
                ChecksumSHA256=_checksum(sha256),
            )
        return True

    def put_current(self, key: str, body: bytes) -> None:
        """PUT, whatever was there."""
        checksum = _checksum(hashlib.sha256(body).hexdigest())
        reached(Failpoint.CURRENT_WRITTEN)
        with self._mapped():
            self._client.put_object(
                Bucket=self.bucket,
                Key=self._prefix + key,
                Body=body,
                ContentType=_content_type(key),
                ChecksumSHA256=checksum,
            )

    def sweep_temporary(self, before: datetime) -> Swept:
        """Delete what a check of this store left that was ended in the middle; writes leave nothing on S3."""
        swept = Swept()
        with self._mapped():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=self._prefix + TEMPORARY
            )
            for page in pages:
                for found in page.get("Contents", []):
                    if found["LastModified"] < before:
                        self.delete(found["Key"].removeprefix(self._prefix))
                        swept = swept.plus(found["Size"])
        return swept

    def delete(self, key: str) -> None:
        """Delete the object; one that is already gone is success."""
        try:
            with self._mapped(key):
                self._client.delete_object(Bucket=self.bucket, Key=self._prefix + key)
        except KeyError:
            return

    def check(self) -> None:
        """Write, read back and delete a small object."""
        prove(self, self.name)

    @property
    def _client(self) -> S3Client:
        """The client, made when first used: that takes a third of a second, and thread-safe once made."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make_client()
        return self._made

    def _make_client(self) -> S3Client:
        config = Config(
            signature_version="s3v4",
            # A server that is not AWS rarely has a name in DNS for each bucket.
            s3={"addressing_style": "path" if self._endpoint else "auto"},
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": TRIES, "mode": "standard"},
            max_pool_connections=CONNECTIONS,
            # We send and compare SHA-256 ourselves; the default CRC trailers trouble other servers.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        try:
            # A session of our own: the default one is not thread-safe.
            session = botocore.session.get_session()
            session.register_component("data_loader", _descriptions(session.get_config_variable("data_path")))
            session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
            client = session.create_client("s3", endpoint_url=self._endpoint, region_name=self._region, config=config)
            return cast("S3Client", client)
        except (ValueError, BotoCoreError):
            raise ConfigurationError(
                "The S3 endpoint, region or profile is not usable.",
                "Correct ASSET_PIPELINE_S3_ENDPOINT, ASSET_PIPELINE_S3_REGION or AWS_PROFILE.",
            ) from None

    @contextmanager
    def _mapped(self, key: str | None = None, passing: frozenset[str] | set[str] = frozenset()) -> Iterator[None]:
        """Turn botocore's errors, which hold addresses and sometimes keys, into ours. ``passing`` codes get through."""
        try:
            yield
        except ClientError as error:
            code = _code(error)
            if code in passing:
                raise
            if key is not None and code in _MISSING:
                raise KeyError(key) from None
            self._refused(code, _retry_after(error))
        except BotoCoreError as error:
            self._unreachable(error)

    def _refused(self, code: str, hint: timedelta | None) -> NoReturn:
        if code in _DENIED:
            raise StorageError(
                f"The {self.name} store refused the credentials.",
                "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do in the bucket.",
            ) from None
        if code == "NoSuchBucket":
            raise StorageError(
                f"The bucket of the {self.name} store does not exist.",
                f"Create it or correct ASSET_PIPELINE_{self.name.upper()}.",
            ) from None
        if code in _ALTERED:
            raise IntegrityError("The bytes changed on their way to the store.", "It is safe to run again.") from None
        reason = Reason.PROVIDER_BUSY if code in _BUSY else Reason.STORAGE_UNAVAILABLE
        raise StorageError(f"The {self.name} store answered {code}.", "Check the store.", reason, hint) from None

    def _unreachable(self, error: Exception) -> NoReturn:
        if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
            raise StorageError(
                f"There are no credentials for the {self.name} store.",
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role.",
            ) from None
        reason = Reason.CONNECTION_RESET if isinstance(error, ConnectionClosedError) else Reason.STORAGE_UNAVAILABLE
        raise StorageError(
            f"The {self.name} store cannot be reached ({type(error).__name__}).",
            "Check ASSET_PIPELINE_S3_ENDPOINT and the network.",
            reason,
        ) from None


class _Body(io.RawIOBase):
    """The answer's body as a raw stream; botocore raises at its end when bytes are missing."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk: bytes = self._body.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


@cache
def _descriptions(folders: str | None) -> Loader:
    """botocore's descriptions of S3, read once a process: each session would read its own, for a quarter second."""
    return create_loader(folders)


def _moment(text: str) -> datetime:
    """A time in an answer. botocore tries all forms that there are, which takes half the time of a listing."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return parse_timestamp(text)


def _content_type(key: str) -> str:
    """What a browser is told about a file; content named by its digest is nothing in particular."""
    return _CONTENT_TYPES.get(key.rpartition("/")[2].rpartition(".")[2], "application/octet-stream")


def _checksum(sha256: str) -> str:
    """A digest in hex as S3 wants it in a header."""
    return base64.b64encode(bytes.fromhex(sha256)).decode()


def _retry_after(error: ClientError) -> timedelta | None:
    """How long a busy server asked us to wait, where it said so in seconds."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    seconds = str(headers.get("retry-after", ""))
    return timedelta(seconds=int(seconds)) if _code(error) in _BUSY and seconds.isdecimal() else None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "unknown"))


def _tag(etag: str, modified: datetime) -> str:
    # The time makes the same bytes, sent again, a new upload: it is answered as a duplicate instead of not at all.
    return f"{etag.strip(chr(34))}@{int(modified.timestamp())}"
