"""A private working directory: random name, mode 0700, fixed names inside, gone in the end.

Nothing that a caller wrote becomes part of a path (REQUIREMENTS R2.3, R7.1), and the path itself
belongs in no log, event or record. What a crash leaves behind is for the janitor, who can tell by a lock
whether somebody still works in a directory (``retention.held``).
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.failpoints import Failpoint, reached
from asset_pipeline.retention.held import holding


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where one attempt works: ``document`` does not exist yet, ``out`` is an empty folder."""

    document: Path
    out: Path


@contextmanager
def private_workplace(folder: Path) -> Iterator[Workplace]:
    """A workplace below ``folder``, removed on every way out. Raises ConfigurationError when it cannot be made."""
    place = folder / secrets.token_hex(16)
    with ExitStack() as held:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.mkdir(mode=0o700)
            held.callback(shutil.rmtree, place, ignore_errors=True)
            held.enter_context(holding(place))
            (place / "out").mkdir(mode=0o700)
            reached(Failpoint.WORKPLACE_MADE)
        except OSError as error:
            raise ConfigurationError(
                f"The working folder cannot be used ({error.strerror}).",
                "Set ASSET_PIPELINE_WORK to a writable folder.",
            ) from None
        yield Workplace(document=place / "document", out=place / "out")
