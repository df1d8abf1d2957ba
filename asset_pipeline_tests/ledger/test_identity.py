from __future__ import annotations

import base64
import hmac
import re

from asset_pipeline.ledger.identity import derived_id, job_id_of, job_key, new_id, report_id

SHAPE = re.compile(r"[a-z2-7]{26}")


def test_every_id_is_26_lower_case_base32_characters() -> None:
    made = [new_id(), derived_id("a"), report_id(b"k", "c", "2026-09", "n.pdf"), job_id_of("extract:x")]
    assert all(SHAPE.fullmatch(one) for one in made)


def test_random_ids_do_not_repeat() -> None:
    assert len({new_id() for _ in range(1000)}) == 1000


def test_derived_id_tells_differently_divided_parts_apart() -> None:
    assert derived_id("ab", "c") != derived_id("a", "bc") != derived_id("abc")
    assert derived_id("ab", "c") == derived_id("ab", "c")


def test_report_id_is_stable_and_depends_on_key_collection_month_and_name() -> None:
    one = report_id(b"key", "field-notes", "2026-09", "tides.pdf")
    digest = hmac.digest(b"key", b"field-notes/2026-09/tides.pdf", "sha256")
    assert one == base64.b32encode(digest).decode()[:26].lower()
    others = {
        report_id(b"other", "field-notes", "2026-09", "tides.pdf"),
        report_id(b"key", "press-desk", "2026-09", "tides.pdf"),
        report_id(b"key", "field-notes", "2026-10", "tides.pdf"),
        report_id(b"key", "field-notes", "2026-09", "Tides.pdf"),
    }
    assert len(others | {one}) == 5


def test_report_id_can_be_made_of_a_name_that_is_not_valid_text() -> None:
    assert SHAPE.fullmatch(report_id(b"key", "field-notes", "2026-09", "t\udce4tig.pdf"))


def test_job_key_names_report_source_and_extractor() -> None:
    assert job_key("r", "s", "v") == "extract:r:s:v"
