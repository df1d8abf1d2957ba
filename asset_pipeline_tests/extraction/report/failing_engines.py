"""Engines that fail on one page of a document, or take turns unfairly. Run only inside real decoder processes."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from asset_pipeline.extraction import pypdf
from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.pypdf import PypdfEngine
from asset_pipeline.model import Extraction, Page

BAD_PAGE = 3
LEFT_OUT = 12


class _FailsOnPage3(PypdfEngine):
    def extract(self, request: Request) -> Extraction:
        read_page = pypdf._read_page

        def read(document: pypdf._Document, number: int, *others: object) -> Page:
            if number == BAD_PAGE:
                self.fail()
            return read_page(document, number, *others)  # type: ignore[arg-type]

        pypdf._read_page = read  # type: ignore[assignment]
        return super().extract(request)

    def fail(self) -> None:
        raise NotImplementedError


class CrashesOnPage3(_FailsOnPage3):
    def fail(self) -> None:
        os.abort()


class HungryOnPage3(_FailsOnPage3):
    def fail(self) -> None:
        raise MemoryError


class HangsOnPage3(_FailsOnPage3):
    def fail(self) -> None:
        time.sleep(60)


class CrashesOnCounting(PypdfEngine):
    def inspect(self, request: Request) -> Inspection:
        os.abort()


class CrashesOnOpening(CrashesOnCounting):
    def extract(self, request: Request) -> Extraction:
        os.abort()


class Hangs(PypdfEngine):
    def extract(self, request: Request) -> Extraction:
        time.sleep(60)
        return super().extract(request)


class HangsOnCounting(PypdfEngine):
    """Half of a document's time of two seconds is over when it crashes."""

    def inspect(self, request: Request) -> Inspection:
        time.sleep(60)
        return super().inspect(request)

    def extract(self, request: Request) -> Extraction:
        time.sleep(1)
        os.abort()


class Dawdles(PypdfEngine):
    """Takes two fifths of a second for whatever it reads."""

    def extract(self, request: Request) -> Extraction:
        time.sleep(0.4)
        return super().extract(request)


class KeepsTurns(CrashesOnCounting):
    """Takes all turns and answers for none of these pages; reads honestly where there are no turns."""

    def extract(self, request: Request) -> Extraction:
        extraction = super().extract(request)
        return extraction if request.turns is None else extraction.model_copy(update={"pages": [], "pictures": []})


class TakesNoTurns(CrashesOnCounting):
    """Answers for all pages, whoever's turn they are."""

    def extract(self, request: Request) -> Extraction:
        return super().extract(replace(request, turns=None))


class TakesOneTurn(CrashesOnCounting):
    """Leaves the other turns, and answers for the first page."""

    def extract(self, request: Request) -> Extraction:
        if request.turns is not None:
            os.read(request.turns.descriptor, 1)
        return super().extract(replace(request, turns=None, last=request.last or request.first))


class TakesOneTurnForAll(CrashesOnCounting):
    """Leaves the other turns, and answers for all pages all the same."""

    def extract(self, request: Request) -> Extraction:
        if request.turns is not None:
            os.read(request.turns.descriptor, 1)
        return super().extract(replace(request, turns=None))


class LeavesPageOut(CrashesOnCounting):
    """Answers for all pages but one, whoever asks."""

    def extract(self, request: Request) -> Extraction:
        extraction = super().extract(request)
        return extraction.model_copy(update={"pages": [row for row in extraction.pages if row.page != LEFT_OUT]})


class CountsMorePages(CrashesOnCounting):
    """Where it takes turns, it answers for a page behind the last as well; the first to be asked knows how many."""

    def extract(self, request: Request) -> Extraction:
        extraction = super().extract(request)
        if request.turns is None:
            return extraction
        pages = (extraction.source.pages or 0) + 1
        source = extraction.source.model_copy(update={"pages": pages})
        behind = [*extraction.pages, Page(page=pages, drawn=0)]
        return extraction.model_copy(update={"source": source, "pages": behind})


class Waits(PypdfEngine):
    """Reads its document only when told to, by a file in its folder."""

    def extract(self, request: Request) -> Extraction:
        (request.out / "waiting").touch()
        while not (request.out / "go").exists():
            time.sleep(0.01)
        return super().extract(request)
