"""Where a file lies in the inbox says what it is: ``<collection>/<YYYY-MM>/<name>``.

The same on a folder and on S3; names stay as they are written, byte for byte. Litter that programs leave beside
documents is ignored; every other key that makes no sense is refused with a reason, never passed over.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from asset_pipeline.errors import ConfigurationError, Refusal
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings

LONGEST_KEY = 1024
"""Bytes of a key in UTF-8: the limit of S3, held for folders too (an index entry has one as well)."""

IGNORED_NAMES = frozenset({".ds_store", "thumbs.db", "desktop.ini"})
IGNORED_PREFIXES = ("~$", "._")
IGNORED_SUFFIXES = (".part", ".partial", ".tmp", ".crdownload")
IGNORED_FOLDERS = frozenset({"@eadir"})

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_UNUSABLE = {"Cc", "Cs"}
"""Control characters and what is left of names that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Months:
    """The months that may receive documents: ``first`` to ``last``, as ``YYYY-MM``."""

    first: str
    last: str

    def __contains__(self, month: str) -> bool:
        return "01" <= month[5:] <= "12" and self.first <= month <= self.last


@dataclass(frozen=True, slots=True)
class InboxKey:
    """A key that was understood."""

    collection: str
    month: str
    name: str


def open_months(settings: Settings, now: datetime) -> Months:
    """From the first month of the settings to the current one, where months begin in the settings' time zone."""
    try:
        zone = ZoneInfo(settings.timezone)
    except (KeyError, ValueError, OSError):
        raise ConfigurationError(
            "ASSET_PIPELINE_TIMEZONE is not the name of a time zone.", "Use one like Europe/Berlin."
        ) from None
    return Months(settings.first_month, now.astimezone(zone).strftime("%Y-%m"))


def is_ignored(key: str) -> bool:
    """Whether the key is litter: half-written copies, lock files, what file managers and disk stations leave."""
    *folders, name = key.lower().split("/")
    return (
        name in IGNORED_NAMES
        or name.startswith(IGNORED_PREFIXES)
        or name.endswith(IGNORED_SUFFIXES)
        or not IGNORED_FOLDERS.isdisjoint(folders)
    )


def parse_key(key: str, months: Months) -> InboxKey:
    """Take ``key`` apart. Raises Refusal: key_not_understood, or month_out_of_range."""
    parts = key.split("/")
    if len(parts) != 3 or any(part in ("", ".", "..") for part in parts) or not _MONTH.fullmatch(parts[1]):
        raise Refusal(Reason.KEY_NOT_UNDERSTOOD)
    if not _is_text(key) or len(key.encode()) > LONGEST_KEY:
        raise Refusal(Reason.KEY_NOT_UNDERSTOOD)
    if parts[1] not in months:
        raise Refusal(Reason.MONTH_OUT_OF_RANGE)
    return InboxKey(*parts)


def _is_text(key: str) -> bool:
    """Whether no character is unusable. Most keys are printable: a whole inbox is looked through twice a minute."""
    return key.isprintable() or all(unicodedata.category(character) not in _UNUSABLE for character in key)


def recordable(key: str) -> str:
    """``key`` as a database can hold it: what is not text is escaped, what is too long is cut and told by digest.

    Only a key that ``parse_key`` refuses comes out changed.
    """
    text = key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace").replace("\0", "\\x00")
    body = text.encode()
    if len(body) <= LONGEST_KEY:
        return text
    return f"{body[:900].decode('utf-8', 'ignore')}…{hashlib.sha256(body).hexdigest()}"
