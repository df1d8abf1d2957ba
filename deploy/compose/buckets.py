"""Makes the buckets of the four stores where they are not there yet, and has the server encrypt what is put into them.

Reads the same variables as the pipeline. For a first start with a server of one's own; a bucket of a cloud is made with
the tools of that cloud, which can say more (object lock, access of others).
"""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

from asset_pipeline.settings import load_settings

_THERE = {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}
_ENCRYPTED = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}


def main() -> None:
    """One line for each bucket."""
    settings = load_settings()
    client = boto3.client("s3", endpoint_url=settings.s3_endpoint or None, region_name=settings.s3_region)
    addresses = (urlsplit(settings.store_address(store)) for store in ("inbox", "sources", "archive", "quarantine"))
    for bucket in sorted({address.netloc for address in addresses if address.scheme == "s3"}):
        try:
            client.create_bucket(Bucket=bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _THERE:
                raise
        client.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=_ENCRYPTED)
        sys.stdout.write(f"{bucket}: there, encrypted by the server\n")


if __name__ == "__main__":
    main()
