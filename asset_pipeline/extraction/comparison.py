"""Two engines on the same documents: what each refuses, how long it takes, what only one of them finds.

For whoever changes the default engine, or doubts it (REQUIREMENTS R6.4). Documents are read in decoder
processes, one at a time and in turns, so that both engines meet the same machine; files go to a folder that
is removed. Two placements on a page are the same picture when they hold the same pixels, or lie in the same
place. What jobs of two versions did in a ledger is ``history``'s to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.engine import load_engine
from asset_pipeline.extraction.report import extract
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.model import Extraction, Four, Placement
from asset_pipeline.policy import Policy
from asset_pipeline.settings import load_settings

_SAME_PLACE = 0.9
"""Share of their common box that two boxes in the same place overlap."""


class Difference(StrEnum):
    """How the answers for a document, page or picture differ."""

    OUTCOME = "outcome"
    ONLY_ONE = "only_one"
    OTHER_PIXELS = "other_pixels"


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference. ``engine`` is the one that found the picture, or the first one where both did.

    ``page`` is None where the documents' outcomes differ; ``said`` is then what each engine said.
    """

    document: str
    what: Difference
    engine: str
    page: int | None = None
    name: str | None = None
    kind: str | None = None
    bbox: Four | None = None
    picture: str | None = None
    said: str | None = None


@dataclass(slots=True)
class Figures:
    """What one engine did: documents, pages and placements are counted, ``milliseconds`` is one a document read."""

    engine: str
    documents: int = 0
    refused: int = 0
    pages: int = 0
    pages_unread: int = 0
    receipts: int = 0
    quarantined: int = 0
    only_here: int = 0
    milliseconds: list[float] = field(default_factory=list)

    @property
    def rejection_rate(self) -> float:
        """Share of the documents that were refused, 0 to 1."""
        return self.refused / self.documents if self.documents else 0.0

    @property
    def quarantine_rate(self) -> float:
        """Share of the pictures that were quarantined, of those and the archived ones."""
        judged = self.receipts + self.quarantined
        return self.quarantined / judged if judged else 0.0

    def decode_ms(self, percent: int) -> float | None:
        """Percentile of milliseconds to decode a document; None where none was read."""
        took = self.milliseconds
        if len(took) < 2:
            return took[0] if took else None
        return quantiles(took, n=100, method="inclusive")[percent - 1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of both engines, and every difference."""

    first: Figures
    second: Figures
    findings: list[Finding]

    @property
    def equal(self) -> bool:
        """Whether both said the same of all documents."""
        return not self.findings


def compare(
    first: str,
    second: str,
    files: Sequence[Path],
    policy: Policy,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Comparison:
    """Read each of ``files`` with both engines. Raises UsageError for an unknown engine, no file or a missing one."""
    if first == second:
        raise UsageError(f"Both engines are {first!r}.", "Name two different ones.")
    if not files:
        raise UsageError("There is nothing to compare.", "Name at least one document.")
    for engine in (first, second):
        load_engine(engine)
    figures = {engine: Figures(engine) for engine in (first, second)}
    findings: list[Finding] = []
    with (
        DecoderPool(1, policy, warm=(first, second), caged=load_settings().sandbox) as pool,
        TemporaryDirectory(prefix="comparing-") as scratch,
    ):
        for index, file in enumerate(files):
            order = (first, second) if index % 2 == 0 else (second, first)
            reports = {}
            for engine in order:
                with TemporaryDirectory(dir=scratch) as out:
                    reports[engine] = extract(file, out, engine=engine, policy=policy, workers=1, pool=pool)
                _count(figures[engine], reports[engine])
            findings += differences(str(file), first, reports[first], second, reports[second])
            progress(index + 1, len(files))
    for finding in findings:
        if finding.what is Difference.ONLY_ONE:
            figures[finding.engine].only_here += 1
    return Comparison(figures[first], figures[second], findings)


def differences(document: str, first: str, one: Extraction, second: str, other: Extraction) -> Iterator[Finding]:
    """What differs between two answers for the same document."""
    if one.outcome != other.outcome:
        said = f"{first}: {one.outcome}, {second}: {other.outcome}"
        yield Finding(document, Difference.OUTCOME, first, said=said)
        return
    left, right = _found(one), _found(other)
    for page in sorted({*left, *right}):
        rest_left, rest_right, moved = _match(left.get(page, []), right.get(page, []))
        for engine, rows in ((first, rest_left), (second, rest_right)):
            for row in rows:
                yield _finding(document, Difference.ONLY_ONE, engine, page, row)
        for row in moved:
            yield _finding(document, Difference.OTHER_PIXELS, first, page, row)


@dataclass(frozen=True, slots=True)
class _Found:
    row: Placement
    pixels: str


def _found(report: Extraction) -> dict[int, list[_Found]]:
    """Placements by page whose picture was read, with what identifies its pixels."""
    pixels = {picture.sha256: picture.pixel_sha256 or picture.sha256 for picture in report.pictures}
    return {
        page.page: [_Found(row, pixels[row.picture]) for row in page.placements if row.picture is not None]
        for page in report.pages
    }


def _match(left: list[_Found], right: list[_Found]) -> tuple[list[Placement], list[Placement], list[Placement]]:
    """What has no counterpart on either side, and of the left what lies in the same place with other pixels."""
    left, right = _pair(left, right, lambda one, other: one.pixels == other.pixels and _same_place(one, other))
    left, right = _pair(left, right, lambda one, other: one.pixels == other.pixels)
    alone, rest = _pair(left, right, _same_place)
    lonely = {id(found) for found in alone}
    moved = [found.row for found in left if id(found) not in lonely]
    return [found.row for found in alone], [found.row for found in rest], moved


def _pair(
    left: list[_Found], right: list[_Found], same: Callable[[_Found, _Found], bool]
) -> tuple[list[_Found], list[_Found]]:
    """Both sides without the pairs of which ``same`` holds, each taken once."""
    alone, rest = [], list(right)
    for one in left:
        partner = next((index for index, other in enumerate(rest) if same(one, other)), None)
        if partner is None:
            alone.append(one)
        else:
            del rest[partner]
    return alone, rest


def _same_place(one: _Found, other: _Found) -> bool:
    a, b = one.row.bbox, other.row.bbox
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    around = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
    return a == b or (width > 0 and height > 0 and width * height >= _SAME_PLACE * around)


def _finding(document: str, what: Difference, engine: str, page: int, row: Placement) -> Finding:
    return Finding(document, what, engine, page, row.name, row.kind.value, row.bbox, row.picture)


def _count(figures: Figures, report: Extraction) -> None:
    figures.documents += 1
    if report.outcome != "ok":
        figures.refused += 1
        return
    figures.pages += len(report.pages)
    figures.pages_unread += sum(page.drawn is None for page in report.pages)
    figures.receipts += sum(page.archived + page.derived_archived for page in report.pages)
    figures.quarantined += sum(page.quarantined + page.derived_quarantined for page in report.pages)
    figures.milliseconds.append(report.timings_ms.decode)
