"""The tables of the history: their columns, their order, their limits, and that a long log takes no memory."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert

from asset_pipeline import history
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.errors import ConfigurationError
from asset_pipeline.history import rows as history_rows
from asset_pipeline.history.columns import TABLES
from asset_pipeline.history.files import write_csv, write_json, write_parquet
from asset_pipeline.history.frames import frame
from asset_pipeline.history.rows import ROWS
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import units
from asset_pipeline.ledger.schema import attempts
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import MONTH, NOW, claim_next, complete, finish, page, placement, publish, start


def _retried_then_published(inst: Installation) -> str:
    """A job of one unit that was retried once, and its manifest."""
    job_id = start(inst.ledger, "tides.pdf", pages=1)
    first = claim_next(inst.ledger)
    with inst.ledger.begin() as tx:
        units.retry_unit(tx, first, Reason.STORAGE_UNAVAILABLE, NOW, NOW, fetch_ms=12.5)
    second = claim_next(inst.ledger, NOW + timedelta(seconds=5))
    publish(inst.ledger, second, page(1, placement(1), placement(1, 2, picture=None)), now=NOW + timedelta(seconds=6))
    complete(inst.ledger, job_id, NOW + timedelta(seconds=6))
    publish_manifests(inst, MONTH, NOW + timedelta(seconds=7))
    return job_id


@pytest.mark.parametrize("table", [name for name in TABLES if name != "materializations"])
def test_columns_and_types_are_the_same_whether_there_are_rows_or_not(inst: Installation, table: str) -> None:
    empty = getattr(history, table)(inst)
    _retried_then_published(inst)
    filled = getattr(history, table)(inst)
    assert list(empty.columns) == list(filled.columns) == [column.name for column in TABLES[table]]
    assert list(empty.dtypes) == list(filled.dtypes)
    assert (len(empty), len(filled) > 0) == (0, True)
    times = [column.name for column in TABLES[table] if column.kind == "time"]
    assert all(str(filled[name].dtype) == "datetime64[us, UTC]" for name in times)


def test_attempts_say_how_long_each_stage_took_and_how_it_ended(inst: Installation) -> None:
    job_id = _retried_then_published(inst)
    latest, first = history.attempts(inst).to_dict("records")
    assert (latest["outcome"], first["outcome"], first["reason"]) == ("published", "retried", "storage_unavailable")
    assert (latest["fetch_ms"], latest["decode_ms"], latest["publish_ms"]) == (1, 2, 3)
    assert (first["fetch_ms"], pd.isna(first["decode_ms"])) == (12.5, True)
    assert (latest["queued_ms"], latest["peak_rss_bytes"], latest["bytes_written"]) == (5000, 50_000_000, 500)
    assert (latest["month"], latest["job_id"], latest["first_page"], latest["last_page"]) == (MONTH, job_id, 1, 1)


def test_retries_say_why_and_what_came_of_it(inst: Installation) -> None:
    _retried_then_published(inst)
    (retry,) = history.retries(inst).to_dict("records")
    assert (retry["reason"], retry["fence"], retry["next_outcome"]) == ("storage_unavailable", 1, "published")
    assert retry["waited_ms"] == 5000


def test_pictures_are_the_placements_of_current_documents(inst: Installation) -> None:
    _retried_then_published(inst)
    shown, held = history.pictures(inst).to_dict("records")
    assert (shown["name"], shown["status"], shown["bytes"]) == ("page-001-image-001", "archived", 500)
    assert (shown["document"], shown["caption"], shown["ppi"]) == ("tides.pdf", "Common tern", 36)
    assert (held["status"], held["reason"], pd.isna(held["picture"])) == ("quarantined", "truncated_stream", True)


def test_names_and_texts_are_missing_where_the_policy_hides_them(inst: Installation) -> None:
    _retried_then_published(inst)
    object.__setattr__(inst, "policy", inst.policy.model_copy(update={"show_names": False}))
    for table in ("pictures", "attempts"):
        text = getattr(history, table)(inst).to_csv()
        assert not any(hidden in text for hidden in ("tides", "field-notes", "Common tern"))


def test_events_come_newest_first_with_the_payload_as_json(inst: Installation) -> None:
    _retried_then_published(inst)
    events = history.events(inst)
    assert list(events["seq"]) == list(range(len(events), 0, -1))
    assert isinstance(json.loads(events["payload"][0]), dict)


def test_month_since_and_limit_narrow_what_is_shown(inst: Installation) -> None:
    _retried_then_published(inst)
    assert len(history.attempts(inst, month=MONTH)) == 2
    assert len(history.attempts(inst, month="2026-08")) == 0
    assert list(history.attempts(inst, since=NOW + timedelta(seconds=1))["fence"]) == [2]
    assert list(history.attempts(inst, limit=1)["fence"]) == [2]
    assert len(history.pictures(inst, month="2026-08")) == 0
    assert len(history.pictures(inst, since=NOW + timedelta(days=1))) == 0
    assert len(history.events(inst, limit=3)) == 3


def test_pages_are_put_together_without_loss_or_repeat(inst: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        finish(inst.ledger, f"{number}.pdf", page(1, placement(1), placement(1, 2)), page(2, placement(2)))
    whole = {table: getattr(history, table)(inst) for table in ROWS}
    monkeypatch.setattr(history_rows, "PAGE", 2)
    for table, expected in whole.items():
        pd.testing.assert_frame_equal(getattr(history, table)(inst), expected)
        assert not expected.duplicated().any()


def _many_attempts(inst: Installation, count: int) -> None:
    job_id = start(inst.ledger, "long.pdf", pages=1)
    with inst.ledger.begin() as tx:
        for at in range(0, count, 5_000):
            tx.execute(
                insert(attempts),
                [
                    {
                        "attempt_id": f"{job_id}-{number}",
                        "unit_id": f"{job_id}-00000",
                        "job_id": job_id,
                        "fence": 10 + number,
                        "worker": "host:1:1",
                        # Many at the same moment, as after a restart.
                        "started_at": NOW + timedelta(seconds=number // 7),
                        "ended_at": NOW + timedelta(seconds=number // 7),
                        "outcome": "retried",
                        "reason": "storage_unavailable",
                    }
                    for number in range(at, at + 5_000)
                ],
            )


def test_memory_does_not_grow_with_the_log(inst: Installation) -> None:
    def peak(limit: int) -> int:
        tracemalloc.start()
        with Path("/dev/null").open("w") as nowhere:
            write_csv(TABLES["attempts"], ROWS["attempts"](inst, limit=limit), nowhere)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    _many_attempts(inst, 20_000)
    peak(100)
    assert peak(20_000) < 1.5 * peak(4_000)


def test_every_form_of_a_file_says_the_same(inst: Installation, tmp_path) -> None:
    _retried_then_published(inst)
    for table, columns in TABLES.items():
        if table == "materializations":
            continue
        names = [column.name for column in columns]
        as_csv, as_json = io.StringIO(), io.StringIO()
        write_csv(columns, ROWS[table](inst), as_csv)
        write_json(columns, ROWS[table](inst), as_json)
        count = write_parquet(columns, ROWS[table](inst), tmp_path / f"{table}.parquet")
        of_csv = list(csv.DictReader(io.StringIO(as_csv.getvalue())))
        of_json = json.loads(as_json.getvalue())
        of_parquet = pq.read_table(tmp_path / f"{table}.parquet")
        assert len(of_csv) == len(of_json) == of_parquet.num_rows == count > 0
        assert list(of_csv[0]) == list(of_json[0]) == of_parquet.column_names == names
        for text, value in zip(of_csv, of_json, strict=True):
            assert text == {name: "" if value[name] is None else str(value[name]) for name in names}
        pd.testing.assert_frame_equal(frame(table, of_parquet.to_pylist()), frame(table, ROWS[table](inst)))


def test_times_in_text_are_iso_in_utc(inst: Installation) -> None:
    _retried_then_published(inst)
    target = io.StringIO()
    write_json(TABLES["events"], ROWS["events"](inst), target)
    assert all(row["at"].endswith("Z") and "T" in row["at"] for row in json.loads(target.getvalue()))


def test_a_parquet_file_is_there_whole_or_not_at_all(inst: Installation, tmp_path) -> None:
    def breaks():
        yield from ROWS["events"](inst)
        raise ZeroDivisionError

    _retried_then_published(inst)
    with pytest.raises(ZeroDivisionError):
        write_parquet(TABLES["events"], breaks(), tmp_path / "events.parquet")
    assert list(tmp_path.glob("*events*")) == []
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_parquet(TABLES["events"], [], tmp_path / "nowhere" / "events.parquet")


def test_a_parquet_file_says_what_its_columns_mean(inst: Installation, tmp_path) -> None:
    write_parquet(TABLES["attempts"], [], tmp_path / "attempts.parquet")
    schema = pq.read_schema(tmp_path / "attempts.parquet")
    assert b"milliseconds" in schema.field("decode_ms").metadata[b"meaning"]
