"""How reading fails where no answer of an engine can say so: the decoder is gone, or met a defect of ours.

Raised to the callers of the pool. Refused documents and quarantined pictures are answers, not exceptions.
"""

from __future__ import annotations

from asset_pipeline.reasons import Reason


class DecoderLost(Exception):
    """A decoder process gave no answer that can be believed. ``reason`` is crash, deadline or memory."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail


class EngineFailed(Exception):
    """The engine met an exception it should not have. Holds its type and place, no words of it."""

    def __init__(self, where: str, reason: Reason = Reason.INTERNAL_ERROR) -> None:
        super().__init__(where)
        self.reason = reason
