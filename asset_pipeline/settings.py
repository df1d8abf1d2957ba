"""Where things are: stores, database, keys, workers. Environment first, else `.asset_pipeline/` here.

Every field is an environment variable ``ASSET_PIPELINE_<FIELD>``. What is allowed belongs in
``policy``. Nothing is contacted or created by reading settings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from asset_pipeline.errors import ConfigurationError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_DAY = 86_400.0
_CENTURY = 36_525
_LARGEST = 2**53 - 1


def is_folder(address: str) -> bool:
    """Whether ``address`` is a path. ``ftp://a`` and its like are none, though a folder could be called that."""
    return not _SCHEME.match(address)


def _store(address: str) -> str:
    if not (address.startswith("s3://") or is_folder(address)):
        raise PydanticCustomError("store", "a store is a folder, or a bucket written as s3://bucket/prefix")
    return address


def _place(path: Path) -> Path:
    if not is_folder(str(path)):
        raise PydanticCustomError("place", "it must be a path on this machine")
    return path


Store = Annotated[str, AfterValidator(_store)]
Place = Annotated[Path, AfterValidator(_place)]


class Settings(BaseSettings):
    """Places and sizes of one installation. Store addresses are a folder or ``s3://bucket/prefix``."""

    # A variable that is set to nothing is not set: an empty home would be whatever folder one stands in.
    model_config = SettingsConfigDict(
        env_prefix="ASSET_PIPELINE_", env_ignore_empty=True, frozen=True, extra="ignore", allow_inf_nan=False
    )

    home: Place = Field(Path(".asset_pipeline"), description="folder of everything that is not placed elsewhere")
    inbox: Store = Field("", description="inbox store; default <home>/inbox")
    sources: Store = Field("", description="store of admitted sources; default <home>/sources")
    archive: Store = Field("", description="store of pictures and manifests; default <home>/archive")
    quarantine: Store = Field("", description="store of quarantined bytes; default <home>/quarantine")
    ledger: SecretStr = Field(SecretStr(""), description="SQLAlchemy URL of the ledger; default <home>/ledger.db")
    work: Place = Field(Path(), description="folder of private working directories; default <home>/work")
    keys: Place = Field(Path(), description="folder of key files; default <home>/keys")
    policy: Place = Field(Path(), description="policy file; default <home>/policy.yaml")
    install_key: SecretStr = Field(SecretStr(""), description="key of report ids (hex); default a file in keys")
    s3_endpoint: str = Field("", description="address of an S3 server other than AWS")
    s3_region: str = Field("us-east-1", description="region of the buckets")
    scheduler: str = Field("", description="address of a Dask scheduler (tcp:// or tls://); default this machine")
    scheduler_tls_ca: Place = Field(Path(), description="PEM file of the authority of a tls:// scheduler")
    scheduler_tls_cert: Place = Field(Path(), description="PEM file of our certificate for a tls:// scheduler")
    scheduler_tls_key: Place = Field(Path(), description="PEM file of that certificate's key")
    engine: str = Field("pdf", description="extraction engine")
    workers: int = Field(0, ge=0, le=1024, description="decoder processes; 0 means one a core")
    sandbox: bool = Field(True, description="false reads documents without a cage, where a system cannot fork")
    settle_seconds: float = Field(10.0, ge=0, le=_DAY, description="how long an upload must stay unchanged")
    queued_bytes: int = Field(
        4 * 1024**3,
        gt=0,
        le=_LARGEST,
        description="bytes that one collection may have queued or in work; more waits in the inbox",
    )
    store_slots: int = Field(
        0,
        ge=0,
        le=10_000,
        description="workers of all machines that may fetch from or write to the stores at once; 0: all",
    )
    lease_seconds: float = Field(90.0, gt=0, le=_DAY, description="how long a worker holds a unit without renewing")
    pages_per_unit: int = Field(200, gt=0, le=1_000_000, description="pages of one unit of work")
    actor_header: str = Field("", description="header in which a proxy before the web pages names who is logged in")
    alert_webhook: SecretStr = Field(SecretStr(""), description="address that alerts are posted to as JSON")
    alert_mail_server: SecretStr = Field(
        SecretStr(""), description="smtp://, smtp+starttls:// or smtps://[user:password@]host:port"
    )
    alert_mail_from: str = Field("", description="sender of alerts")
    alert_mail_to: str = Field("", description="receivers of alerts, separated by commas")
    event_key: SecretStr = Field(SecretStr(""), description="key of events (hex or PEM); default a file in keys")
    key_service: str = Field("", description="certifies event keys, signs checkpoints: file:, env: or a service")
    checkpoints: Store = Field("", description="second store of checkpoints, best a bucket with object lock")
    checkpoint_lock_days: int = Field(
        3650, gt=0, le=_CENTURY, description="how long a bucket with object lock keeps a checkpoint"
    )
    first_month: str = Field("2024-01", pattern=r"^\d{4}-(0[1-9]|1[0-2])$", description="first partition")
    timezone: str = Field("UTC", description="zone in which months begin")

    def store_address(self, name: str) -> str:
        """Address of the store ``inbox``, ``sources``, ``archive`` or ``quarantine``."""
        return str(getattr(self, name)) or str(self.home / name)

    @property
    def ledger_url(self) -> str:
        """SQLAlchemy URL of the ledger. May hold a password: never log it."""
        return self.ledger.get_secret_value() or f"sqlite:///{(self.home / 'ledger.db').absolute()}"

    @property
    def work_folder(self) -> Path:
        """Folder in which private working directories are made."""
        return self.home / "work" if self.work == Path() else self.work

    @property
    def keys_folder(self) -> Path:
        """Folder of key files (mode 0700)."""
        return self.home / "keys" if self.keys == Path() else self.keys

    @property
    def policy_file(self) -> Path:
        """The policy file, which need not exist."""
        return self.home / "policy.yaml" if self.policy == Path() else self.policy


def load_settings(**overrides: object) -> Settings:
    """Settings of this process. Raises ConfigurationError naming the variable that is wrong."""
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        raise ConfigurationError(f"ASSET_PIPELINE_{name} is not valid: {first['msg']}.", "Correct it.") from error
