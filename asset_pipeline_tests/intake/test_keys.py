"""Which places in the inbox make sense, and what is said about the others."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from asset_pipeline.errors import ConfigurationError, Refusal
from asset_pipeline.intake.keys import InboxKey, Months, is_ignored, open_months, parse_key, recordable
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings

MONTHS = Months("2024-01", "2026-03")


@pytest.mark.parametrize("name", ["Report March.pdf", "rapport_été.PDF", "no extension", "a%2F..%2Fb.pdf", "报告.pdf"])
def test_a_key_is_collection_month_and_name(name):
    assert parse_key(f"Team Nord/2026-03/{name}", MONTHS) == InboxKey("Team Nord", "2026-03", name)


def test_composed_and_decomposed_names_stay_as_they_are_written():
    composed, decomposed = "team/2026-01/\u00e9.pdf", "team/2026-01/e\u0301.pdf"
    assert parse_key(composed, MONTHS).name == "\u00e9.pdf"
    assert parse_key(decomposed, MONTHS).name == "e\u0301.pdf"


@pytest.mark.parametrize(
    "key",
    [
        *("report.pdf", "team/report.pdf", "team/2026-01/sub/report.pdf", "2026-01/report.pdf"),
        *("team/2026-1/report.pdf", "team/26-01/report.pdf", "team/2026_01/report.pdf", "team/2026-01-01/report.pdf"),
        *("team/\u0662\u0660\u0662\u0666-01/report.pdf", "team/2026-01 /report.pdf", "team/2026-01\n/report.pdf"),
        *("/2026-01/report.pdf", "team/2026-01/", "team//report.pdf", "", "//", "team/2026-01/.."),
        *(
            "team/2026-01/a\0.pdf",
            "team/2026-01/a\x1b[31m.pdf",
            "team/2026-01/\udcff.pdf",
            f"team/2026-01/{'a' * 1100}",
        ),
    ],
)
def test_a_key_that_makes_no_sense_is_refused_and_can_still_be_recorded(key):
    with pytest.raises(Refusal) as caught:
        parse_key(key, MONTHS)
    assert caught.value.reason is Reason.KEY_NOT_UNDERSTOOD
    assert len(recordable(key).encode()) <= 1024
    assert "\0" not in recordable(key)


@pytest.mark.parametrize("month", ["2026-13", "2026-00", "2023-12", "2026-04", "9999-01"])
def test_a_month_that_does_not_exist_or_is_not_open_is_out_of_range(month):
    with pytest.raises(Refusal) as caught:
        parse_key(f"team/{month}/report.pdf", MONTHS)
    assert caught.value.reason is Reason.MONTH_OUT_OF_RANGE


def test_the_current_month_begins_in_the_time_zone_of_the_settings():
    last_hour_of_march = datetime(2026, 3, 31, 23, 30, tzinfo=UTC)
    assert open_months(Settings(timezone="UTC"), last_hour_of_march).last == "2026-03"
    assert open_months(Settings(timezone="Europe/Berlin"), last_hour_of_march).last == "2026-04"
    assert open_months(Settings(timezone="America/New_York"), datetime(2026, 4, 1, 1, tzinfo=UTC)).last == "2026-03"


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc/passwd", "/etc/passwd"])
def test_an_unknown_time_zone_is_a_configuration_error(zone):
    with pytest.raises(ConfigurationError, match="ASSET_PIPELINE_TIMEZONE"):
        open_months(Settings(timezone=zone), datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "key",
    [
        *("team/.DS_Store", "team/2026-01/~$report.docx", "team/2026-01/report.pdf.part", "x/2026-01/a.TMP"),
        *("team/2026-01/@eaDir/report.pdf/SYNOFILE_THUMB_M.png", "Thumbs.db", "team/2026-01/._report.pdf"),
    ],
)
def test_litter_is_ignored(key):
    assert is_ignored(key)


@pytest.mark.parametrize(
    "key", ["team/2026-01/report.pdf", "team/2026-01/part.pdf", "team/2026-01/.hidden.pdf", "a.tmp/x"]
)
def test_what_could_be_a_document_is_not_ignored(key):
    assert not is_ignored(key)
