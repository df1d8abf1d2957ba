"""Plots without a drawn line, as statistics packages make them, and pages that resemble them without being any.

Met in the vignettes of such packages, whose pages cannot be shipped: points that are letters, mosaics of boxes,
fields of arrows that lie in rows like letters.
"""

from __future__ import annotations

import math

import pikepdf

from asset_pipeline_tests.extraction.figures.drawing import Box, Pen, add_page


def _axes(pen: Pen, left: float, bottom: float, right: float, top: float) -> Pen:
    pen.put("0 G 0.75 w").bar(left, bottom, right - left, top - bottom, "S")
    for step in range(6):
        x, y = left + 15 + step * (right - left - 30) / 5, bottom + 10 + step * (top - bottom - 20) / 5
        pen.line(x, bottom, x, bottom - 5).text(x - 4, bottom - 16, str(step * 10), 8)
        pen.line(left, y, left - 5, y).text(left - 20, y - 3, str(step), 8)
    return pen


def letters_as_points(pdf: pikepdf.Pdf) -> list[Box]:
    pen = _axes(Pen().paragraph(60, 790, 470, 8), 130, 430, 480, 640)
    for number in range(24):
        pen.text(150 + 13 * number, 460 + 150 * (number * 37 % 24) / 24, "ab"[number % 2], 8)
    pen.paragraph(60, 390, 470, 14)
    add_page(pdf, pen.bytes())
    return [(108, 410, 484, 644)]


def plot_with_a_page_to_itself(pdf: pikepdf.Pdf) -> list[Box]:
    """Its frame is larger than half the page, as a background is, and the axes end at their outer ticks."""
    pen = Pen().put("0 G 0.75 w")
    for number in range(10):
        pen.circle(74 + 43 * number, 87 + 38 * number, 2.7, "S")
    pen.line(117, 73, 459, 73).line(59, 125, 59, 432)
    for step in range(5):
        pen.line(117 + 85.5 * step, 73, 117 + 85.5 * step, 66).text(113 + 85.5 * step, 48, str(2 * step + 2), 12)
        pen.line(59, 125 + 76.5 * step, 52, 125 + 76.5 * step).text(30, 121 + 76.5 * step, str(2 * step + 2), 12)
    pen.bar(59, 73, 415, 371, "S")
    add_page(pdf, pen.bytes(), size=(504, 504))
    return [(30, 48, 474, 444)]


def broad_bars_far_apart(pdf: pikepdf.Pdf) -> list[Box]:
    """No base line, and gaps wider than those within most figures."""
    pen = Pen().paragraph(60, 790, 470, 8).put("0.75 g 0 G 0.75 w").line(115, 430, 115, 670)
    for step in range(5):
        pen.line(107, 430 + 60 * step, 115, 430 + 60 * step)
    for number, height in enumerate((48, 144, 96, 240)):
        pen.bar(130 + 80 * number, 430, 64, height, "B").text(155 + 80 * number, 416, "abcd"[number], 9)
    pen.paragraph(60, 390, 470, 14)
    add_page(pdf, pen.bytes())
    return [(107, 414, 434, 670)]


def cards_in_a_row(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 790, "Three ways to help", 16)
    for number, lines in enumerate((4, 9, 6)):
        x, height = 60 + 162 * number, 14 * lines + 40
        pen.fill(0.85, 0.9, 0.8).bar(x, 500, 140, height)
        pen.put("0 g").text(x + 8, 500 + height - 18, "Give", 12).paragraph(x + 8, 500 + height - 32, 124, lines, 9)
    pen.paragraph(60, 390, 470, 14)
    add_page(pdf, pen.bytes())
    return []


def mosaic(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 8).put("0.3 G 0.5 w").fill(0.8, 0.8, 0.85)
    x = 130.0
    for width, cuts in ((110, (40, 90, 50)), (60, (100, 20, 60)), (90, (30, 70, 80)), (40, (60, 60, 60))):
        y = 430.0
        for number, height in enumerate(cuts):
            pen.bar(x, y, width, height, "B")
            y += height + 3 + number
        x += width + 3
    pen.paragraph(60, 390, 470, 14)
    add_page(pdf, pen.bytes())
    return [(130, 430, 439, 620)]


def field_of_arrows(pdf: pikepdf.Pdf) -> list[Box]:
    pen = _axes(Pen().paragraph(60, 790, 470, 8), 130, 430, 480, 640).put("0 g")
    for row in range(6):
        for column in range(9):
            x, y, turn = 160 + 34 * column, 450 + 30 * row, 0.4 * (row + column)
            tip = (x + 14 * math.cos(turn), y + 14 * math.sin(turn))
            pen.path([(x, y - 1), tip, (x, y + 1)], "h f")
    pen.paragraph(60, 390, 470, 14)
    add_page(pdf, pen.bytes())
    return [(108, 410, 484, 644)]


def coloured_blocks_of_a_brochure(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen()
    for number, (x, y, width, height) in enumerate(
        ((40, 560, 250, 220), (300, 640, 255, 140), (300, 560, 120, 70), (430, 560, 125, 70), (40, 420, 515, 130))
    ):
        pen.fill(0.8, 0.85 - 0.05 * number, 0.7).bar(x, y, width, height)
        pen.text(x + 8, y + height - 18, "What we do", 12).paragraph(x + 8, y + height - 24, width - 16, 3, 8)
    pen.paragraph(60, 390, 470, 14)
    add_page(pdf, pen.bytes())
    return []


def form_with_boxes_to_tick(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 800, "Application for a mooring", 14).put("0 G 0.5 w")
    for row in range(14):
        y = 760 - 36 * row
        pen.text(60, y, "Name of the vessel", 9).line(170, y - 2, 430, y - 2)
        pen.line(440, y - 2, 440, y + 6).line(440, y - 2, 448, y - 2)
        pen.bar(460, y - 2, 9, 9, "S").text(474, y, "yes", 8).bar(500, y - 2, 9, 9, "S").text(514, y, "no", 8)
    add_page(pdf, pen.bytes())
    return []
