"""The gallery as people use it: in a real browser, from disk, with mouse, keyboard, phone and printer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from asset_pipeline_tests.commands import Command, WarmProcess
from asset_pipeline_tests.ui.browsing import Watch, watch
from asset_pipeline_tests.ui.conftest import EMPTY, HOSTILE, MISSING, PAGE, WAITING, Month

DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 800}


class Shown:
    """An opened gallery."""

    def __init__(self, page: Page, seen: Watch) -> None:
        self.page, self.seen = page, seen

    def names(self) -> list[str]:
        """Names of the pictures that are drawn."""
        return [str(card.get_attribute("title")) for card in self.page.locator(".card").all()]

    def find_page(self, document: str, page: int | str) -> str:
        """Answer of the page finder."""
        self.page.select_option("#finder-document", label=document)
        self.page.fill("#finder-page", str(page))
        self.page.click("text=Show page")
        expect(self.page.locator("#page")).to_be_visible()
        answer = self.page.locator("#page-answer").inner_text()
        self.page.keyboard.press("Escape")
        return answer


@pytest.fixture
def shown(browser: Browser, month: Month) -> Iterator[Shown]:
    """The gallery, opened from disk. Whatever the test does, the page asks nobody else and complains of nothing."""
    page = browser.new_page(viewport=DESK)
    page.set_default_timeout(20_000)
    seen = watch(page)
    page.goto(month.address)
    page.wait_for_selector(".card img")
    yield Shown(page, seen)
    home = month.folder.as_uri()
    assert not [address for address in seen.addresses if not address.startswith((home, "about:blank"))]
    assert seen.complaints == []
    page.close()


def test_the_totals_are_those_of_the_ledger(shown: Shown, month: Month) -> None:
    for name, count in {
        "documents": month.summary.documents,
        "pages": month.summary.pages,
        "archived": month.summary.archived,
        "collapsed": month.summary.collapsed,
        "derived": month.summary.derived,
        "quarantined": month.summary.quarantined,
        "decorative": month.summary.decorative,
    }.items():
        assert shown.page.inner_text(f"#total-{name}") == f"{count:,}"


def test_pictures_are_found_by_document_kind_status_and_text(shown: Shown, month: Month) -> None:
    page, found = shown.page, shown.page.locator("#found")
    main = month.summary.archived + month.summary.derived + month.summary.quarantined
    expect(found).to_contain_text(f"{main} pictures in 11 documents")
    page.select_option("#kind", "vector_figure")
    expect(found).to_contain_text("2 pictures in 1 document")
    page.click("text=Clear")
    page.select_option("#status", "quarantined")
    expect(found).to_contain_text("2 pictures in 2 documents")
    page.click("text=Clear")
    page.select_option("#document", label="dune-restoration.pdf")
    expect(found).to_contain_text("9 pictures in 1 document")
    page.click("text=Clear")
    page.fill("#text", "raw MOSÁIC")
    expect(found).to_contain_text("1 picture in 1 document")
    assert page.evaluate("shared.folded('e\u0301t\u00c9')") == "ete", "what is searched is folded as what is asked"
    page.fill("#text", "nothing like this")
    expect(found).to_contain_text("Nothing fits")


def test_a_month_without_documents_says_so_and_speaks_of_no_filter(browser: Browser, month: Month) -> None:
    page = browser.new_page()
    page.goto((month.folder.with_name(EMPTY) / "index.html").as_uri())
    expect(page.locator("#found")).to_have_text("0 pictures in 0 documents. Nothing was dropped for this month")
    page.close()


def test_repeats_are_one_picture_that_says_on_how_many_pages(shown: Shown, month: Month) -> None:
    page = shown.page
    page.select_option("#document", label="coastline-atlas.pdf")
    expect(page.locator(".card", has_text="on 3 pages")).to_have_count(1)
    page.select_option("#status", "collapsed")
    expect(page.locator("#found")).to_contain_text("2 pictures")


def test_decoration_is_behind_a_switch(shown: Shown, month: Month) -> None:
    page = shown.page
    page.select_option("#document", label="dune-restoration.pdf")
    expect(page.locator("#found")).to_contain_text("9 pictures")
    page.get_by_role("switch", name="Show decoration").check()
    expect(page.locator("#found")).to_contain_text("10 pictures")
    expect(page.locator(".card", has_text="decoration")).to_have_count(1)


def test_a_quarantined_picture_says_why_and_what_to_do(shown: Shown) -> None:
    page = shown.page
    page.select_option("#status", "quarantined")
    page.locator(".card", has_text="more pixels than allowed").click()
    expect(page.locator("#picture")).to_contain_text("raise the limit in the policy")
    expect(page.locator(".sheet")).to_be_visible()
    assert page.locator(".sheet > img").count() == 0, "a page that holds it is not drawn"
    expect(page.locator(".sheet button.quarantined")).to_have_count(1)


def test_a_page_shows_its_pictures_in_place(shown: Shown) -> None:
    page = shown.page
    page.select_option("#document", label="coastline-atlas.pdf")
    card = page.locator(".card", has_text="Map 1")
    expect(card.locator(".size > span")).to_have_count(2)
    size, resolution = (words.inner_text() for words in card.locator(".size > span").all())
    card.click()
    expect(page.locator("#page-title")).to_have_text("Page 2")
    for words in (size, resolution):
        expect(page.locator("#picture")).to_contain_text(words)
    expect(page.locator(".sheet > img")).to_be_visible()
    sheet, box = page.locator(".sheet").bounding_box(), page.locator(".sheet button[aria-pressed=true]").bounding_box()
    assert sheet and box
    # Map 1 lies below the head of the page, inside its margins, as drawn by fixtures/hard.py.
    assert sheet["x"] < box["x"] < box["x"] + box["width"] < sheet["x"] + sheet["width"]
    assert sheet["y"] < box["y"] < sheet["y"] + sheet["height"] / 2
    assert page.evaluate("document.querySelector('.sheet > img').naturalWidth") > 300


def test_every_cause_of_a_missing_picture_is_one_step_away(shown: Shown) -> None:
    assert "draws no picture" in shown.find_page("volunteer-handbook.pdf", 2)
    assert "waits in the inbox" in shown.find_page("just-dropped.pdf", 87)
    assert "held back" in shown.find_page("coastline-atlas.pdf", 3)
    assert "needs a password" in shown.find_page("board-minutes.pdf", 87)
    assert "No such page" in shown.find_page("coastline-atlas.pdf", 87)
    assert "in the archive" in shown.find_page("saltmarsh-annual-report.pdf", "ii")


@pytest.mark.parametrize(("name", "cause"), [*((name, cause) for cause, name in MISSING.items()), (WAITING, "late")])
def test_why_page_87_is_missing_is_told_alike_by_gallery_command_line_and_sql(
    shown: Shown, month: Month, warm_process: WarmProcess, tmp_path: Path, name: str, cause: str
) -> None:
    """Each in one step; where only the document can tell, it tells for each of its pages."""
    sql = f"SELECT state, meaning, remedy FROM pages WHERE document = '{name}' AND coalesce(page, {PAGE}) = {PAGE}"
    command = Command(tmp_path, warm_process)
    (told,) = answer_of(command, month, "page", name, str(PAGE))
    assert told["state"] == cause
    assert answer_of(command, month, "catalogue", "query", sql) == [
        {part: told[part] for part in ("state", "meaning", "remedy")}
    ]
    answer = shown.find_page(name, PAGE)
    assert f"{told['meaning']} {told['remedy']}".rstrip() in answer
    assert answer.splitlines()[0] == {"decorative": "Only decoration"}.get(cause, cause.replace("_", " ").capitalize())


def answer_of(command: Command, month: Month, *arguments: str) -> Any:
    """What the command line answers, as JSON."""
    ended = command(*arguments, "--format", "json", ASSET_PIPELINE_HOME=str(month.home))
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def test_a_document_shows_the_state_of_all_its_pages(shown: Shown) -> None:
    page = shown.page
    page.select_option("#document", label="volunteer-handbook.pdf")
    page.click("text=All 4 pages")
    expect(page.get_by_role("button", name="Page 3: No picture")).to_be_visible()
    page.get_by_role("button", name="Page 3: No picture").click()
    expect(page.locator("#page-answer")).to_contain_text("draws no picture")


def test_all_of_it_works_from_the_keyboard(shown: Shown) -> None:
    page = shown.page
    page.keyboard.press("/")
    page.keyboard.type("raw mosaic")
    expect(page.locator(".card")).to_have_count(1)
    focused = "document.activeElement.className || document.activeElement.id || document.activeElement.tagName"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "card":
            break
    assert page.evaluate(focused) == "card"
    page.keyboard.press("Enter")
    expect(page.locator("#page-title")).to_have_text("Page 3")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#page-title")).to_have_text("Page 2")
    page.keyboard.press("Escape")
    expect(page.locator("#page")).to_be_hidden()
    assert page.evaluate(focused) == "card", "focus comes back to where it was"


def test_arrows_move_from_picture_to_picture(shown: Shown) -> None:
    page = shown.page
    page.select_option("#document", label="coastline-atlas.pdf")
    page.locator(".card").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[...document.querySelectorAll('.card')].indexOf(document.activeElement)") == 1


def test_a_hostile_name_is_shown_as_what_it_is(shown: Shown) -> None:
    expect(shown.page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    assert shown.page.locator("img[src='x']").count() == 0
    shown.page.select_option("#document", label=HOSTILE)
    expect(shown.page.locator(".card").first).to_be_visible()


def test_an_address_leads_to_a_page(shown: Shown, month: Month) -> None:
    shown.page.select_option("#document", label="coastline-atlas.pdf")
    shown.page.locator(".card").first.click()
    expect(shown.page.locator("#page")).to_be_visible()
    address = shown.page.evaluate("location.href")
    assert "#" in address
    shown.page.keyboard.press("Escape")
    shown.page.goto("about:blank")
    shown.page.goto(address)
    expect(shown.page.locator("#page-document")).to_contain_text("coastline-atlas.pdf")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_barrier_for_those_who_see_hear_or_move_otherwise(browser: Browser, month: Month, scheme, size) -> None:
    page = browser.new_page(viewport=size, color_scheme=scheme, bypass_csp=True)
    page.goto(month.address)
    page.wait_for_selector(".card img")
    page.locator("details.pages summary").first.click()
    for step in ("list", "page"):
        if step == "page":
            page.locator(".card").nth(2).click()
            expect(page.locator("#page")).to_be_visible()
        found = Axe().run(page).response["violations"]
        assert not [(rule["id"], rule["help"]) for rule in found if rule["impact"] in ("serious", "critical")]
    page.close()


def test_a_phone_shows_it_without_scrolling_sideways(browser: Browser, month: Month) -> None:
    page = browser.new_page(viewport=PHONE)
    page.goto(month.address)
    page.wait_for_selector(".card img")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    second = page.locator(".card").nth(1)
    expect(second).to_be_in_viewport()
    assert second.bounding_box()["x"] > 150, "two pictures side by side, without scrolling"
    expect(page.locator("#kind")).to_be_hidden()
    page.click("#more")
    page.select_option("#kind", "vector_figure")
    expect(page.locator("#found")).to_contain_text("2 pictures in 1 document")
    page.click("#clear")
    page.locator(".card").first.click()
    expect(page.locator("#page-close")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.close()


def test_printing_brings_every_picture_and_no_controls(browser: Browser, month: Month) -> None:
    page = browser.new_page(viewport=DESK)
    page.add_init_script("window.print = () => { document.title = 'printed'; }")
    page.goto(month.address)
    page.wait_for_selector(".card img")
    page.click("#print")
    expect(page).to_have_title("printed")
    main = month.summary.archived + month.summary.derived + month.summary.quarantined
    assert page.locator(".card").count() == main
    assert page.evaluate("[...document.querySelectorAll('.card img')].every((image) => image.naturalWidth > 0)")
    page.emulate_media(media="print")
    expect(page.locator(".bar")).to_be_hidden()
    expect(page.locator("#print")).to_be_hidden()
    assert page.pdf().startswith(b"%PDF-")
    page.close()


def test_the_policy_of_the_page_lets_nothing_in_from_outside(browser: Browser, month: Month) -> None:
    page = browser.new_page()
    page.goto(month.address)
    page.wait_for_selector(".card img")
    page.evaluate(
        """() => {
          const inline = document.createElement("script");
          inline.textContent = "window.entered = true";
          const outside = document.createElement("script");
          outside.src = "https://example.com/x.js";
          document.head.append(inline, outside);
          const image = "<img src='https://example.com/x.png' onerror='window.entered = true'>";
          document.body.insertAdjacentHTML("beforeend", image);
        }"""
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.entered") is None
    page.close()
