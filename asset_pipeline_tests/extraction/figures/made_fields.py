"""Fields of coloured cells that show figures, pages that resemble them without being any, and charts of few paths.

Mosaics, waffles and years of days are boxes in rows and columns as a table has them; what tells them is that colour
says what words say in a table.
"""

from __future__ import annotations

import itertools
import math
import random

import pikepdf

from asset_pipeline_tests.extraction.figures.drawing import Box, Pen, add_page


def _page(pdf: pikepdf.Pdf, pen: Pen) -> None:
    add_page(pdf, pen.paragraph(60, 390, 470, 14).bytes())


def waffle(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10)
    tones = [(0.2, 0.4, 0.7)] * 38 + [(0.8, 0.5, 0.2)] * 29 + [(0.4, 0.7, 0.4)] * 20 + [(0.85, 0.85, 0.85)] * 13
    for number, tone in enumerate(tones):
        pen.fill(*tone).bar(200 + 18 * (number % 10), 460 + 18 * (number // 10), 16, 16)
    for number, name in enumerate(("Reeds", "Meadow", "Woods", "Paved")):
        pen.text(400, 620 - 20 * number, name, 9)
    _page(pdf, pen)
    return [(200, 460, 430, 640)]


def year_of_days(pdf: pikepdf.Pdf) -> list[Box]:
    pen, values = Pen().paragraph(60, 790, 470, 10), random.Random(9)
    tones = [(0.92, 0.93, 0.94), (0.6, 0.9, 0.6), (0.3, 0.75, 0.4), (0.15, 0.6, 0.3), (0.1, 0.4, 0.2)]
    for week, day in itertools.product(range(40), range(7)):
        pen.fill(*values.choice(tones)).bar(80 + 11 * week, 500 + 11 * day, 9, 9)
    for number, name in enumerate(("Mon", "Wed", "Fri")):
        pen.text(55, 502 + 22 * number, name, 7)
    _page(pdf, pen)
    return [(55, 500, 518, 575)]


def mosaic_in_rows_and_columns(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10)
    across, up = itertools.pairwise((120, 220, 290, 430)), itertools.pairwise((460, 520, 600, 640))
    for number, ((left, right), (low, high)) in enumerate(itertools.product(across, up)):
        gray = 0.2 + 0.08 * number
        pen.fill(gray, gray, 0.9).bar(left, low, right - left - 3, high - low - 3)
    _page(pdf, pen)
    return [(120, 460, 427, 637)]


def spines_of_equal_columns(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10)
    for number, share in enumerate((0.3, 0.55, 0.2, 0.7, 0.4)):
        x = 130 + 60 * number
        pen.fill(0.3, 0.3, 0.3).bar(x, 460, 60, 180 * share)
        pen.fill(0.85, 0.85, 0.85).bar(x, 460 + 180 * share, 60, 180 * (1 - share))
    _page(pdf, pen)
    return [(130, 460, 430, 640)]


def chart_in_two_paths(pdf: pikepdf.Pdf) -> list[Box]:
    """All axes and ticks in one path, the curve in another."""
    pen, values = Pen().paragraph(60, 790, 470, 10).stroke(0), random.Random(2)
    ticks = [f"116 {460 + 45 * k} m 120 {460 + 45 * k} l" for k in range(5)]
    ticks += [f"{120 + 70 * k} 456 m {120 + 70 * k} 460 l" for k in range(6)]
    pen.put("120 640 m 120 460 l 470 460 l", *ticks, "S").put("0.8 0.2 0.2 RG")
    pen.path([(120 + 14 * k, 480 + 100 * values.random() + 2 * k) for k in range(26)])
    for number in range(5):
        pen.text(98, 457 + 45 * number, str(20 * number), 8)
    _page(pdf, pen)
    return [(98, 456, 470, 640)]


def island_in_one_path(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10).fill(0.6, 0.7, 0.5)
    turns = [k * math.tau / 120 for k in range(120)]
    pen.path([(300 + 100 * math.cos(t) + 9 * math.cos(9 * t), 540 + 80 * math.sin(t)) for t in turns], "h B")
    _page(pdf, pen)
    return [(191, 460, 409, 620)]


def crossword(pdf: pikepdf.Pdf) -> list[Box]:
    pen, values = Pen().paragraph(60, 790, 470, 10).stroke(0, 0.5), random.Random(1)
    for row, column in itertools.product(range(11), range(11)):
        tone = (0, 0, 0) if values.random() < 0.2 else (1, 1, 1)
        pen.fill(*tone).bar(180 + 18 * column, 440 + 18 * row, 18, 18, "B")
    _page(pdf, pen)
    return []


def days_of_a_month(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10)
    tones = [(0.98, 0.98, 0.9), (0.95, 0.95, 0.9), (0.9, 0.95, 1), (1, 0.9, 0.9), (0.9, 1, 0.9)]
    for day in range(35):
        x, y = 80 + 62 * (day % 7), 430 + 40 * (day // 7)
        pen.fill(*tones[day % 5]).bar(x, y, 60, 38).text(x + 4, y + 26, str(day + 1), 9)
    _page(pdf, pen)
    return []


def empty_fields_of_a_form(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10)
    for row in range(8):
        pen.text(80, 640 - 24 * row, f"Question {row}", 9)
        for column in range(6):
            pen.fill(*((0.93, 0.95, 1) if column % 2 else (0.98, 0.96, 0.9))).bar(
                200 + 50 * column, 634 - 24 * row, 46, 18
            )
    _page(pdf, pen)
    return []


def paint_card(pdf: pikepdf.Pdf) -> list[Box]:
    """Swatches with a name under each."""
    pen, values = Pen().paragraph(60, 790, 470, 10), random.Random(4)
    for number in range(24):
        x, y = 80 + 75 * (number % 6), 620 - 55 * (number // 6)
        pen.fill(values.random(), 0.6, 0.7).bar(x, y, 65, 32).text(x, y - 10, f"Lacquer {number}", 8)
    _page(pdf, pen)
    return []


def signed_letter(pdf: pikepdf.Pdf) -> list[Box]:
    """A signature and a flourish: drawn, each in one path, and no figure by their size."""
    pen, values = Pen().paragraph(60, 790, 470, 20).stroke(0, 1.2), random.Random(8)
    pen.path([(90 + 2 * k, 480 + 12 * math.sin(0.9 * k) + 6 * values.random()) for k in range(50)])
    pen.line(80, 465, 240, 465).text(80, 452, "Keeper of the bank", 8)
    pen.path([(180 + 4 * k, 420 + 4 * math.sin(k / 2)) for k in range(60)])
    _page(pdf, pen)
    return []
