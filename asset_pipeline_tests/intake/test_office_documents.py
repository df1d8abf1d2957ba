"""Office documents come in by what their package is, and are queued for the engine that reads them."""

from __future__ import annotations

from sqlalchemy import select

from asset_pipeline.extraction.engine import extractor_version, load_engine
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import jobs, source_documents, uploads
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.packages import DOCX
from asset_pipeline_tests.extraction.ooxml.making import content_types, docx, inline, package, paragraph, pic

DIARY = docx(paragraph(inline(pic())))
MACROS = content_types("docx").replace(
    "vnd.openxmlformats-officedocument.wordprocessingml.document.main", "vnd.ms-word.document.macroEnabled.main"
)


def test_each_document_is_queued_for_the_engine_of_its_type(inst, clock):
    inst.inbox.put_current("team/2026-03/diary.docx", DIARY)
    inst.inbox.put_current("team/2026-03/report.pdf", b"%PDF-1.7 report")
    admit_month(inst, "2026-03", clock, wait=False)
    query = select(source_documents.c.media_type, jobs.c.engine, jobs.c.extractor_version).join(
        source_documents, source_documents.c.sha256 == jobs.c.source_hash
    )
    with inst.ledger.read() as conn:
        found = {media_type: (engine, version) for media_type, engine, version in conn.execute(query)}
    versions = {name: extractor_version(load_engine(name), inst.policy) for name in ("ooxml", "pdf")}
    assert found == {DOCX: ("ooxml", versions["ooxml"]), "application/pdf": ("pdf", versions["pdf"])}


def test_a_document_is_what_its_package_says_whatever_its_name(inst, clock):
    expected = {
        "diary.docx": None,
        "diary.pptx": Reason.SIGNATURE_MISMATCH,
        "diary.pdf": Reason.SIGNATURE_MISMATCH,
        "diary.docm": None,
        "macros.docm": Reason.MEDIA_TYPE_NOT_ALLOWED,
        "macros.docx": Reason.SIGNATURE_MISMATCH,
    }
    for name in expected:
        with_macros = package("docx", {"[Content_Types].xml": MACROS})
        inst.inbox.put_current(f"team/2026-03/{name}", with_macros if name.startswith("macros") else DIARY)
    admit_month(inst, "2026-03", clock, wait=False)
    with inst.ledger.read() as conn:
        found = {row.name: row.reason for row in conn.execute(select(uploads.c.name, uploads.c.reason))}
    assert found == expected
