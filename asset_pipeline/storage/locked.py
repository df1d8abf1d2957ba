"""A second store for what must outlive a mistake or a theft of the first one's keys: new objects are locked.

In a bucket that was made with object lock, each object is kept in compliance mode until its date: nobody, the owner
of the account included, can delete or replace it before. Where the store is a folder, or a bucket without object
lock, it is a second copy and no more; a bucket's own rules then say who may delete it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from asset_pipeline.settings import Settings
from asset_pipeline.storage.s3 import S3Store
from asset_pipeline.storage.store import Store, open_store

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_WITHOUT = frozenset({"ObjectLockConfigurationNotFoundError", "NoSuchObjectLockConfiguration", "NotImplemented"})


class LockingStore(S3Store):
    """A bucket whose new objects are kept for ``days``, if it was made with object lock."""

    def __init__(self, address: str, *, days: int, endpoint: str = "", region: str = "us-east-1", name: str) -> None:
        super().__init__(address, endpoint=endpoint, region=region, name=name)
        self._days = days
        self._locks: bool | None = None

    def locks(self) -> bool:
        """Whether the bucket was made with object lock."""
        if self._locks is None:
            try:
                with self._mapped(passing=_WITHOUT):
                    found = self._client.get_object_lock_configuration(Bucket=self.bucket)
                self._locks = found.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled"
            except ClientError:
                self._locks = False
        return self._locks

    def put_once(self, key: str, source: Any, sha256: str) -> bool:
        """As in any bucket; asks first, once, whether it locks."""
        self.locks()
        return super().put_once(key, source, sha256)

    def _make_client(self) -> S3Client:
        client = super()._make_client()
        client.meta.events.register("provide-client-params.s3.PutObject", cast(Any, self._keep))
        return client

    def _keep(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        """The arguments of a PUT, with the date until which the object is locked."""
        if not self._locks:
            return params
        until = datetime.now(UTC) + timedelta(days=self._days)
        return params | {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}


def open_second_store(settings: Settings) -> Store:
    """The second store of checkpoints, which the settings name. Contacts nothing."""
    address = settings.checkpoints
    if not address.startswith("s3://"):
        return open_store(address, settings, "checkpoints")
    days, endpoint = settings.checkpoint_lock_days, settings.s3_endpoint
    return LockingStore(address, days=days, endpoint=endpoint, region=settings.s3_region, name="checkpoints")
