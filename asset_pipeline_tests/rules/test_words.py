"""The words that other people rely on: the public names and the reasons."""

from __future__ import annotations

import asset_pipeline
from asset_pipeline.reasons import EXPLANATIONS, Reason, ReasonClass, explain


def test_the_public_api_is_extract() -> None:
    assert asset_pipeline.__all__ == ["extract"]
    assert callable(asset_pipeline.extract)


def test_a_picture_is_not_told_to_become_a_pdf() -> None:
    told = explain(Reason.SIGNATURE_MISMATCH, of_picture=True)
    assert "PDF" in explain(Reason.SIGNATURE_MISMATCH).remedy
    assert "picture" in told.meaning and "PDF" not in told.remedy
    assert all(explain(reason, of_picture=True).reason_class is EXPLANATIONS[reason].reason_class for reason in Reason)


def test_every_reason_says_what_happened_and_what_to_do() -> None:
    assert set(EXPLANATIONS) == set(Reason)
    assert all(entry.meaning.endswith(".") and entry.remedy.endswith(".") for entry in EXPLANATIONS.values())


def test_only_what_may_be_tried_again_is_transient() -> None:
    transient = {reason for reason, entry in EXPLANATIONS.items() if entry.reason_class is ReasonClass.TRANSIENT}
    assert transient == {
        Reason.DECODER_CRASHED,
        Reason.DEADLINE_EXCEEDED,
        Reason.MEMORY_EXCEEDED,
        Reason.STORAGE_UNAVAILABLE,
        Reason.CONNECTION_RESET,
        Reason.PROVIDER_BUSY,
        Reason.LEASE_CONFLICT,
    }
