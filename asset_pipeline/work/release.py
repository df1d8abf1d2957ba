"""Reads one quarantined picture again, under the policy of today, and archives it when it is sound now.

A person may ask for a release, but never for less than validation: the page is read in a decoder process with all
gates, and what still fails stays where it is. The same order holds as for any picture: bytes first, then the
ledger. The other pictures of the page are left as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from asset_pipeline.archive.publish import store_pictures
from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.engine import Request, extractor_version, load_engine
from asset_pipeline.extraction.sandbox import DecoderLost, DecoderPool
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.jobs import use_policy
from asset_pipeline.ledger.quarantine import HeldPicture, release_picture
from asset_pipeline.model import Extraction, Placement, Status
from asset_pipeline.reasons import Reason
from asset_pipeline.work.clock import Clock, utc_now
from asset_pipeline.work.inputs import fetch_source, job_input
from asset_pipeline.work.workplace import Workplace, private_workplace

RELEASABLE = frozenset({Status.ARCHIVED, Status.COLLAPSED, Status.DECORATIVE, Status.NOT_SHOWN})
"""What a picture may turn out to be by itself; a part of a composite changes with others, by a new extraction."""


@dataclass(frozen=True, slots=True)
class Review:
    """What came of reading it again. ``reason`` None: it was archived as ``status``."""

    reason: Reason | None
    status: Status | None = None


def review_picture(inst: Installation, picture: HeldPicture, *, clock: Clock = utc_now) -> Review:
    """Read ``picture`` again and release it when it passes; otherwise nothing changes.

    Raises UsageError when it was decided already or cannot be released by itself, IntegrityError when the source is
    gone or altered, StorageError when a store is away.
    """
    if picture.state != "held":
        raise UsageError(f"The picture is {picture.state} already.", "`asset-pipeline quarantine list` names the rest.")
    with (
        DecoderPool(1, inst.policy, caged=inst.settings.sandbox) as pool,
        private_workplace(inst.settings.work_folder) as place,
    ):
        try:
            extraction = _read(inst, pool, picture, place)
        except DecoderLost as lost:
            return Review(lost.reason)
        found = _placement(extraction, picture.name)
        if isinstance(found, Reason):
            return Review(found)
        named = {found.picture, found.display}
        files = [row for row in extraction.pictures if row.sha256 in named]
        store_pictures(inst, place.out, extraction.model_copy(update={"pictures": files, "withheld": []}))
        rules = (extraction.extractor_version, inst.policy.digest)
        with inst.ledger.begin() as tx:
            use_policy(tx, inst.policy, clock())
            if not release_picture(tx, picture, found, files, rules, clock()):
                raise UsageError("Somebody else has decided about the picture.", "Look at the list again.")
    return Review(None, found.status)


def _read(inst: Installation, pool: DecoderPool, picture: HeldPicture, place: Workplace) -> Extraction:
    source, _ = job_input(inst, picture.source_hash, inst.policy.digest)
    fetch_source(inst, picture.source_hash, place)
    request = Request(
        document=place.document,
        out=place.out,
        policy=inst.policy,
        source_sha256=picture.source_hash,
        source_bytes=source.bytes,
        media_type=source.media_type,
        first=picture.page,
        last=picture.page,
        figures=inst.policy.figures.enabled,
    )
    extraction = pool.extract(picture.engine, request)
    if extraction.outcome == "ok" and extraction.extractor_version != extractor_version(
        load_engine(picture.engine), inst.policy
    ):
        raise UsageError("The extractor was replaced meanwhile.", "Start the command again.")
    return extraction


def _placement(extraction: Extraction, name: str) -> Placement | Reason:
    """The placement ``name`` as it was read now, or why it stays in quarantine."""
    if extraction.outcome != "ok":
        return Reason(extraction.outcome)
    for page in extraction.pages:
        for row in page.placements:
            if row.name == name and row.picture is None:
                return row.reason or Reason.INTERNAL_ERROR
            if row.name == name and row.status in RELEASABLE:
                return row
            if row.name == name:
                what = f"Under the policy of today the picture is {row.status.value}, with others of its page."
                raise UsageError(what, "Extract the document anew: drop it in again under the new policy.")
        if page.reason is not None:
            return page.reason
    return Reason.INTERNAL_ERROR
