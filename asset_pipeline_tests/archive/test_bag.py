"""A month handed to somebody else: it verifies alone, and not when anything in it was touched."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from asset_pipeline.archive.bag import Bagged, verify_bag, write_bag
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.archive.proof import prove_ledger
from asset_pipeline.archive.provenance import origins
from asset_pipeline.errors import UsageError
from asset_pipeline.evidence.findings import Fault
from asset_pipeline.evidence.keys import make_key
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger.events import rotate_key
from asset_pipeline.settings import load_settings
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.evidence.logs import MadeLog
from asset_pipeline_tests.small_documents import MONTH

NOW = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def archived(inst: Installation, submit: Callable) -> Installation:
    submit("a.pdf", [10, 20], broken_picture=True)
    submit("locked.pdf", [10], encrypted=True)
    work_month(inst, MONTH)
    publish_manifests(inst, MONTH, NOW)
    return inst


@pytest.fixture
def bag(archived: Installation, tmp_path: Path) -> Path:
    target = tmp_path / "bag"
    told = write_bag(archived, MONTH, target, pictures=True)
    assert told == Bagged(events=told.events, manifests=2, pictures=2)
    return target


def faults(folder: Path, inst: Installation) -> set[Fault]:
    return {found.fault for found in verify_bag(folder, inst.trust()).findings}


def test_a_bag_verifies_alone_and_bagit_agrees(bag: Path, archived: Installation) -> None:
    verdict = verify_bag(bag, archived.trust())
    assert (verdict.findings, verdict.unanchored, verdict.checkpoints) == ([], 0, 1)
    assert verify_bag(bag).findings == []
    answer = subprocess.run([sys.executable, "-m", "bagit", "--validate", bag], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    with (bag / "data" / "events.csv").open() as stream:
        events = list(csv.DictReader(stream))
    assert {row["premis_event_type"] for row in events} >= {"ingestion", "creation", "validation", "accession"}
    assert all(row["premis_event_type"] for row in events)
    with (bag / "data" / "pictures.csv").open() as stream:
        pictures = list(csv.DictReader(stream))
    assert [row["status"] for row in pictures] == ["archived", "archived", "quarantined"]


@pytest.mark.parametrize(
    "place", ["data/log/events.jsonl", "data/events.csv", "data/manifests/*.json", "data/objects/*/*", "bag-info.txt"]
)
def test_a_flipped_bit_is_found(bag: Path, archived: Installation, place: str) -> None:
    path = next(iter(sorted(bag.glob(place))))
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    assert Fault.ALTERED_FILE in faults(bag, archived)


def test_missing_and_added_files_are_found(bag: Path, archived: Installation, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(bag, copy)
    next(iter((bag / "data" / "manifests").glob("*.json"))).unlink()
    assert faults(bag, archived) == {Fault.ALTERED_FILE}
    (copy / "data" / "manifests" / "more.json").write_text("{}")
    assert faults(copy, archived) == {Fault.ALTERED_FILE}


def test_a_bag_that_was_made_again_around_other_files_is_found(bag: Path, archived: Installation) -> None:
    """BagIt alone would be satisfied: its manifests can be written by anybody."""
    path = next(iter(sorted((bag / "data" / "manifests").glob("*.json"))))
    path.write_bytes(path.read_bytes().replace(b'"sig":"', b'"sig":"A', 1))
    log = bag / "data" / "log" / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[1:]))
    data = bag / "data"
    fresh = bag.with_name("fresh")
    shutil.move(data, fresh)
    import bagit

    bagit.make_bag(str(fresh), checksums=["sha256"])
    found = verify_bag(fresh, archived.trust()).findings
    assert {row.fault for row in found} == {Fault.GAP, Fault.ALTERED_FILE}


def test_a_bag_of_another_installation_is_not_trusted(bag: Path) -> None:
    stranger = MadeLog()
    found = verify_bag(bag, stranger.trust()).findings
    assert {row.fault for row in found} == {Fault.UNKNOWN_KEY, Fault.BAD_CHECKPOINT, Fault.ALTERED_FILE}


def test_what_is_no_bag_is_refused_and_no_folder_is_written_over(
    bag: Path, archived: Installation, tmp_path: Path
) -> None:
    for wrong in (tmp_path / "nowhere", bag / "data"):
        with pytest.raises(UsageError):
            verify_bag(wrong)
    with pytest.raises(UsageError, match="exists"):
        write_bag(archived, MONTH, bag)
    with pytest.raises(UsageError, match="Nothing"):
        write_bag(archived, "2026-01", tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


def test_after_all_files_are_gone_the_log_still_proves_what_was_accepted_and_published(archived: Installation) -> None:
    for name in ("sources", "archive", "quarantine", "inbox"):
        shutil.rmtree(archived.settings.store_address(name), ignore_errors=True)
    Path(archived.settings.store_address("archive")).mkdir()
    archived.checkpoints.seal()
    proof = prove_ledger(archived, archived.trust())
    assert (proof.verdict.findings, proof.verdict.unanchored) == ([], 0)


def test_the_source_of_a_picture_is_told_by_its_name_and_by_its_digest(archived: Installation) -> None:
    with archived.ledger.read() as conn:
        (origin,) = origins(conn, "page-001-image-001", None, show_names=True)
        assert (
            origins(conn, origin.original, origin.report_id, show_names=True)[0].source_sha256 == origin.source_sha256
        )
        assert origins(conn, "page-001-image-001", "another", show_names=True) == []
        (hidden,) = origins(conn, "page-001-image-001", None, show_names=False)
    assert (origin.document, origin.page, origin.month, origin.manifest_edition) == ("a.pdf", 1, MONTH, 1)
    assert origin.event_seq is not None
    assert hidden.document is None


def test_a_lost_manifest_comes_back_as_it_was_although_the_key_was_replaced(archived: Installation) -> None:
    path = sorted(Path(archived.settings.store_address("archive")).glob("manifests/*/*.json"))[0]
    before = path.read_bytes()
    with archived.ledger.begin() as tx:
        rotate_key(tx, make_key(archived.settings.keys_folder), NOW)
    path.unlink()
    publish_manifests(archived, MONTH, NOW)
    assert path.read_bytes() == before
    assert prove_ledger(archived, archived.trust()).verdict.findings == []


def test_every_run_ends_with_a_checkpoint_in_the_archive_and_in_the_second_store(settings, tmp_path: Path) -> None:
    from asset_pipeline.intake.admission import admit_month
    from asset_pipeline_tests.small_documents import drop_document

    drop_document(settings, "a.pdf", [10])
    both = settings.model_copy(update={"checkpoints": str(tmp_path / "second")})
    with open_installation(both) as inst:
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
    with open_installation(both) as inst:
        proof = prove_ledger(inst, inst.trust())
    assert (proof.verdict.unanchored, proof.verdict.findings, proof.away) == (0, [], [])
    assert proof.notes["archive"] == proof.notes["second store"] == proof.notes["ledger"] >= 1


def test_a_bucket_with_object_lock_keeps_its_checkpoints(tmp_path: Path, s3_server, s3_settings) -> None:
    from asset_pipeline_tests.servers import s3_client

    client = s3_client(s3_server)
    locked = f"{s3_settings.name}-locked"
    client.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)
    settings = load_settings(
        home=tmp_path / "home", s3_endpoint=s3_settings.endpoint, checkpoints=f"s3://{locked}/log", settle_seconds=0
    )
    (tmp_path / "home" / "inbox").mkdir(parents=True)
    with open_installation(settings) as inst:
        with inst.ledger.begin() as tx:
            rotate_key(tx, make_key(settings.keys_folder), NOW)
        inst.checkpoints.seal()
        proof = prove_ledger(inst, inst.trust())
    assert proof.notes["second store"] == 1
    (entry,) = client.list_objects_v2(Bucket=locked)["Contents"]
    kept = client.head_object(Bucket=locked, Key=entry["Key"])
    assert kept["ObjectLockMode"] == "COMPLIANCE"
    assert (kept["ObjectLockRetainUntilDate"] - datetime.now(UTC)).days >= 3648
    with pytest.raises(client.exceptions.ClientError):
        client.delete_object(Bucket=locked, Key=entry["Key"], VersionId=kept["VersionId"])
