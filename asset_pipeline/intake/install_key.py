"""The key of this installation, from which report ids are derived (REQUIREMENTS R2.1).

From the settings, else a file that is made once, readable by its owner only. Losing it makes new ids for
documents that come later, so it belongs in the backup.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.settings import Settings

FILE = "install.key"
LENGTH = 32
SHORTEST = 16


def install_key(settings: Settings) -> bytes:
    """The key; its file is made when there is none. Raises ConfigurationError when it cannot be used."""
    text = settings.install_key.get_secret_value()
    if text:
        return _decode(text, "ASSET_PIPELINE_INSTALL_KEY")
    path = settings.keys_folder / FILE
    try:
        if not path.exists():
            _make(path)
        return _decode(path.read_text("ascii").strip(), f"The key file {FILE}")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(
            f"The key file {FILE} cannot be read or made.", "Check the folder that ASSET_PIPELINE_KEYS names."
        ) from None


def _make(path: Path) -> None:
    """Write a new key and link it to its name: of two processes that start together, one wins for both."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{FILE}-{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secrets.token_hex(LENGTH).encode())
        os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.close(descriptor)
        temporary.unlink()


def _decode(text: str, where: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) < SHORTEST:
        raise ConfigurationError(f"{where} is not a key.", f"It is {SHORTEST} bytes or more, written in hex.")
    return key
