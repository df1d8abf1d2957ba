"""The few exception types. Each is one failure a person or a caller can act on.

``PipelineError`` carries a message for people (what happened and how to fix it) and the exit status
of the command line. Documents and pictures that fail are data, not exceptions: ``Refusal`` never
leaves the room that decodes.
"""

from __future__ import annotations

from datetime import timedelta

from asset_pipeline.reasons import Reason


class PipelineError(Exception):
    """A failure told in one line: ``what`` went wrong and the ``remedy``. Never holds a credential."""

    exit_status = 1

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what} {remedy}".strip())
        self.what = what
        self.remedy = remedy


class UsageError(PipelineError):
    """The caller asked for something that does not exist: an unknown engine, an impossible month."""

    exit_status = 2


class ConfigurationError(PipelineError):
    """Settings or policy are unsound, or a place they name cannot be used."""


class StorageError(PipelineError):
    """A store or database cannot be reached, read or written. ``reason`` is transient.

    ``hint`` is how long a service asked to be left alone (Retry-After), where it did.
    """

    def __init__(
        self,
        what: str,
        remedy: str = "",
        reason: Reason = Reason.STORAGE_UNAVAILABLE,
        hint: timedelta | None = None,
    ) -> None:
        super().__init__(what, remedy)
        self.reason = reason
        self.hint = hint


class LedgerLocked(StorageError):
    """Another transaction kept the ledger to itself for too long: no fault of what was to be written."""


class IntegrityError(PipelineError):
    """Bytes or records contradict each other; nothing was overwritten."""

    def __init__(self, what: str, remedy: str = "", reason: Reason = Reason.SOURCE_HASH_MISMATCH) -> None:
        super().__init__(what, remedy)
        self.reason = reason


class LedgerBehindError(PipelineError):
    """The database is behind (or ahead of) the migrations of this version."""


class LeaseLost(Exception):
    """Another worker holds the unit: its fence is newer than ours. The late result is dropped."""


class Refusal(Exception):
    """One picture, page or document is refused for ``reason``. Caught per picture, never around the loop."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
