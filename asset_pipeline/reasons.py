"""The one enumeration of reasons: why a picture, page, document, unit or upload did not go through.

A reason is an interface: it is stored in the ledger, printed in manifests and reports, and looked up
in the runbook, so a value never changes its meaning and is never removed. Each has a class that
decides what happens next (REQUIREMENTS R4.3): the transient ones form an allowlist, everything else
is permanent. Texts here are for people and hold no data of any document.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReasonClass(StrEnum):
    """What a failure for this reason means for the next step."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    INTEGRITY = "integrity"


class Reason(StrEnum):
    """Stable reason codes (REQUIREMENTS R5.3)."""

    PAYLOAD_TOO_LARGE = "payload_too_large"
    SOURCE_HASH_MISMATCH = "source_hash_mismatch"
    MEDIA_TYPE_NOT_ALLOWED = "media_type_not_allowed"
    SIGNATURE_MISMATCH = "signature_mismatch"
    INVALID_DIMENSIONS = "invalid_dimensions"
    PIXEL_BUDGET_EXCEEDED = "pixel_budget_exceeded"
    FRAME_BUDGET_EXCEEDED = "frame_budget_exceeded"
    EXPANDED_SIZE_EXCEEDED = "expanded_size_exceeded"
    TRUNCATED_STREAM = "truncated_stream"
    MALFORMED_STREAM = "malformed_stream"
    UNSUPPORTED_CODEC = "unsupported_codec"
    UNSUPPORTED_COLOUR_SPACE = "unsupported_colour_space"
    FILTER_BUDGET_EXCEEDED = "filter_budget_exceeded"
    ENCRYPTED = "encrypted"
    POLICY_DENIED = "policy_denied"
    MALFORMED_DOCUMENT = "malformed_document"
    TRUNCATED_DOCUMENT = "truncated_document"
    EMPTY_DOCUMENT = "empty_document"
    PAGE_BUDGET_EXCEEDED = "page_budget_exceeded"
    DECODER_CRASHED = "decoder_crashed"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    MEMORY_EXCEEDED = "memory_exceeded"
    STRUCTURE_LOOP = "structure_loop"
    STRUCTURE_TOO_DEEP = "structure_too_deep"
    OBJECT_BUDGET_EXCEEDED = "object_budget_exceeded"
    PLACEMENT_BUDGET_EXCEEDED = "placement_budget_exceeded"
    CONTENT_BUDGET_EXCEEDED = "content_budget_exceeded"
    METADATA_TOO_LARGE = "metadata_too_large"
    TRAILING_DATA = "trailing_data"
    EXTERNAL_REFERENCE = "external_reference"
    KEY_NOT_UNDERSTOOD = "key_not_understood"
    MONTH_OUT_OF_RANGE = "month_out_of_range"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    CONNECTION_RESET = "connection_reset"
    PROVIDER_BUSY = "provider_busy"
    LEASE_CONFLICT = "lease_conflict"
    RECEIPT_CONFLICT = "receipt_conflict"
    RETRIES_EXHAUSTED = "retries_exhausted"
    WORKER_LOST = "worker_lost"
    EXTRACTOR_CHANGED = "extractor_changed"
    RETENTION_EXPIRED = "retention_expired"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A reason in words: its class, what happened, and what a person can do about it."""

    reason_class: ReasonClass
    meaning: str
    remedy: str


_P, _T, _I = ReasonClass.PERMANENT, ReasonClass.TRANSIENT, ReasonClass.INTEGRITY
_REEXPORT = "Export the document again from its source and drop it in under the same name."
_LIMIT = "If the file is legitimate, raise the limit in the policy and run the month again."
_LIMIT_OF_PICTURE = (
    "If the picture is legitimate, raise the limit in the policy and release it: `asset-pipeline quarantine release`."
)

EXPLANATIONS: dict[Reason, Explanation] = {
    Reason.PAYLOAD_TOO_LARGE: Explanation(_P, "It has more bytes than the policy allows.", _LIMIT),
    Reason.SOURCE_HASH_MISMATCH: Explanation(
        _I, "Stored bytes do not match their recorded digest.", "Restore the file from backup; tell the operator."
    ),
    Reason.MEDIA_TYPE_NOT_ALLOWED: Explanation(
        _P,
        "It is not a file type that the policy accepts, or it is a link or a pipe instead of a file.",
        "Send the document itself (no link to it) as PDF, docx, pptx or xlsx, where the policy accepts these.",
    ),
    Reason.SIGNATURE_MISMATCH: Explanation(
        _P,
        "The bytes are of another type than the name says.",
        "Export the document as a PDF, or correct the ending of its name, and drop it in again.",
    ),
    Reason.INVALID_DIMENSIONS: Explanation(_P, "Width or height is zero, negative or contradictory.", _REEXPORT),
    Reason.PIXEL_BUDGET_EXCEEDED: Explanation(_P, "The picture or its mask has more pixels than allowed.", _LIMIT),
    Reason.FRAME_BUDGET_EXCEEDED: Explanation(_P, "The picture has more frames or scans than allowed.", _LIMIT),
    Reason.EXPANDED_SIZE_EXCEEDED: Explanation(_P, "The data expands beyond the limit.", _LIMIT),
    Reason.TRUNCATED_STREAM: Explanation(_P, "The picture data ends too early.", _REEXPORT),
    Reason.MALFORMED_STREAM: Explanation(_P, "The picture data does not decode.", _REEXPORT),
    Reason.UNSUPPORTED_CODEC: Explanation(_P, "The compression is not supported or is broken.", _REEXPORT),
    Reason.UNSUPPORTED_COLOUR_SPACE: Explanation(_P, "The colour space is not supported.", _REEXPORT),
    Reason.FILTER_BUDGET_EXCEEDED: Explanation(_P, "The data is wrapped in more filters than allowed.", _REEXPORT),
    Reason.ENCRYPTED: Explanation(
        _P, "The document needs a password.", "Save it without a password and drop it in again."
    ),
    Reason.POLICY_DENIED: Explanation(_P, "The policy forbids it.", "Ask whoever owns the policy."),
    Reason.MALFORMED_DOCUMENT: Explanation(_P, "The document cannot be read.", _REEXPORT),
    Reason.TRUNCATED_DOCUMENT: Explanation(_P, "The document ends too early.", _REEXPORT),
    Reason.EMPTY_DOCUMENT: Explanation(
        _P, "The file holds no bytes.", "Copy it again: the export or the upload broke off before it began."
    ),
    Reason.PAGE_BUDGET_EXCEEDED: Explanation(_P, "The document has more pages than allowed.", _LIMIT),
    Reason.DECODER_CRASHED: Explanation(_T, "The decoder process was lost.", "It is tried once more by itself."),
    Reason.DEADLINE_EXCEEDED: Explanation(_T, "Decoding took longer than allowed.", _LIMIT),
    Reason.MEMORY_EXCEEDED: Explanation(_T, "Decoding took more memory than allowed.", _LIMIT),
    Reason.STRUCTURE_LOOP: Explanation(_P, "The document's structure refers to itself.", _REEXPORT),
    Reason.STRUCTURE_TOO_DEEP: Explanation(_P, "The document's structure is nested too deeply.", _REEXPORT),
    Reason.OBJECT_BUDGET_EXCEEDED: Explanation(_P, "The document has more objects than allowed.", _LIMIT),
    Reason.PLACEMENT_BUDGET_EXCEEDED: Explanation(_P, "A page draws more pictures than allowed.", _LIMIT),
    Reason.CONTENT_BUDGET_EXCEEDED: Explanation(_P, "A page's drawing is larger than allowed.", _LIMIT),
    Reason.METADATA_TOO_LARGE: Explanation(_P, "The picture carries more metadata than allowed.", _LIMIT),
    Reason.TRAILING_DATA: Explanation(_P, "There is other data behind the end of the picture.", _REEXPORT),
    Reason.EXTERNAL_REFERENCE: Explanation(
        _P, "The picture is kept outside the document.", "Embed the picture in the document."
    ),
    Reason.KEY_NOT_UNDERSTOOD: Explanation(
        _P, "The place in the inbox is not collection/YYYY-MM/name.", "Move the file to collection/YYYY-MM/name."
    ),
    Reason.MONTH_OUT_OF_RANGE: Explanation(
        _P,
        "The month does not exist, lies before the first month or in the future.",
        "Move it to the right month; ASSET_PIPELINE_FIRST_MONTH in the environment says which is the first.",
    ),
    Reason.STORAGE_UNAVAILABLE: Explanation(_T, "A store or database did not answer.", "It is tried again by itself."),
    Reason.CONNECTION_RESET: Explanation(_T, "A connection was cut.", "It is tried again by itself."),
    Reason.PROVIDER_BUSY: Explanation(_T, "A service asked to wait.", "It is tried again by itself."),
    Reason.LEASE_CONFLICT: Explanation(_T, "Another worker holds the work.", "It is tried again by itself."),
    Reason.RECEIPT_CONFLICT: Explanation(
        _I, "A second result differs from the recorded one.", "Tell the operator: nothing was overwritten."
    ),
    Reason.RETRIES_EXHAUSTED: Explanation(_P, "Every retry was used up.", "Requeue it when the cause is gone."),
    Reason.WORKER_LOST: Explanation(
        _P,
        "The process that worked on it was lost every time.",
        "Look at the machine's memory and log, then requeue it.",
    ),
    Reason.RETENTION_EXPIRED: Explanation(
        _P, "The time for which the report may be kept was over before it was read.", "Drop the document in again."
    ),
    Reason.EXTRACTOR_CHANGED: Explanation(
        _P, "The extractor was replaced before the work was done.", "A new job of the new version does it."
    ),
    Reason.INTERNAL_ERROR: Explanation(_P, "The program met something it did not expect.", "Tell the developers."),
}

_OF_PICTURES: dict[Reason, Explanation] = {
    **{
        reason: Explanation(told.reason_class, told.meaning, _LIMIT_OF_PICTURE)
        for reason, told in EXPLANATIONS.items()
        if told.remedy == _LIMIT
    },
    Reason.SIGNATURE_MISMATCH: Explanation(
        _P, "The bytes of the picture are of another type than the document says.", _REEXPORT
    ),
}
"""Where a reason has other words for a picture within a document than for the document."""


def explain(reason: Reason, *, of_picture: bool = False) -> Explanation:
    """``reason`` in words, for a document or upload, or for a picture within a document."""
    return _OF_PICTURES.get(reason, EXPLANATIONS[reason]) if of_picture else EXPLANATIONS[reason]


def reason_class(reason: Reason) -> ReasonClass:
    """Class of ``reason``; total over the enumeration (a test holds that)."""
    return EXPLANATIONS[reason].reason_class


def is_transient(reason: Reason) -> bool:
    """Whether work that failed for ``reason`` may be tried again (REQUIREMENTS R4.3)."""
    return reason_class(reason) is ReasonClass.TRANSIENT


def asks_for_limit(reason: Reason) -> bool:
    """Whether a raised limit of the policy may end ``reason``: its remedy says so."""
    return EXPLANATIONS[reason].remedy == _LIMIT
