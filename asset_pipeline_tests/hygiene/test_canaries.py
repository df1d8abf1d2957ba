"""No text, name or path of a document gets into a log, an event, a metadata value or a column that is not for it."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys
from pathlib import Path

import dagster as dg
import pikepdf
import pytest
from PIL import Image

import asset_pipeline
from asset_pipeline import logs
from asset_pipeline.archive.gallery.publish import publish_gallery
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.defs.instance import materialize_months, open_instance
from asset_pipeline.installation import open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import metadata, uploads
from asset_pipeline.settings import Settings
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline.work.previews import open_previews
from asset_pipeline_tests.hostile.wrapping import wrap_in_docx
from asset_pipeline_tests.hygiene import canaries
from asset_pipeline_tests.hygiene.canaries import UNWANTED, WANTED, canary
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings

NAME, PATH = canary("name"), canary("path")
NASTY_NAMES = (
    f"..%2f..%2f{NAME}.pdf",
    f"line\nbreak {NAME}.pdf",
    f"<script>{NAME}<x>.pdf",
    f"{NAME}{'A' * 200}.pdf",
    f"\x1b[31m{NAME}\u202e.pdf",
)
ALLOWED = {
    "uploads": {"key": (NAME,), "name": (NAME,)},
    "pages": {"label": WANTED},
    "placements": {"detail": WANTED},
    "objects": {"icc": WANTED},
}
"""Columns that hold what a caller wrote, or a text that is archived on purpose."""


@pytest.fixture(params=[True, False], ids=["names shown", "names hidden"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An installation whose inbox holds what carries canaries, below a folder that carries one."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    made = fresh_settings(tmp_path / PATH)
    made.policy_file.write_text(f"show_names: {str(request.param).lower()}\n")
    inbox = Path(made.store_address("inbox"), "city", MONTH)
    inbox.mkdir(parents=True)
    canaries.write_pdf(inbox / f"{NAME}.pdf")
    for at, name in enumerate(NASTY_NAMES):
        with pikepdf.open(inbox / f"{NAME}.pdf") as pdf:
            pdf.docinfo.Title = f"{at} {canary('title')}"
            pdf.save(inbox / name)
    canaries.write_broken_pdf(inbox / f"{NAME} broken.pdf")
    canaries.write_locked_pdf(inbox / f"{NAME} locked.pdf")
    (inbox / f"{NAME}.exe").write_bytes(f"MZ {canary('body')}".encode())
    (inbox.parent / f"{NAME}.pdf").write_bytes(b"%PDF-")
    _write_office(inbox / f"{NAME}.docx", tmp_path)
    return made


def _write_office(path: Path, folder: Path) -> None:
    picture = Image.new("RGB", (64, 64), (10, 200, 30))
    exif = Image.Exif()
    exif[0x010E] = canary("comment")
    picture.save(folder / "photo.jpg", exif=exif, comment=canary("comment"))
    wrap_in_docx(folder / "photo.jpg", folder / "plain.docx")
    canaries.write_docx(path, folder / "plain.docx")


def test_a_month_of_canaries_leaves_none_where_it_may_not(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(logs.OneLine(logs.FORMAT))
    logging.getLogger().addHandler(handler)
    logging.getLogger(logs.OURS).setLevel(logging.DEBUG)
    try:
        with open_instance(settings) as instance:
            materialize_months(settings, [MONTH], instance=instance)
            found = _in_dagster(instance)
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger(logs.OURS).setLevel(logging.NOTSET)
    said = capfd.readouterr()
    found |= {"log": log.getvalue(), "standard output": said.out, "standard error": said.err}
    found |= _in_manifests(settings) | _in_galleries(settings)
    shown = _shows_names(settings)

    wrong = []
    for place, text in found.items():
        allowed = {word for word in WANTED if place.startswith(("manifest", "gallery"))}
        names = [] if shown and place.startswith(("dagster", "manifest", "gallery")) else [NAME]
        words = [canary(word) for word in (*UNWANTED, *WANTED) if word not in allowed] + names
        if not place.startswith("dagster"):  # which keeps the addresses of its own records
            words.append(PATH)
        wrong += [f"{word} in {place}" for word in words if word in text]
    assert not wrong
    galleries = "".join(text for place, text in found.items() if place.startswith("gallery"))
    assert (NAME in galleries) == shown
    markup = "".join(text for place, text in found.items() if "markdown" in place or place.startswith("gallery"))
    assert "![" in markup, "there is a contact sheet"
    assert f"<script>{NAME}" not in markup
    manifests = "".join(text for place, text in found.items() if place.startswith("manifest"))
    missing = [word for word in WANTED if canary(word) not in manifests]
    assert not missing, "what is not archived cannot be missing elsewhere either"
    assert _in_ledger(settings) == []
    assert "unit " in found["log"] or "job " in found["log"]


def _shows_names(settings: Settings) -> bool:
    with open_installation(settings) as inst:
        return inst.policy.show_names


def _in_dagster(instance: dg.DagsterInstance) -> dict[str, str]:
    """Every event with its metadata, run by run, as Dagster keeps it, and what of it is shown as markup."""
    rows = {}
    for run in instance.get_run_records():
        for at, entry in enumerate(instance.all_logs(run.dagster_run.run_id)):
            rows[f"dagster event {at} {entry.dagster_event_type}"] = str(entry.to_json())
            materialization = entry.asset_materialization
            for name, value in materialization.metadata.items() if materialization else ():
                if isinstance(value, dg.MarkdownMetadataValue):
                    rows[f"dagster markdown {at} {name}"] = str(value.value)
    assert any("MATERIALIZATION" in place for place in rows)
    return rows


def _in_manifests(settings: Settings) -> dict[str, str]:
    """Manifests, decoded from their envelopes, and whatever else of the archive is text."""
    texts = {}
    for path in sorted(Path(settings.store_address("archive")).rglob("*.json")):
        text = path.read_text("utf-8")
        body = json.loads(text)
        payload = body.get("payload") if isinstance(body, dict) else None
        texts[f"manifest {path.name}"] = text + (base64.b64decode(payload).decode() if isinstance(payload, str) else "")
        texts[f"path {path.name}"] = str(path.relative_to(settings.store_address("archive")))
    assert texts
    return texts


def _in_galleries(settings: Settings) -> dict[str, str]:
    """Every file of the galleries that a browser takes as text, and how it is called."""
    archive = Path(settings.store_address("archive"))
    texts = {}
    for path in sorted(archive.joinpath("galleries").rglob("*")):
        if path.suffix in (".html", ".js", ".css"):
            texts[f"gallery {path.name}"] = path.read_text("utf-8")
            texts[f"path {path.name}"] = str(path.relative_to(archive))
    assert any(place.endswith(".html") for place in texts)
    return texts


def _in_ledger(settings: Settings) -> list[str]:
    """Canaries in columns that are not for them."""
    wrong = []
    words = {word: canary(word) for word in (*UNWANTED, *WANTED)} | {NAME: NAME, PATH: PATH}
    with open_installation(settings) as inst, inst.ledger.read() as conn:
        for table in metadata.sorted_tables:
            for row in conn.execute(table.select()).mappings():
                for column, value in row.items():
                    allowed = ALLOWED.get(table.name, {}).get(str(column), ())
                    text = str(value)
                    wrong += [
                        f"{word} in {table.name}.{column}"
                        for word, written in words.items()
                        if written in text and word not in allowed
                    ]
    return sorted(set(wrong))


def test_no_file_or_folder_is_called_as_a_caller_or_a_document_says(settings: Settings) -> None:
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, utc_now, wait=True)
        work_month(inst, MONTH)
    inbox = Path(settings.store_address("inbox"))
    made = [path.relative_to(settings.home) for path in settings.home.rglob("*") if not path.is_relative_to(inbox)]
    assert made
    assert [path for path in made if "canary" in str(path) or "script" in str(path)] == []


def test_names_that_no_folder_could_hold_are_no_path_key_log_line_or_markup(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are written into the ledger after admission: a bucket elsewhere may allow what no folder here does."""
    settings = fresh_settings(tmp_path)
    names = [f"{NAME}{'A' * 300}.pdf", f"<script>{NAME}</script>.pdf", f"../../{NAME}.pdf", f"line\nbreak {NAME}.pdf"]
    for at in range(len(names)):
        drop_document(settings, f"{at}.pdf", [10 + at])
    with caplog.at_level(logging.DEBUG, logs.OURS), open_installation(settings) as inst:
        admit_month(inst, MONTH, utc_now, wait=True)
        with inst.ledger.begin() as tx:
            for at, name in enumerate(names):
                named = uploads.update().where(uploads.c.name == f"{at}.pdf")
                tx.execute(named.values(name=name, key=f"city/{MONTH}/{name}"))
        work_month(inst, MONTH)
        publish_manifests(inst, MONTH, utc_now())
        publish_gallery(inst, MONTH, lambda: open_previews(inst, 1))
    made = [str(path.relative_to(settings.home)) for path in settings.home.rglob("*")]
    assert [path for path in made if "canary" in path or "script" in path or len(path) > 160] == []
    assert not list(tmp_path.parent.glob(f"*{NAME}*"))
    assert NAME not in caplog.text
    shown = "".join(_in_galleries(settings).values())
    assert shown.count(NAME) >= len(names)
    assert f"<script>{NAME}" not in shown


def test_a_log_line_stays_one_line_and_says_of_an_exception_its_type_and_place_alone() -> None:
    record = logging.LogRecord("library", logging.ERROR, __file__, 1, "two\nlines \x1b[31m of %s", ("a\u202eb",), None)
    try:
        raise ValueError(f"words of the document: {canary('body')}")
    except ValueError:
        record.exc_info = sys.exc_info()
    line = logs.OneLine(logs.FORMAT).format(record)
    assert "\n" not in line and "\x1b" not in line and "\u202e" not in line
    assert canary("body") not in line
    assert f"ValueError at {Path(__file__).name}:" in line


def test_a_report_of_one_document_names_neither_its_file_nor_its_place(tmp_path: Path) -> None:
    folder = tmp_path / PATH
    folder.mkdir()
    canaries.write_pdf(folder / f"{NAME}.pdf")
    asset_pipeline.extract(folder / f"{NAME}.pdf", tmp_path / "out")
    text = (tmp_path / "out" / "report.json").read_text()
    assert [word for word in (NAME, PATH, *map(canary, UNWANTED)) if word in text] == []
    assert {path.name for path in (tmp_path / "out").iterdir() if "canary" in path.name} == set()
