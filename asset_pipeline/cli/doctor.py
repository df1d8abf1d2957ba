"""`doctor`: does this installation work? Every check is one row: what was looked at, how it is, what to do.

A check is a function that returns a fact or raises; none stops another. Checks leave nothing behind
but the folders and the empty database that any first command would make.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet
from asset_pipeline.errors import ConfigurationError, PipelineError

if TYPE_CHECKING:
    from asset_pipeline.extraction.engine import Engine
    from asset_pipeline.settings import Settings

COLUMNS = ("check", "ok", "detail", "remedy")
LIBRARIES = ("pikepdf", "pypdfium2", "pillow", "pypdf", "sqlalchemy", "alembic", "boto3", "pydantic", "jsonschema")

Check = Callable[[], str]


def doctor(
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Check libraries, stores, database, folders, policy and sandbox. Exit status 1 when something is bad."""
    rows = [_examine(name, check) for name, check in _checks()]
    console.show(format_, [Sheet("Doctor", COLUMNS, rows)], {"ok": all(row["ok"] for row in rows), "checks": rows})
    if not all(row["ok"] for row in rows):
        raise typer.Exit(1)


def _examine(name: str, check: Check) -> dict[str, str | bool]:
    try:
        return {"check": name, "ok": True, "detail": check(), "remedy": ""}
    except PipelineError as error:
        return {"check": name, "ok": False, "detail": error.what, "remedy": error.remedy}
    except Exception as error:  # noqa: BLE001 - a broken library may fail in any way, and that is the finding
        detail = f"{type(error).__name__}: {error}".splitlines()[0][:200] if isinstance(error, ImportError) else ""
        remedy = "Install the locked requirements again."
        return {"check": name, "ok": False, "detail": detail or type(error).__name__, "remedy": remedy}


def _checks() -> Iterator[tuple[str, Check]]:
    from asset_pipeline.settings import load_settings

    yield "python", _python
    yield "libraries", _libraries
    yield "dagster family", _dagster_family
    try:
        settings = load_settings()
    except PipelineError as error:
        yield "settings", _raise(error)
        return
    yield "policy", partial(_policy, settings)
    yield "months", partial(_months, settings)
    yield "engine", partial(_engine, settings)
    yield "database", partial(_database, settings)
    yield "inbox", partial(_inbox, settings)
    for name in ("sources", "archive", "quarantine"):
        yield name, partial(_store, settings, name)
    yield "working folder", partial(_folder, settings.work_folder, "ASSET_PIPELINE_WORK")
    yield "keys folder", partial(_folder, settings.keys_folder, "ASSET_PIPELINE_KEYS")
    yield "sandbox", partial(_sandbox, settings)


def _raise(error: PipelineError) -> Check:
    def check() -> str:
        raise error

    return check


def _python() -> str:
    return platform.python_version()


def _libraries() -> str:
    return ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # takes a while, at every command's start

    try:
        return version(name)
    except PackageNotFoundError:
        raise ConfigurationError(f"{name} is not installed.", "Install the locked requirements.") from None


def _dagster_family() -> str:
    """Libraries have the same last number as the core, and a second number 16 higher."""
    core = _version("dagster")
    if any(_version(name) != core for name in ("dagster-graphql", "dagster-webserver")):
        raise ConfigurationError("The parts of Dagster differ in version.", "Install the locked requirements.")
    _, minor, patch = core.split(".")[:3]
    library, expected = _version("dagster-postgres"), f"0.{int(minor) + 16}.{patch}"
    if library != expected:
        raise ConfigurationError(
            f"dagster-postgres is {library}, and dagster {core} needs {expected}.", "Install the locked requirements."
        )
    return f"dagster {core}, dagster-postgres {library}"


def _policy(settings: Settings) -> str:
    from asset_pipeline.installation import installed_policy

    policy = installed_policy(settings)
    origin = "from its file" if settings.policy_file.exists() else "the defaults"
    return f"version {policy.version}, {origin}, digest {policy.digest[:16]}"


def _months(settings: Settings) -> str:
    from zoneinfo import ZoneInfo

    try:
        now = datetime.now(UTC).astimezone(ZoneInfo(settings.timezone))
    except (OSError, ValueError, KeyError):  # ZoneInfo raises each of them, by the kind of wrong name
        raise ConfigurationError("The time zone does not exist.", "Correct ASSET_PIPELINE_TIMEZONE.") from None
    if settings.first_month > now.strftime("%Y-%m"):
        raise ConfigurationError("The first month lies in the future.", "Correct ASSET_PIPELINE_FIRST_MONTH.")
    return f"from {settings.first_month}, zone {settings.timezone}"


def _engine(settings: Settings) -> str:
    return _engine_of_pdf(settings).version()


def _engine_of_pdf(settings: Settings) -> Engine:
    """What reads PDF here. Raises UsageError where nothing does."""
    from asset_pipeline.extraction.engine import engine_for, load_engine
    from asset_pipeline.validation.documents import PDF

    return load_engine(engine_for(PDF, settings.engine))


def _database(settings: Settings) -> str:
    from sqlalchemy import make_url

    from asset_pipeline.installation import installed_ledger

    installed_ledger(settings).close()
    return f"{make_url(settings.ledger_url).get_backend_name()}, at the newest schema"


def _inbox(settings: Settings) -> str:
    from asset_pipeline.storage.store import open_store

    address = settings.store_address("inbox")
    some = next(iter(open_store(address, settings, "inbox").list()), None)
    return f"{address}, {'empty' if some is None else 'readable'}"


def _store(settings: Settings, name: str) -> str:
    from asset_pipeline.storage.store import open_store

    address = settings.store_address(name)
    open_store(address, settings, name).check()
    return f"{address}, writable"


def _folder(folder: Path, variable: str) -> str:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be written ({error.strerror}).", f"Make it writable or correct {variable}."
        ) from None
    return f"{folder}, writable"


def _sandbox(settings: Settings) -> str:
    """A decoder process reads a page, and what holds it there."""
    import pikepdf

    from asset_pipeline.extraction.engine import Request
    from asset_pipeline.extraction.sandbox import DecoderLost, DecoderPool
    from asset_pipeline.installation import installed_policy

    if not settings.sandbox:
        raise ConfigurationError("Documents are read without a cage.", "Take ASSET_PIPELINE_SANDBOX=false away.")
    engine, policy = _engine_of_pdf(settings).name, installed_policy(settings)
    with tempfile.TemporaryDirectory() as folder, DecoderPool(1, policy) as pool:
        document, out = Path(folder, "document"), Path(folder, "out")
        out.mkdir()
        with pikepdf.new() as pdf:
            pdf.add_blank_page()
            pdf.save(document)
        request = Request(
            document=document,
            out=out,
            policy=policy,
            source_sha256="0" * 64,
            source_bytes=document.stat().st_size,
        )
        try:
            inspection, cage = pool.inspect(engine, request), pool.cage
        except DecoderLost as lost:
            raise ConfigurationError(
                f"The decoder process was lost ({lost.reason.value}).", "Raise decoder_bytes in the policy."
            ) from None
    if inspection.outcome is not None or inspection.source.pages != 1:
        raise ConfigurationError(
            f"The decoder process did not read a blank page ({inspection.outcome}).", "Tell the developers."
        )
    missing = [name for name in ("landlock", "seccomp") if name not in cage]
    lacks = f"; this kernel has no {' and no '.join(missing)}" if missing else ""
    return f"a decoder process read a page, held by {cage}{lacks}"
