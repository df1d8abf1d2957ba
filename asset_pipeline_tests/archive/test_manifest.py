"""The manifest of a report: what it says, that it does not change by itself, and what its editions keep."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
import rfc8785
from sqlalchemy import func, select, text, update

from asset_pipeline.archive.audit import compare_month
from asset_pipeline.archive.envelope import open_manifest
from asset_pipeline.archive.manifest import PublishedManifest, publish_manifests
from asset_pipeline.archive.schema import check_manifest, manifest_schema
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import audit_events, jobs, manifests
from asset_pipeline.model import Kind, Page, Picture, Placement, Status
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings

NOW = datetime(2026, 7, 1, tzinfo=UTC)


def archive_folder(inst: Installation) -> Path:
    return Path(inst.settings.store_address("archive"))


def read(inst: Installation, manifest: PublishedManifest) -> dict:
    return open_manifest((archive_folder(inst) / manifest.key).read_bytes()).body


def publish(inst: Installation, now: datetime = NOW) -> list[PublishedManifest]:
    work_month(inst, MONTH)
    return publish_manifests(inst, MONTH, now)


def test_a_manifest_satisfies_the_published_schema_and_is_canonical(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10, 20, 10])
    (manifest,) = publish(inst)
    body = (archive_folder(inst) / manifest.key).read_bytes()
    stored = open_manifest(body)
    jsonschema.validate(stored.body, manifest_schema(), cls=jsonschema.Draft202012Validator)
    assert rfc8785.dumps(json.loads(body)) == body
    assert rfc8785.dumps(stored.body) == stored.envelope.payload
    assert stored.is_signed_under(inst.trust())
    assert hashlib.sha256(body).hexdigest() == manifest.digest
    content = stored.body["content"]
    assert hashlib.sha256(rfc8785.dumps(content)).hexdigest() == manifest.content_digest
    assert [(page["archived"], page["collapsed"]) for page in content["pages"]] == [(1, 0), (1, 0), (0, 1)]
    assert len(content["pictures"]) == 2
    for picture in content["pictures"]:
        stored = (archive_folder(inst) / picture["file"]).read_bytes()
        assert (hashlib.sha256(stored).hexdigest(), len(stored)) == (picture["sha256"], picture["bytes"])


def test_a_refused_document_has_a_manifest_too(inst: Installation, submit: Callable) -> None:
    submit("locked.pdf", [20], encrypted=True)
    (manifest,) = publish(inst)
    body = read(inst, manifest)
    assert (body["content"]["outcome"], body["content"]["pages"]) == ("encrypted", [])
    assert body["record"]["state"] == "failed_permanently"


def test_publishing_again_writes_nothing(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    (first,) = publish(inst)
    path = archive_folder(inst) / first.key
    before = path.stat()
    (again,) = publish(inst, NOW + timedelta(days=1))
    assert (again.digest, again.edition, again.written) == (first.digest, 1, False)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    with inst.ledger.read() as conn:
        published = select(func.count()).where(audit_events.c.type == "manifest_published")
        assert conn.execute(published).scalar_one() == 1


def test_changed_bytes_make_a_new_edition_that_names_and_keeps_the_one_before(
    inst: Installation, submit: Callable
) -> None:
    submit("a.pdf", [10])
    (first,) = publish(inst)
    kept = (archive_folder(inst) / first.key).read_bytes()
    submit("a.pdf", [30])
    (second,) = publish(inst)
    body = read(inst, second)
    assert (second.report_id, second.edition, second.written) == (first.report_id, 2, True)
    assert body["record"]["previous_digest"] == first.digest
    assert (body["record"]["revision"], body["record"]["parent_revision"]) == (2, 1)
    earlier = archive_folder(inst) / f"manifests/{MONTH}/editions/{first.report_id}-1.json"
    assert earlier.read_bytes() == kept


def test_a_crash_before_the_record_is_healed_by_publishing_again(inst: Installation, submit: Callable) -> None:
    """Bytes are in the store, row and event are not: the same bytes come out, however much later."""
    submit("a.pdf", [10])
    work_month(inst, MONTH)
    with inst.ledger.begin() as tx:
        tx.execute(text("CREATE TRIGGER crash BEFORE INSERT ON manifests BEGIN SELECT RAISE(ABORT, 'crash'); END"))
    with pytest.raises(IntegrityError):
        publish_manifests(inst, MONTH, NOW)
    (path,) = (archive_folder(inst) / f"manifests/{MONTH}").glob("*.json")
    before = path.read_bytes()
    with inst.ledger.begin() as tx:
        tx.execute(text("DROP TRIGGER crash"))
    (manifest,) = publish_manifests(inst, MONTH, NOW + timedelta(days=3))
    assert manifest.written
    assert path.read_bytes() == before
    with inst.ledger.read() as conn:
        assert conn.execute(select(manifests.c.digest)).scalars().all() == [hashlib.sha256(before).hexdigest()]


def test_two_publications_at_once_end_with_one_edition_of_each_report(inst: Installation, submit: Callable) -> None:
    for number in range(6):
        submit(f"report-{number}.pdf", [number, number + 40])
    work_month(inst, MONTH)
    with ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(publish_manifests, inst, MONTH, NOW + timedelta(seconds=n)) for n in range(3)]
        results = [call.result() for call in calls]
    digests = [[(row.report_id, row.edition, row.digest) for row in result] for result in results]
    assert digests[0] == digests[1] == digests[2]
    assert sum(row.written for result in results for row in result) == 6
    assert compare_month(inst, MONTH) == []


def test_a_manifest_that_was_lost_comes_back_as_it_was(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    (manifest,) = publish(inst)
    path = archive_folder(inst) / manifest.key
    before = path.read_bytes()
    path.unlink()
    publish_manifests(inst, MONTH, NOW + timedelta(days=1))
    assert path.read_bytes() == before


def incidents(inst: Installation) -> list[dict]:
    with inst.ledger.read() as conn:
        told = conn.execute(select(audit_events.c.payload).where(audit_events.c.type == "manifest_restored"))
        return [json.loads(payload) for payload in told.scalars()]


@pytest.mark.parametrize("altered", [b"{}", b"", None], ids=["other", "empty", "gone"])
def test_an_altered_manifest_is_built_again_as_it_was_and_that_is_recorded(
    inst: Installation, submit: Callable, altered: bytes | None
) -> None:
    submit("a.pdf", [10])
    (manifest,) = publish(inst)
    path = archive_folder(inst) / manifest.key
    before = path.read_bytes()
    path.unlink() if altered is None else path.write_bytes(altered)
    (again,) = publish(inst)
    assert path.read_bytes() == before
    assert (again.edition, again.written) == (1, False)
    (incident,) = incidents(inst)
    found = "nothing" if altered is None else hashlib.sha256(altered).hexdigest()
    assert (incident["report_id"], incident["digest"], incident["found"]) == (
        manifest.report_id,
        manifest.digest,
        found,
    )


def test_of_an_altered_manifest_the_edition_is_kept_as_it_was_written(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    (first,) = publish(inst)
    before = (archive_folder(inst) / first.key).read_bytes()
    (archive_folder(inst) / first.key).write_bytes(b"{}")
    submit("a.pdf", [30])
    (second,) = publish(inst)
    assert (second.edition, second.written) == (2, True)
    assert (archive_folder(inst) / f"manifests/{MONTH}/editions/{first.report_id}-1.json").read_bytes() == before
    assert compare_month(inst, MONTH) == []


def test_a_manifest_of_a_lost_ledger_is_never_replaced_and_holds_up_no_other(
    inst: Installation, submit: Callable
) -> None:
    for name in ("a.pdf", "b.pdf"):
        submit(name, [10])
    known = {row.key: (archive_folder(inst) / row.key).read_bytes() for row in publish(inst)}
    inst.ledger.close()
    Path(inst.settings.ledger_url.removeprefix("sqlite:///")).unlink()
    with open_installation(inst.settings) as fresh:
        drop_document(fresh.settings, "c.pdf", [20])
        admit_month(fresh, MONTH, lambda: datetime.now(UTC), wait=True)
        with pytest.raises(IntegrityError, match="does not know") as caught:
            publish(fresh)
        assert "backup" in caught.value.remedy
        assert all((archive_folder(fresh) / key).read_bytes() == body for key, body in known.items())
        assert len(list((archive_folder(fresh) / f"manifests/{MONTH}").glob("*.json"))) == 3


def test_a_newer_edition_than_the_ledger_knows_is_not_taken_back(
    inst: Installation, submit: Callable, tmp_path: Path
) -> None:
    """The ledger was restored from a backup that is older than the archive."""
    submit("a.pdf", [10])
    (first,) = publish(inst)
    database = Path(inst.settings.ledger_url.removeprefix("sqlite:///"))
    copy = sqlite3.connect(tmp_path / "backup.db")
    with contextlib.closing(sqlite3.connect(database)) as source, contextlib.closing(copy) as target:
        source.backup(target)
    submit("a.pdf", [30])
    (second,) = publish(inst)
    newest = (archive_folder(inst) / second.key).read_bytes()
    inst.ledger.close()
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", database)
    with open_installation(inst.settings) as older, pytest.raises(IntegrityError, match="does not know"):
        publish(older)
    assert (archive_folder(inst) / first.key).read_bytes() == newest


def test_a_manifest_that_cannot_be_built_again_is_named_and_holds_up_no_other_report(
    inst: Installation, submit: Callable
) -> None:
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        submit(name, [10])
    altered = publish(inst)[0]
    (archive_folder(inst) / altered.key).write_bytes(b"{}")
    with inst.ledger.begin() as tx:
        tx.execute(update(jobs).where(jobs.c.job_id == altered.job_id).values(correlation_id="a" * 26))
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        submit(name, [30])
    with pytest.raises(IntegrityError, match=altered.report_id):
        publish(inst)
    with inst.ledger.read() as conn:
        editions = conn.execute(select(manifests.c.report_id, func.max(manifests.c.edition)).group_by("report_id"))
        newest = {row[0]: row[1] for row in editions}
    assert newest.pop(altered.report_id) == 1
    assert list(newest.values()) == [2, 2]


def test_no_manifest_of_a_report_that_is_still_being_worked(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    assert publish_manifests(inst, MONTH, NOW) == []


def test_content_is_the_same_in_another_installation(inst: Installation, submit: Callable, tmp_path: Path) -> None:
    submit("a.pdf", [10, 20])
    (here,) = publish(inst)
    other: Settings = fresh_settings(tmp_path / "elsewhere", pages_per_unit=1)
    drop_document(other, "another name.pdf", [10, 20], collection="other")
    with open_installation(other) as elsewhere:
        admit_month(elsewhere, MONTH, lambda: datetime.now(UTC), wait=True)
        (there,) = publish(elsewhere)
        body = read(elsewhere, there)
    assert here.content_digest == there.content_digest
    assert (here.report_id, here.digest) != (there.report_id, there.digest)
    assert "another name" not in json.dumps(body["content"])
    assert body["record"]["name"] == "another name.pdf"


def test_content_is_the_same_on_postgres_and_s3(
    inst: Installation, submit: Callable, tmp_path: Path, postgres_ledger_url: str, s3_settings
) -> None:
    submit("a.pdf", [10, 20, 10], broken_picture=True)
    (here,) = publish(inst)
    other = load_settings(
        home=tmp_path / "other", settle_seconds=0, ledger=postgres_ledger_url, **s3_settings.settings()
    )
    document = Path(inst.settings.store_address("inbox"), "city", MONTH, "a.pdf")
    with open_installation(other) as elsewhere:
        digest = hashlib.sha256(document.read_bytes()).hexdigest()
        elsewhere.inbox.put_once(f"city/{MONTH}/a.pdf", document, digest)
        admit_month(elsewhere, MONTH, lambda: datetime.now(UTC), wait=True)
        (there,) = publish(elsewhere)
        (again,) = publish(elsewhere, NOW + timedelta(days=1))
        assert compare_month(elsewhere, MONTH) == []
    assert (here.content_digest, there.digest) == (there.content_digest, again.digest)


def test_names_are_left_out_where_the_policy_hides_them(tmp_path: Path) -> None:
    settings = fresh_settings(tmp_path)
    settings.policy_file.write_text("show_names: false\n")
    drop_document(settings, "secret name.pdf", [10])
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
        (manifest,) = publish(inst)
        assert "secret name" not in (archive_folder(inst) / manifest.key).read_text()


def test_the_schema_knows_every_field_and_word_of_a_report() -> None:
    definitions = manifest_schema()["$defs"]
    assert set(definitions["placement"]["properties"]) == set(Placement.model_fields)
    assert set(definitions["page"]["properties"]) == set(Page.model_fields)
    assert set(definitions["picture"]["properties"]) == set(Picture.model_fields) - {"of"}
    assert definitions["placement"]["properties"]["kind"]["enum"] == [kind.value for kind in Kind]
    assert definitions["placement"]["properties"]["status"]["enum"] == [status.value for status in Status]
    assert definitions["page"]["properties"]["unit"]["enum"] == list(get_args(Page.model_fields["unit"].annotation))
    jsonschema.Draft202012Validator.check_schema(manifest_schema())


def test_a_manifest_that_does_not_satisfy_the_schema_is_not_written() -> None:
    with pytest.raises(IntegrityError, match="schema"):
        check_manifest({"schema": "asset-pipeline/manifest/1", "content": {}, "record": {}})
