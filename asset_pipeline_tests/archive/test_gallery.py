"""The gallery of a month as files: complete, told from the ledger, written once, safe against what strangers wrote."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from PIL import Image

from asset_pipeline.archive.gallery.publish import PublishedGallery, publish_gallery
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import reading
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline.work.previews import ENGINES, DecoderPreviews, open_previews
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings


def gallery(inst: Installation) -> PublishedGallery:
    work_month(inst, MONTH)
    return publish_gallery(inst, MONTH, lambda: open_previews(inst))


def folder(inst: Installation) -> Path:
    return Path(inst.settings.store_address("archive"), "galleries", MONTH)


def files(inst: Installation) -> dict[str, bytes]:
    place = folder(inst)
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def value(body: bytes) -> dict | list:
    """What a data file hands over."""
    text = body.decode("ascii")
    return json.loads(text[text.index(",") + 1 : text.rindex(")")])


def month_of(inst: Installation) -> dict:
    return value((folder(inst) / "month.js").read_bytes())


def test_a_gallery_is_a_folder_that_names_only_what_is_in_it(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10, 20, 10])
    submit("b.pdf", [30])
    made = gallery(inst)
    found = files(inst)
    assert made.key == f"galleries/{MONTH}/index.html"
    fixed = {"index.html", "gallery.css", "shared.js", "page.js", "gallery.js", "month.js"}
    fixed |= {"without_preview.json", "made_from.json"}
    assert fixed <= found.keys()
    month = month_of(inst)
    named = {f"data/{month['texts']}.js"}
    for document in month["documents"]:
        named.add(f"data/{document['details']}.js")
        for block, codes, *_ in document["blocks"]:
            named.add(f"data/{block}.js")
            items = value(found[f"data/{block}.js"])
            assert len(items) == len(codes)
            named |= {f"thumbnails/{item[7]}.webp" for item in items if item[-1]}
        named |= {page["sheet"][0] for page in value(found[f"data/{document['details']}.js"]).values()}
    assert named == found.keys() - fixed


def test_the_totals_are_those_of_the_ledger(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10, 20, 10], broken_picture=True)
    submit("locked.pdf", [20], encrypted=True)
    gallery(inst)
    with inst.ledger.read() as conn:
        summary = reading.month_summary(conn, MONTH)
    totals = month_of(inst)["totals"]
    assert {
        name: totals[name] for name in ("documents", "pages", "archived", "collapsed", "quarantined", "refused")
    } == {
        "documents": 2,
        "pages": 4,
        "archived": 2,
        "collapsed": 1,
        "quarantined": 1,
        "refused": 1,
    }
    assert totals["drawn"] == summary.drawn


def test_a_rerun_with_nothing_new_writes_nothing(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10, 20], broken_picture=True)
    first = gallery(inst)
    before = {path: path.stat().st_ino for path in folder(inst).rglob("*")}
    again = gallery(inst)
    assert (again.written, again.removed, again.digest) == (0, 0, first.digest)
    assert {path: path.stat().st_ino for path in folder(inst).rglob("*")} == before


@pytest.mark.parametrize("damage", [b"\xff{}", b"[1]", b"", b'{"thumbnails/x.webp": "often"}'])
def test_a_damaged_count_of_tries_is_counted_anew(inst: Installation, submit: Callable, damage: bytes) -> None:
    submit("a.pdf", [10])
    gallery(inst)
    whole = files(inst)
    (folder(inst) / "without_preview.json").write_bytes(damage)
    gallery(inst)
    assert files(inst) == whole


def test_a_new_document_writes_its_own_files_and_a_replaced_one_leaves_none(
    inst: Installation, submit: Callable
) -> None:
    submit("a.pdf", [10])
    gallery(inst)
    first = files(inst)
    submit("b.pdf", [20])
    gallery(inst)
    thumbnails = {name for name in files(inst) if name.startswith("thumbnails/")}
    assert len(thumbnails) == 2
    assert {name for name in first if name.startswith("thumbnails/")} < thumbnails
    submit("a.pdf", [30])
    made = gallery(inst)
    left = {name for name in files(inst) if name.startswith("thumbnails/")}
    assert made.removed > 0
    assert len(left) == 2
    assert left.isdisjoint(name for name in first if name.startswith("thumbnails/"))


def test_two_installations_make_the_same_data_from_the_same_documents(tmp_path: Path) -> None:
    bodies = []
    for name in ("one", "two"):
        settings = fresh_settings(tmp_path / name, install_key="00" * 32)
        with open_installation(settings) as opened:
            drop_document(settings, "a.pdf", [10, 20, 10])
            admit_month(opened, MONTH, utc_now, wait=True)
            gallery(opened)
            bodies.append(files(opened))
    assert bodies[0] == bodies[1]


def test_a_bucket_holds_the_same_gallery_and_says_what_each_file_is(s3_settings, tmp_path: Path) -> None:
    import boto3

    in_folder = fresh_settings(tmp_path / "folder", install_key="00" * 32)
    in_bucket = fresh_settings(
        tmp_path / "bucket", install_key="00" * 32, s3_endpoint=s3_settings.endpoint, archive=s3_settings.address("a")
    )
    for settings in (in_folder, in_bucket):
        with open_installation(settings) as opened:
            drop_document(settings, "a.pdf", [10, 20])
            admit_month(opened, MONTH, utc_now, wait=True)
            gallery(opened)
            if settings is in_bucket:
                again = publish_gallery(opened, MONTH, lambda: open_previews(opened))
                assert again.written == 0
            else:
                local = files(opened)
    client = boto3.client("s3", endpoint_url=s3_settings.endpoint, region_name="us-east-1")
    types = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "webp": "image/webp"}
    for name, body in local.items():
        answer = client.get_object(Bucket=s3_settings.name, Key=f"a/galleries/{MONTH}/{name}")
        assert answer["Body"].read() == body, name
        assert answer["ContentType"] == types.get(name.rpartition(".")[2], answer["ContentType"])


HOSTILE = [
    "<script>alert(1)<_script>.pdf",
    "'\"><img src=x onerror=alert(1)>.pdf",
    "\u202egpj.report.pdf",
    "line\u2028break.pdf",
    "x" * 200 + ".pdf",
]


def test_a_name_is_data_and_never_markup_or_script(inst: Installation, submit: Callable) -> None:
    for name in HOSTILE:
        submit(name, [10])
    gallery(inst)
    body = (folder(inst) / "month.js").read_bytes()
    assert body.isascii()
    assert b"<" not in body
    assert body.count(b"\n") == 1
    assert sorted(document["title"] for document in month_of(inst)["documents"]) == sorted(HOSTILE)
    assert not [path for path in files(inst) if "script" in path or len(path) > 100]


def test_without_names_a_document_is_its_report_id_and_no_page_is_drawn(inst: Installation, submit: Callable) -> None:
    submit("secret-name.pdf", [10])
    opaque = replace(inst, policy=inst.policy.model_copy(update={"show_names": False}))
    work_month(opaque, MONTH)
    publish_gallery(opaque, MONTH, lambda: open_previews(opaque))
    found = files(inst)
    assert not [name for name, body in found.items() if b"secret-name" in body or b'"city"' in body]
    (document,) = month_of(inst)["documents"]
    assert len(document["id"]) == 26
    assert document["title"] == document["id"]
    assert not [name for name in found if name.startswith("pages/")]


def test_a_page_with_a_quarantined_picture_is_never_drawn(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10], broken_picture=True)
    gallery(inst)
    sheets = sorted(name for name in files(inst) if name.startswith("pages/"))
    assert [name.rpartition("/")[2].split("-")[1:] for name in sheets] == [
        ["1", "2000x2000", "d.webp"],
        ["2", "2000x2000", "b.webp"],
    ]
    blank = Image.open(io.BytesIO(files(inst)[sheets[1]])).convert("RGB")
    assert blank.getcolors() == [(blank.width * blank.height, (255, 255, 255))]
    (document,) = month_of(inst)["documents"]
    assert document["states"] == "pq"


def test_thumbnails_are_small_and_keep_transparency(tmp_path: Path) -> None:
    settings = fresh_settings(tmp_path)
    with open_installation(settings) as opened:
        source = Path(__file__).parents[2] / "fixtures" / "inbox" / "press-desk" / "2026-10" / "promo-leaflet.pdf"
        target = Path(settings.store_address("inbox"), "city", MONTH)
        target.mkdir(parents=True)
        (target / "leaflet.pdf").write_bytes(source.read_bytes())
        admit_month(opened, MONTH, utc_now, wait=True)
        gallery(opened)
        images = [body for name, body in files(opened).items() if name.startswith("thumbnails/")]
    assert images
    for body in images:
        with Image.open(io.BytesIO(body)) as image:
            assert (image.format, max(image.size) <= 320) == ("WEBP", True)


@contextmanager
def lossy_previews(inst: Installation) -> Iterator[DecoderPreviews]:
    """Previews by a decoder that dies of every picture whose digest begins with 0 to 7."""
    name = "asset_pipeline_tests.archive.dying_previews:Picky"
    with (
        ThreadPoolExecutor(2) as threads,
        DecoderPool(2, inst.policy, engines=ENGINES | {"thumbnails": name}, warm=()) as pool,
    ):
        yield DecoderPreviews(inst, pool, threads)


def test_a_picture_that_costs_its_decoder_has_no_preview_and_takes_no_other_with_it(
    inst: Installation, submit: Callable
) -> None:
    submit("a.pdf", list(range(10, 90, 10)))
    work_month(inst, MONTH)
    publish_gallery(inst, MONTH, lambda: lossy_previews(inst))
    made = {name.removeprefix("thumbnails/")[0] for name in files(inst) if name.startswith("thumbnails/")}
    failed = {name.removeprefix("thumbnails/")[0] for name in json.loads(files(inst)["without_preview.json"])}
    assert made
    assert failed
    assert all(digit >= "8" for digit in made)
    assert all(digit < "8" for digit in failed)
    for _ in range(2):
        assert publish_gallery(inst, MONTH, lambda: lossy_previews(inst)).written == 1, "it says how often it tried"
    assert publish_gallery(inst, MONTH, lambda: lossy_previews(inst)).written == 0, "and then gives up"


def test_a_document_with_few_pages_does_not_keep_the_others_waiting(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    submit("b.pdf", [20])
    work_month(inst, MONTH)
    both = Barrier(2, timeout=20)

    class Together(DecoderPreviews):
        def pages(self, *asked: Any) -> None:
            both.wait()
            super().pages(*asked)

    @contextmanager
    def together() -> Iterator[Together]:
        with ThreadPoolExecutor(4) as threads, DecoderPool(2, inst.policy, engines=ENGINES) as pool:
            yield Together(inst, pool, threads)

    publish_gallery(inst, MONTH, together)
    assert len([name for name in files(inst) if name.startswith("pages/")]) == 2


def test_a_document_that_waits_or_is_being_worked_is_late(inst: Installation, submit: Callable) -> None:
    submit("worked.pdf", [10])
    drop_document(inst.settings, "waiting.pdf", [20])
    from asset_pipeline.intake.inventory import take_inventory

    take_inventory(inst, utc_now(), MONTH)
    publish_gallery(inst, MONTH, lambda: open_previews(inst))
    month = month_of(inst)
    assert {row["title"]: row["state"] for row in month["documents"]} == {
        "worked.pdf": "late",
        "waiting.pdf": "waiting",
    }
    assert (month["totals"]["unfinished"], month["totals"]["waiting"]) == (1, 1)
    assert "worked" in month["words"]["late"][0]
