"""What is set or ruled wrongly is told in one line that names it, before anything is written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.policy import Policy, load_policy
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.storage.store import open_store
from asset_pipeline_tests.commands import ROOT

HUGE = 2**53

UNSOUND = [
    ("limits:\n  pages: 3\n  pages: 4\n", "pages: it stands there twice, again in line 3"),
    ("show_names: true\nlimits: {pages: 3}\nshow_names: false\n", "show_names: it stands there twice, again in line 3"),
    ("limits: {expanded_bytes: 4294967296}", "limits.expanded_bytes"),
    ("limits: {objects: 4294967296}", "limits.objects"),
    ("limits: {filters: 4294967296}", "limits.filters"),
    ("limits: {jpeg_scans: 4294967296}", "limits.jpeg_scans"),
    ("limits: {decoder_bytes: 1}", "limits.decoder_bytes"),
    ("limits: {document_seconds: .inf}", "limits.document_seconds"),
    ("limits: {document_seconds: .nan}", "limits.document_seconds"),
    ("limits: {document_seconds: 1.0e+300}", "limits.document_seconds"),
    ("limits: {pages: true}", "limits.pages"),
    ("limits: {pages: '5'}", "limits.pages"),
    ("figures: {enabled: 1}", "figures.enabled"),
    ("decorative: {shortest_side_points: true}", "decorative.shortest_side_points"),
    ("objectives: {queue_seconds: .inf}", "objectives.queue_seconds"),
    (f"objectives: {{overdue_bytes: {HUGE}}}", "objectives.overdue_bytes"),
    ("retention: {archive_days: 99999999999}", "retention.archive_days"),
    ("retention: {working_days: 36526}", "retention.working_days"),
    ("version: 2", "version"),
    ("version: true", "version"),
    ("version: 0", "version"),
    ("media_types: {documents: []}", "media_types.documents"),
    ("media_types: {documents: [pdf]}", "media_types.documents.0"),
    ("[" * 5000, "nested too deeply"),
    ("- a", "policy"),
    ('"\\e[31m\\n": 1', "\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}"),
]


def told(failed: pytest.ExceptionInfo[ConfigurationError]) -> str:
    """The message, which is one line with a remedy."""
    assert failed.value.remedy
    assert str(failed.value).isprintable()
    return failed.value.what


@pytest.mark.parametrize(("body", "where"), UNSOUND, ids=[body[:40] for body, _where in UNSOUND])
def test_an_unsound_policy_is_told_with_its_field(tmp_path: Path, body: str, where: str) -> None:
    (tmp_path / "policy.yaml").write_text(body)
    with pytest.raises(ConfigurationError) as failed:
        load_policy(tmp_path / "policy.yaml")
    assert told(failed).startswith("The policy is unsound at ")
    assert where in told(failed)


@pytest.mark.parametrize("field", ["limits", "decorative", "figures", "retention", "objectives"])
def test_no_number_is_too_large_for_the_digest(tmp_path: Path, field: str) -> None:
    for name, value in getattr(Policy(), field).model_dump().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = HUGE if isinstance(value, int) else ".inf"
            (tmp_path / "policy.yaml").write_text(f"{field}: {{{name}: {number}}}")
            with pytest.raises(ConfigurationError, match=rf"unsound at {field}\.{name}:"):
                load_policy(tmp_path / "policy.yaml")


@pytest.mark.parametrize(
    "body", ["limits: {pages: ", "a: 2024-99-99", f"a: {'9' * 5000}", "!!python/object:os.x {}", "\x00"]
)
def test_what_is_no_yaml_is_told_as_such(tmp_path: Path, body: str) -> None:
    (tmp_path / "policy.yaml").write_text(body)
    with pytest.raises(ConfigurationError, match="cannot be read as YAML") as failed:
        load_policy(tmp_path / "policy.yaml")
    told(failed)


def test_sound_policies_stay_sound(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "version: 1\nlimits: {expanded_bytes: 4294967295, document_seconds: 60, decoder_bytes: 268435456}\n"
        "retention: &kept {working_days: 36525, archive_days: 36525}\n"
        "media_types: {documents: [application/pdf, image/png]}\n"
        "objectives: {completion_seconds: 31622400}\n"
    )
    policy = load_policy(file)
    assert (policy.limits.document_seconds, policy.retention.archive_days) == (60.0, 36525)
    assert Policy.model_validate(policy.model_dump(mode="json")).digest == policy.digest
    file.write_text("limits:\n  <<: {pages: 3, frames: 2}\n  pages: 4\n")
    assert (load_policy(file).limits.pages, load_policy(file).limits.frames) == (4, 2)
    for nothing in ("", "# no rule\n", "{}"):
        file.write_text(nothing)
        assert load_policy(file) == Policy()


def test_the_digest_of_the_built_in_policy_stays() -> None:
    """Else everything that was ever extracted would count as read under other rules."""
    assert Policy().extraction_digest == "655a00da6123ccfd8b9a89bce8470ffbb808419a4dd05c57b55fdffd1cb469a3"


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "folder under a file"])
@pytest.mark.parametrize("required", [True, False])
def test_a_policy_that_is_no_file_is_told_as_such(tmp_path: Path, kind: str, required: bool) -> None:
    place = tmp_path / "policy.yaml"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place = Path(os.devnull)
    else:
        place.write_text("")
        place = place / "x"
        if not required:
            assert load_policy(place) == Policy()
            return
    with pytest.raises(ConfigurationError, match="no policy file" if "under" in kind else "not a file") as failed:
        load_policy(place, required=required)
    told(failed)


STORES = ("inbox", "sources", "archive", "quarantine", "checkpoints")
STRANGE = ("ftp://a/b", "s3x:/a", "S3://bucket/a", "s3:/bucket", "file:///a", "gs://bucket", "https://host/a")


@pytest.mark.parametrize("address", STRANGE)
def test_an_address_of_an_unknown_kind_is_no_folder(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name in STORES:
        with monkeypatch.context() as env:
            env.setenv(f"ASSET_PIPELINE_{name.upper()}", address)
            with pytest.raises(ConfigurationError, match=f"ASSET_PIPELINE_{name.upper()} is not valid") as failed:
                load_settings()
            assert "s3://bucket/prefix" in told(failed)
            assert address not in told(failed)
    with pytest.raises(ConfigurationError, match="archive store") as failed:
        open_store(address, Settings(), "archive")
    assert "s3://bucket/prefix" in failed.value.remedy


@pytest.mark.parametrize("address", ["a", "../a", "/a/b", "a:b", "a b/c:d", "é", "s3://bucket/prefix", "1:/a"])
def test_folders_and_buckets_are_addresses(address: str) -> None:
    assert load_settings(archive=address).store_address("archive") == address


def test_nothing_is_made_for_an_address_of_an_unknown_kind_or_of_a_folder_that_is_not_there(
    command: Callable, place: Path
) -> None:
    before = sorted(place.rglob("*"))
    ended = command("run", "2026-05", ASSET_PIPELINE_ARCHIVE="ftp://a/b")
    assert ended.status == 1
    assert "ASSET_PIPELINE_ARCHIVE" in ended.one_line_error()
    assert command("status", ASSET_PIPELINE_HOME="s3://bucket").status == 1
    ended = command("status", ASSET_PIPELINE_LEDGER=f"sqlite:///{place}/new/place/ledger.db")
    assert "Create it or correct ASSET_PIPELINE_LEDGER" in ended.one_line_error()
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("settle_seconds", "lease_seconds") for value in ("inf", "nan", "1e300", "86401")),
        *((name, str(10**30)) for name in ("workers", "queued_bytes", "store_slots", "pages_per_unit")),
        ("checkpoint_lock_days", "99999999"),
        *((name, "s3://bucket/a") for name in ("home", "work", "keys", "policy")),
    ],
)
def test_a_setting_that_no_run_could_use_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"ASSET_PIPELINE_{name.upper()}", value)
    with pytest.raises(ConfigurationError, match=f"ASSET_PIPELINE_{name.upper()} is not valid") as failed:
        load_settings()
    told(failed)


def test_a_variable_that_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"ASSET_PIPELINE_{name.upper()}", raising=False)
    unset = load_settings()
    for name in Settings.model_fields:
        monkeypatch.setenv(f"ASSET_PIPELINE_{name.upper()}", "")
    assert load_settings() == unset
    assert load_settings().home == Path(".asset_pipeline")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("redirect", "why"), [(">/dev/full", "No space left on device"), (">&-", "it is closed"), ("| true", "")]
)
def test_an_answer_that_cannot_be_written_is_told(place: Path, redirect: str, why: str, unbuffered: str) -> None:
    """In one line and by the exit status; a reader that has read enough is told nothing."""
    command = f'"{sys.executable}" -m asset_pipeline.cli policy schema {redirect}; exit "${{PIPESTATUS[0]}}"'
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert (
        ended.stderr == "" if not why else ended.stderr.startswith(f"Error: Standard output cannot be written: {why}.")
    )
    assert len(ended.stderr.splitlines()) == bool(why)
