"""`fsck` finds every bit that turned and everything that is gone, and repair gives the same bytes or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select, update

from asset_pipeline.archive.fsck import Fault, Proof, prove
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import audit_events, jobs, objects, pages, placements
from asset_pipeline.work.month import work_month
from asset_pipeline.work.repair import OTHER_BYTES, OTHER_EXTRACTOR, repair
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings


@pytest.fixture
def archive(inst: Installation, submit: Callable) -> Path:
    """Two editions of one report, a shared picture, a refused document."""
    submit("a.pdf", [10, 20, 10, 40, 50])
    submit("locked.pdf", [10], encrypted=True)
    work_month(inst, MONTH)
    publish_manifests(inst, MONTH, datetime.now(UTC))
    submit("a.pdf", [10, 60])
    work_month(inst, MONTH)
    publish_manifests(inst, MONTH, datetime.now(UTC))
    return Path(inst.settings.store_address("archive"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def faults(proof: Proof) -> dict[str, str]:
    return {found.subject: found.fault.value for found in proof.findings}


def flip(path: Path) -> None:
    """One bit."""
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(body)


def payloads(inst: Installation, kind: str) -> list[dict]:
    with inst.ledger.read() as conn:
        found = conn.execute(select(audit_events.c.payload).where(audit_events.c.type == kind)).scalars()
        return [json.loads(body) for body in found]


def test_an_untouched_archive_is_sound_and_everything_was_read(inst: Installation, archive: Path) -> None:
    proof = prove(inst)
    assert (proof.findings, proof.sound, proof.unnamed) == ([], True, [])
    assert (proof.jobs, proof.pages, proof.pictures, proof.sources, proof.manifests) == (3, 7, 5, 3, 3)
    stored = contents(archive) | contents(Path(inst.settings.store_address("sources")))
    assert proof.bytes == sum(len(body) for name, body in stored.items() if name.startswith("objects/"))


def test_a_flipped_bit_a_cut_and_a_lost_file_are_found_and_repaired_byte_for_byte(
    inst: Installation, archive: Path
) -> None:
    before = contents(archive)
    flipped, cut, lost = sorted(archive.glob("objects/*/*"))[:3]
    flip(flipped)
    cut.write_bytes(cut.read_bytes()[:-1])
    lost.unlink()
    proof = prove(inst)
    expected = {flipped.name: "picture_damaged", cut.name: "picture_damaged", lost.name: "picture_missing"}
    assert faults(proof) == expected
    repaired = repair(inst, proof)
    assert repaired.sound
    assert [found.repaired for found in repaired.findings] == [True] * 3
    assert contents(archive) == before
    assert prove(inst).findings == []
    assert {row["sha256"] for row in payloads(inst, "object_repaired")} == set(expected)


def test_a_system_without_a_cage_repairs_as_well(
    inst: Installation, archive: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sorted(archive.glob("objects/*/*"))[0].unlink()
    without = replace(inst, settings=inst.settings.model_copy(update={"sandbox": False}))
    assert repair(without, prove(inst)).sound
    assert "documents are read without a cage" in caplog.text


def test_manifests_and_their_earlier_editions_are_rebuilt_byte_for_byte(inst: Installation, archive: Path) -> None:
    before = contents(archive)
    newest = next(path for path in archive.glob("manifests/*/*.json"))
    (earlier,) = archive.glob("manifests/*/editions/*.json")
    flip(newest)
    earlier.unlink()
    proof = prove(inst)
    assert sorted(found.fault for found in proof.findings) == ["manifest_damaged", "manifest_missing"]
    assert repair(inst, proof).sound
    assert contents(archive) == before
    assert len(payloads(inst, "manifest_restored")) == 2


def test_a_picture_that_is_recorded_as_deleted_although_a_report_names_it_is_put_again(
    inst: Installation, archive: Path
) -> None:
    before = contents(archive)
    lost = next(archive.glob("objects/*/*"))
    lost.unlink()
    with inst.ledger.begin() as tx:
        tx.execute(update(objects).where(objects.c.sha256 == lost.name).values(state="deleted"))
    proof = prove(inst)
    assert faults(proof) == {lost.name: "picture_deleted"}
    assert repair(inst, proof).sound
    assert (contents(archive), prove(inst).findings) == (before, [])


def test_a_damaged_source_is_found_and_what_needs_it_stays_a_finding(inst: Installation, archive: Path) -> None:
    for source in Path(inst.settings.store_address("sources")).glob("objects/*/*"):
        flip(source)
    lost = next(archive.glob("objects/*/*"))
    lost.unlink()
    repaired = repair(inst, prove(inst))
    assert not repaired.sound
    assert sorted(found.fault for found in repaired.findings) == ["picture_missing"] + ["source_damaged"] * 3
    assert all(found.remedy for found in repaired.findings)
    assert not lost.exists()


def test_other_bytes_than_before_are_an_incident_and_nothing_is_put(inst: Installation, archive: Path) -> None:
    """As when an extractor is not the one that its version says: the recorded digest cannot be made again."""
    with inst.ledger.begin() as tx:
        first = tx.execute(select(objects)).mappings().first()
        invented = "ab" * 32
        tx.execute(objects.insert().values(**dict(first) | {"sha256": invented}))
        tx.execute(update(placements).where(placements.c.picture == first["sha256"]).values(picture=invented))
    proof = prove(inst)
    assert faults(proof)[invented] == "picture_missing"
    repaired = {found.subject: found for found in repair(inst, proof).findings}
    assert (repaired[invented].repaired, repaired[invented].detail) == (False, OTHER_BYTES)
    assert not (archive / "objects" / "ab" / invented).exists()
    conflicts = payloads(inst, "repair_conflict")
    assert {row["recorded"] for told in conflicts for row in told["assets"]} == {invented}


def test_a_picture_of_an_extractor_that_is_gone_is_not_made_by_another(inst: Installation, archive: Path) -> None:
    with inst.ledger.begin() as tx:
        tx.execute(update(jobs).values(extractor_version="pdf/0+policy-0"))
    next(archive.glob("objects/*/*")).unlink()
    found = next(row for row in repair(inst, prove(inst)).findings if row.fault is Fault.PICTURE_MISSING)
    assert (found.repaired, found.detail) == (False, OTHER_EXTRACTOR)


def test_pages_that_do_not_add_up_and_receipts_that_are_contradicted_are_found(
    inst: Installation, archive: Path
) -> None:
    with inst.ledger.begin() as tx:
        job_id = tx.execute(select(pages.c.job_id).limit(1)).scalar_one()
        tx.execute(update(pages).where(pages.c.job_id == job_id, pages.c.page == 1).values(archived=7))
        second = placements.c.job_id == job_id, placements.c.page == 2
        tx.execute(update(placements).where(*second).values(display=None))
    proof = prove(inst)
    told = {(found.fault.value, found.subject) for found in proof.findings if found.job_id == job_id}
    assert {("pages_unaccounted", "1"), ("receipts_differ", "2")} <= told


def test_a_report_that_was_settled_without_a_manifest_is_found(inst: Installation, submit: Callable) -> None:
    submit("late.pdf", [30])
    assert prove(inst).sound, "it is still being worked"
    work_month(inst, MONTH)
    (found,) = prove(inst).findings
    assert (found.fault, found.remedy.split(";")[0]) == (Fault.MANIFEST_OUTDATED, "Run the month")


def test_files_that_nothing_names_are_listed_and_no_fault(inst: Installation, archive: Path) -> None:
    stray = archive / "objects" / "cd" / ("cd" * 32)
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("left by a crash")
    proof = prove(inst)
    assert proof.sound
    assert [(row.sha256, row.bytes) for row in proof.unnamed] == [("cd" * 32, 15)]


def test_one_month_can_be_proved_alone(inst: Installation, submit: Callable, archive: Path) -> None:
    drop_document(inst.settings, "b.pdf", [77], month="2026-04")
    admit_month(inst, "2026-04", lambda: datetime.now(UTC), wait=True)
    work_month(inst, "2026-04")
    publish_manifests(inst, "2026-04", datetime.now(UTC))
    before = set(archive.glob("objects/*/*"))
    only_here = prove(inst, ["2026-04"])
    assert (only_here.months, only_here.pages, only_here.pictures) == ({"2026-04"}, 1, 1)
    for path in before:
        flip(path)
    assert len(prove(inst, ["2026-04"]).findings) == 1
    assert {found.month for found in prove(inst).findings} == {"2026-04", MONTH}


@pytest.fixture
def elsewhere(tmp_path: Path, postgres_ledger_url: str, s3_settings) -> Iterator[Installation]:
    stores = {name: address for name, address in s3_settings.settings().items() if name != "inbox"}
    with open_installation(fresh_settings(tmp_path / "other", ledger=postgres_ledger_url, **stores)) as opened:
        yield opened


def test_the_same_is_found_and_repaired_on_postgres_and_s3(elsewhere: Installation) -> None:
    drop_document(elsewhere.settings, "a.pdf", [10, 20])
    admit_month(elsewhere, MONTH, lambda: datetime.now(UTC), wait=True)
    work_month(elsewhere, MONTH)
    publish_manifests(elsewhere, MONTH, datetime.now(UTC))
    assert prove(elsewhere).findings == []
    first, second = (entry.key for entry in elsewhere.archive.list("objects/"))
    elsewhere.archive.delete(first)
    elsewhere.archive.put_current(second, b"other bytes")
    (manifest,) = (entry.key for entry in elsewhere.archive.list("manifests/"))
    elsewhere.archive.put_current(manifest, b"{}")
    proof = prove(elsewhere)
    assert sorted(found.fault for found in proof.findings) == ["manifest_damaged", "picture_damaged", "picture_missing"]
    assert repair(elsewhere, proof).sound
    assert prove(elsewhere).findings == []
