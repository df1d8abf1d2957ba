"""Whole months through Dagster: what is recorded, what a second run changes, how failures are told."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from PIL import Image

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.checks import MANIFESTS, PAGES, PAGES_READ, QUARANTINE, READ, failed_checks
from asset_pipeline.defs.instance import materialize_months, open_instance
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.defs.run_tags import trigger
from asset_pipeline.errors import IntegrityError, LedgerBehindError, StorageError, UsageError
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings, noisy_pdf

ASSETS = ("source_documents", "validated_images", "manifests")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Settings, dg.DagsterInstance]]:
    """Settings and Dagster's records, both on one kind of database."""
    if request.param == "postgres":
        request.getfixturevalue("dagster_database")
        settings = fresh_settings(tmp_path, ledger=request.getfixturevalue("postgres_url"))
    else:
        settings = fresh_settings(tmp_path)
    with open_instance(settings) as instance:
        yield settings, instance


def _latest(instance: dg.DagsterInstance, asset: str) -> dg.AssetMaterialization:
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[MONTH]), limit=1
    )
    materialization = records.records[0].asset_materialization
    assert materialization
    return materialization


def _figures(instance: dg.DagsterInstance, asset: str) -> dict[str, object]:
    return {name: value.value for name, value in _latest(instance, asset).metadata.items()}


def _versions(instance: dg.DagsterInstance) -> dict[str, str]:
    return {asset: _latest(instance, asset).tags["dagster/data_version"] for asset in ASSETS}


def _checks(instance: dg.DagsterInstance, run_id: str) -> dict[str, tuple[bool, str]]:
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    found = [record.event_log_entry.asset_check_evaluation for record in records]
    return {check.check_name: (check.passed, check.severity.value) for check in found}


def _drop_mixed_month(settings: Settings) -> None:
    drop_document(settings, "plain.pdf", [10, 20, 10])
    drop_document(settings, "broken.pdf", [30], broken_picture=True)
    drop_document(settings, "locked.pdf", [40], encrypted=True)


def test_a_month_is_materialized_with_figures_tables_and_checks(place: tuple[Settings, dg.DagsterInstance]) -> None:
    settings, instance = place
    _drop_mixed_month(settings)
    (result,) = materialize_months(settings, [MONTH], instance=instance)
    assert (result.month, result.success) == (MONTH, True)
    assert result.seconds > 0

    for asset in ASSETS:
        assert instance.get_materialized_partitions(dg.AssetKey(asset)) == {MONTH}
        figures = _figures(instance, asset)
        assert len(figures["policy_sha256"]) == 64
        assert "+policy-" in figures["extractor_version"]
        assert figures["documents_of_another_extractor"] == 0
        assert isinstance(_latest(instance, asset).metadata["archived_until"], dg.TimestampMetadataValue)
    came_in, found = _figures(instance, "source_documents"), _figures(instance, "validated_images")
    written = _figures(instance, "manifests")
    assert (came_in["documents"], came_in["documents_new"]) == (3, 3)
    assert (found["documents_read"], found["documents_refused"]) == (2, 1)
    assert (found["pages"], found["pictures_drawn"]) == (5, 5)
    assert (found["pictures_archived"], found["pictures_collapsed"], found["pictures_quarantined"]) == (3, 1, 1)
    assert found["decode_p50_ms"] <= found["decode_p95_ms"]
    assert (written["manifests"], written["manifests_written"]) == (3, 3)
    expected = {
        "every_page_accounted": (True, "ERROR"),
        "every_document_read": (False, "WARN"),
        "every_page_read": (True, "WARN"),
        "nothing_quarantined": (False, "WARN"),
        "manifest_matches_archive": (True, "ERROR"),
    }
    assert expected.items() <= _checks(instance, result.run_id).items()
    (held,) = _latest(instance, "validated_images").metadata["quarantined_pictures"].records
    assert held.data["document"] == "city/broken.pdf"
    assert (held.data["page"], held.data["picture"]) == (2, "page-002-image-001")
    assert held.data["what_happened"].endswith(".")


def test_a_month_shows_some_of_its_pictures_and_never_one_that_is_not_shown(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    _drop_mixed_month(settings)
    drop_document(settings, "a|b [c](d) *e*.pdf", [71])
    materialize_months(settings, [MONTH], instance=instance)
    sheet = str(_figures(instance, "validated_images")["contact_sheet"])
    images = re.findall(r"data:image/webp;base64,([A-Za-z0-9+/=]+)\)", sheet)
    assert len(images) == 4, "a repeat is shown once, a quarantined picture not at all"
    for image in images:
        with Image.open(io.BytesIO(base64.b64decode(image))) as opened:
            assert opened.format == "WEBP"
    assert len(sheet) < 200_000
    rows = sheet.splitlines()
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}, "three columns: a name cannot break the table"
    assert "city/plain\\.pdf, page 2" in sheet

    thumbnails = Path(settings.store_address("archive"), "galleries", MONTH, "thumbnails")
    lost, marked = sorted(thumbnails.iterdir())[:2]
    lost.unlink()
    marked.write_bytes(b"what the gallery has")
    materialize_months(settings, [MONTH], instance=instance)
    shown = re.findall(r"base64,([A-Za-z0-9+/=]+)\)", str(_figures(instance, "validated_images")["contact_sheet"]))
    assert len(shown) == 4, "one that the gallery has lost is made again"
    assert set(shown) - set(images) == {base64.b64encode(b"what the gallery has").decode()}, "the others are taken"


def test_the_contact_sheet_of_a_month_of_large_pictures_stays_small(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    place = Path(settings.store_address("inbox"), "city", MONTH, "noise.pdf")
    place.parent.mkdir(parents=True)
    noisy_pdf(place, 24)
    materialize_months(settings, [MONTH], instance=instance)
    sheet = str(_figures(instance, "validated_images")["contact_sheet"])
    assert 100_000 < len(sheet) < 200_000


def test_a_page_that_was_not_read_fails_a_check_and_is_in_the_tables(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    settings.policy_file.write_text("limits: {operators: 2}\n")
    drop_document(settings, "busy.pdf", [1, 2])
    (result,) = materialize_months(settings, [MONTH], instance=instance)
    checks = _checks(instance, result.run_id)
    assert checks["every_page_read"] == (False, "WARN")
    assert checks["every_page_accounted"] == (True, "ERROR")
    found = _latest(instance, "validated_images").metadata
    assert found["pages_not_read"].value == 2
    (row,) = found["document_table"].records
    assert (row.data["pages_not_read"], row.data["state"]) == (2, "succeeded")
    assert "larger than allowed" in row.data["what_happened"]
    records = instance.get_records_for_run(result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    told = [record.event_log_entry.asset_check_evaluation for record in records]
    (check,) = [check for check in told if check.check_name == "every_page_read"]
    assert [record.data["page"] for record in check.metadata["not_read"].records] == [1, 2]
    assert failed_checks(instance, result.run_id)[0].name == "every_page_read"


def test_a_run_is_found_by_its_month_its_collections_and_what_asked_for_it(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    drop_document(settings, "a.pdf", [1])
    drop_document(settings, "b.pdf", [2], collection="press desk")
    (result,) = materialize_months(settings, [MONTH], instance=instance)
    tags = instance.get_run_by_id(result.run_id).tags
    assert tags["asset_pipeline/month"] == MONTH
    assert tags["asset_pipeline/collections"] == "city, press desk"
    assert tags["asset_pipeline/trigger"] == "command line"
    asked = [{"dagster/sensor_name": "new_uploads"}, {"dagster/backfill": "x"}, {"dagster/partition": MONTH}]
    assert [trigger(tags) for tags in asked] == ["sensor", "backfill", "web page"]


def test_no_check_of_a_month_tells_numbers_that_would_be_plotted_with_those_of_others(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    _drop_mixed_month(settings)
    (result,) = materialize_months(settings, [MONTH], instance=instance)
    records = instance.get_records_for_run(result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    ours = [record.event_log_entry.asset_check_evaluation for record in records]
    ours = [check for check in ours if check.check_name in (PAGES, READ, PAGES_READ, QUARANTINE, MANIFESTS)]
    numbers = (dg.IntMetadataValue, dg.FloatMetadataValue)
    assert len(ours) == 5
    assert not [name for check in ours for name, value in check.metadata.items() if isinstance(value, numbers)]


def test_a_second_run_without_news_leaves_every_data_version_as_it_is(
    place: tuple[Settings, dg.DagsterInstance],
) -> None:
    settings, instance = place
    _drop_mixed_month(settings)
    materialize_months(settings, [MONTH], instance=instance)
    before = _versions(instance)
    materialize_months(settings, [MONTH], instance=instance)
    assert _versions(instance) == before
    assert _figures(instance, "source_documents")["documents_new"] == 0
    assert _figures(instance, "manifests")["manifests_written"] == 0


def test_a_new_document_changes_every_data_version(settings: Settings, instance: dg.DagsterInstance) -> None:
    drop_document(settings, "a.pdf", [1])
    materialize_months(settings, [MONTH], instance=instance)
    before = _versions(instance)
    drop_document(settings, "b.pdf", [2])
    materialize_months(settings, [MONTH], instance=instance)
    after = _versions(instance)
    assert [asset for asset in ASSETS if before[asset] == after[asset]] == []


def test_results_have_the_same_data_version_in_another_installation(tmp_path: Path) -> None:
    versions = []
    for number in (1, 2):
        settings = fresh_settings(tmp_path / str(number), install_key="5a" * 32)
        _ = [drop_document(settings, name, [1, 2]) for name in ("a.pdf", "b.pdf")]
        with open_instance(settings) as instance:
            materialize_months(settings, [MONTH], instance=instance)
            versions.append(_versions(instance))
    assert versions[0] == versions[1]


def test_a_month_without_documents_is_materialized_empty(settings: Settings, instance: dg.DagsterInstance) -> None:
    (result,) = materialize_months(settings, ["2026-04"], instance=instance)
    assert all(passed for passed, _ in _checks(instance, result.run_id).values())


def test_tables_name_no_document_where_the_policy_hides_names(settings: Settings, instance: dg.DagsterInstance) -> None:
    settings.policy_file.write_text("show_names: false\n")
    _drop_mixed_month(settings)
    drop_document(settings, "stray.pdf", [1], month="2026-13")
    (result,) = materialize_months(settings, [MONTH], instance=instance)
    said = "".join(map(str, instance.all_logs(result.run_id)))
    said += str(instance.get_run_by_id(result.run_id).tags)
    assert not [word for word in ("plain.pdf", "broken.pdf", "locked.pdf", "stray.pdf", "city") if word in said]


def test_uploads_in_a_wrong_place_are_listed_with_what_to_rename(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    from datetime import UTC, datetime

    from asset_pipeline.installation import open_installation
    from asset_pipeline.intake.inventory import take_inventory

    drop_document(settings, "stray.pdf", [1], month="2026-13")
    with open_installation(settings) as inst:
        take_inventory(inst, datetime.now(UTC))
    materialize_months(settings, [MONTH], instance=instance)
    (row,) = _latest(instance, "source_documents").metadata["not_taken"].records
    assert row.data["upload"] == "city/2026-13/stray.pdf"
    assert row.data["what_to_do"].startswith("Move it to the right month; ASSET_PIPELINE_FIRST_MONTH")


def test_a_lost_file_of_the_archive_fails_the_check_and_not_the_run(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    drop_document(settings, "a.pdf", [1])
    materialize_months(settings, [MONTH], instance=instance)
    lost = next(path for path in Path(settings.store_address("archive"), "objects").rglob("*") if path.is_file())
    lost.unlink()
    (result,) = materialize_months(settings, [MONTH], instance=instance)
    assert _checks(instance, result.run_id)["manifest_matches_archive"] == (False, "ERROR")


def test_a_page_that_does_not_add_up_keeps_the_month_from_being_materialized(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    from sqlalchemy import update

    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger.schema import pages

    drop_document(settings, "a.pdf", [1])
    materialize_months(settings, [MONTH], instance=instance)
    before = _latest(instance, "validated_images")
    with open_installation(settings) as inst, inst.ledger.begin() as tx:
        tx.execute(update(pages).values(archived=7))
    with pytest.raises(IntegrityError, match="0 of 1 pages add up"):
        materialize_months(settings, [MONTH], instance=instance)
    assert _latest(instance, "validated_images") == before
    run = instance.get_runs(limit=1)[0]
    assert _checks(instance, run.run_id)["every_page_accounted"] == (False, "ERROR")


def test_the_failure_of_a_run_is_the_error_that_a_person_can_act_on(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    Path(settings.store_address("inbox")).rmdir()
    with pytest.raises(StorageError, match="inbox"):
        materialize_months(settings, [MONTH], instance=instance)
    with pytest.raises(UsageError, match="engine"):
        _ = drop_document(settings, "a.pdf", [1])
        materialize_months(settings.model_copy(update={"engine": "magic"}), [MONTH], instance=instance)
    assert {run.status for run in instance.get_runs()} == {dg.DagsterRunStatus.FAILURE}


def test_the_daemon_tries_a_store_that_is_away_again_and_nothing_else(settings: Settings, tmp_path: Path) -> None:
    from asset_pipeline.defs.border import told_to_dagster
    from asset_pipeline.errors import ConfigurationError

    with pytest.raises(StorageError), told_to_dagster(Pipeline(settings)):
        raise StorageError("The archive is away.")
    for error in (ConfigurationError("Wrong."), LedgerBehindError("Behind."), KeyError("/secret/path")):
        with pytest.raises(dg.Failure) as caught, told_to_dagster(Pipeline(settings)):
            raise error
        assert not caught.value.allow_retries
        assert "secret" not in str(caught.value.description)
        assert caught.value.__suppress_context__


def test_frames_of_a_month_can_be_loaded_without_running_anything(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    _drop_mixed_month(settings)
    materialize_months(settings, [MONTH], instance=instance)
    defs = build_defs(pipeline=Pipeline(settings))
    frames = {asset: defs.load_asset_value(asset, instance=instance, partition_key=MONTH) for asset in ASSETS}
    assert sorted(frames["source_documents"]["name"]) == ["broken.pdf", "locked.pdf", "plain.pdf"]
    assert frames["validated_images"]["status"].value_counts().to_dict() == {
        "archived": 3,
        "collapsed": 1,
        "quarantined": 1,
    }
    assert sorted(frames["manifests"]["state"]) == ["failed_permanently", "succeeded", "succeeded"]
    for key in frames["manifests"]["key"]:
        assert Path(settings.store_address("archive"), key).is_file()
