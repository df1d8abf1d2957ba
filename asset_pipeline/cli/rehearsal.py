"""A copy of the installation to try things in: the same kinds of stores and database, none of the same contents.

Stores lie below those of the installation, under a name nobody else uses; the inbox, which the pipeline only ever
reads, lies in the archive store instead, where no sensor looks. A SQLite ledger is a file of its own, a PostgreSQL
ledger a schema of its own. Keys are new and nothing reaches the second store of checkpoints, so no record of the
installation knows of it. All of it is removed on every way out, and by the janitor where this process was killed.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import DBAPIError

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.keys import open_months
from asset_pipeline.ledger.engines import make_engine
from asset_pipeline.retention.rehearsals import inbox_of, new_rehearsal, schema_of
from asset_pipeline.settings import Settings
from asset_pipeline.storage.store import open_store

STORES = ("sources", "archive", "quarantine")


@contextmanager
def rehearsal(settings: Settings, now: datetime) -> Iterator[Installation]:
    """Open the copy; its months are the last twelve. Raises PipelineError when it cannot be made."""
    name = new_rehearsal(now)
    with ExitStack() as made:
        copy = _copy(settings, name, now)
        made.callback(_remove_empty, _absent_folders(settings))
        made.callback(_remove_places, copy, name)
        Path(copy.work).mkdir(mode=0o700, parents=True)
        if not copy.inbox.startswith("s3://"):
            Path(copy.inbox).mkdir(parents=True)
        copy = copy.model_copy(update={"ledger": made.enter_context(_ledger(settings, name))})
        yield made.enter_context(open_installation(copy))


def _copy(settings: Settings, name: str, now: datetime) -> Settings:
    places = {store: _below(settings.store_address(store), name) for store in STORES}
    return settings.model_copy(
        update={
            **places,
            "inbox": _below(settings.store_address("archive"), inbox_of(name)),
            "home": settings.home / name,
            "work": settings.work_folder / name,
            "keys": settings.home / name / "keys",
            "policy": settings.policy_file if settings.policy_file.exists() else Path(),
            "first_month": _year_before(open_months(settings, now).last),
            "settle_seconds": 0.0,
            "event_key": SecretStr(secrets.token_hex(32)),
            "key_service": "",
            "checkpoints": "",
            "alert_webhook": SecretStr(""),
            "alert_mail_server": SecretStr(""),
        }
    )


def _below(address: str, name: str) -> str:
    return f"{address.rstrip('/')}/{name}" if address.startswith("s3://") else str(Path(address).absolute() / name)


def _year_before(month: str) -> str:
    return f"{int(month[:4]) - 1}{month[4:]}"


@contextmanager
def _ledger(settings: Settings, name: str) -> Iterator[SecretStr]:
    """The address of an empty ledger of the same kind."""
    url = make_url(settings.ledger_url)
    if url.get_backend_name() == "sqlite":
        folder = Path(str(url.database)).absolute().parent / name
        if folder.parent.is_dir() or not settings.ledger.get_secret_value():  # else told when it is opened
            folder.mkdir(parents=True)
        try:
            yield _secret(url.set(database=str(folder / "ledger.db")))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    schema = schema_of(name)
    engine = make_engine(settings.ledger_url)
    try:
        with engine.begin() as tx:
            tx.execute(text(f"CREATE SCHEMA {schema}"))
    except DBAPIError:
        engine.dispose()
        what = "The ledger's database lets this user make no schema, or is away."
        raise ConfigurationError(what, "Grant CREATE on the database, or see `asset-pipeline doctor`.") from None
    try:
        options = f"{url.query.get('options', '')} -csearch_path={schema}".strip()
        yield _secret(url.update_query_dict({"options": options}))
    finally:
        with engine.begin() as tx:
            tx.execute(text(f"DROP SCHEMA {schema} CASCADE"))
        engine.dispose()


def _secret(url: URL) -> SecretStr:
    return SecretStr(url.render_as_string(hide_password=False))


def _absent_folders(settings: Settings) -> list[Path]:
    """Folders of stores that the copy will be the first to need."""
    addresses = [settings.store_address(store) for store in STORES]
    places = [Path(address) for address in addresses if not address.startswith("s3://")] + [settings.work_folder]
    return [place for place in places if not place.exists()]


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # somebody else uses it by now
            folder.rmdir()


def _remove_places(copy: Settings, name: str) -> None:
    for store in (*STORES, "inbox"):
        address = copy.store_address(store)
        if not address.startswith("s3://"):
            shutil.rmtree(address, ignore_errors=True)
            continue
        opened = open_store(address, copy, store)
        for entry in list(opened.list()):
            opened.delete(entry.key)
    for folder in (copy.work, copy.home):
        if folder.name == name:
            shutil.rmtree(folder, ignore_errors=True)
