"""The bytes of quarantined pictures, as the document stores them: files of an answer beside its pictures.

For the quarantine store, where a person can look at what was held back until the working clock ends. They
are nobody's pictures: no rendition, no part of a report or manifest, and never decoded here. A document can
draw the same bytes very often, so what is kept of it has a bound of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.written import write_file
from asset_pipeline.model import Placement, Status, Withheld


def most_bytes(request: Request) -> int:
    """What is withheld of one document is no more than the document, or one picture where that is more."""
    return max(request.source_bytes, request.policy.limits.encoded_bytes)


@dataclass(slots=True)
class WithheldFiles:
    """Collects them while an engine reads."""

    request: Request
    rows: list[Withheld] = field(default_factory=list)
    _known: dict[Hashable, tuple[str, int] | None] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def add(self, page: int, row: Placement, key: Hashable, read: Callable[[], bytes]) -> None:
        """Keep what ``read`` gives for a quarantined ``row``, read once for a ``key``. No bytes are no fault."""
        if not self.request.withhold or row.status is not Status.QUARANTINED:
            return
        if key not in self._known:
            self._known[key] = self._write(read)
        written = self._known[key]
        if written is not None:
            self.rows.append(Withheld(page=page, name=row.name, sha256=written[0], bytes=written[1]))

    def _write(self, read: Callable[[], bytes]) -> tuple[str, int] | None:
        try:
            data = read()
        except Exception:  # noqa: BLE001 - a picture that is refused already: whatever its bytes do, it stays so
            return None
        digest = hashlib.sha256(data).hexdigest()
        if digest in self._sizes:
            return digest, len(data)
        left = most_bytes(self.request) - sum(self._sizes.values())
        if not 0 < len(data) <= min(left, self.request.policy.limits.encoded_bytes):
            return None
        self._sizes[digest] = len(data)
        write_file(self.request.out / Withheld.file_of(digest), data)
        return digest, len(data)
