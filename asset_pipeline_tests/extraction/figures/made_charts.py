"""Pages with figures, drawn as spreadsheets, plotting libraries and typesetters draw them.

Each function adds one page and returns the boxes of its figures, labels included and captions left
out, measured by hand in points: what a person would cut out of the page.
"""

from __future__ import annotations

import math
import random

import pikepdf

from asset_pipeline_tests.extraction.figures.drawing import Box, Pen, add_page, axial, form, photo


def _bars(pen: Pen, x: float, y: float, width: float, height: float, count: int = 8, seed: int = 1) -> None:
    """A column chart with grid, axis, ticks and labels; its axes start at (x, y)."""
    values = random.Random(seed)
    pen.put("0.85 G 0.5 w")
    for step in range(1, 5):
        pen.line(x, y + height * step / 4, x + width, y + height * step / 4)
    pitch = width / count
    for number in range(count):
        pen.fill(0.27, 0.45, 0.77).bar(x + pitch * (number + 0.2), y, pitch * 0.6, height * values.uniform(0.2, 0.95))
    pen.put("0.3 G 0.75 w").line(x, y, x + width, y)
    for number in range(count):
        pen.line(x + pitch * number, y, x + pitch * number, y - 3)
        pen.text(x + pitch * (number + 0.25), y - 12, str(2010 + number), 6)
    for step in range(5):
        pen.text(x - 16, y + height * step / 4 - 2, str(step * 25), 6)


def spreadsheet_columns(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 780, "Visitors by year", 16).paragraph(60, 760, 470, 8)
    pen.put("1 g").bar(80, 420, 430, 230).put("0.8 G 0.75 w").bar(80, 420, 430, 230, "S")
    pen.text(240, 632, "Visitors in thousands", 11)
    _bars(pen, 120, 460, 280, 160)
    for number, name in enumerate(("Adults", "Children")):
        pen.fill(0.2 + 0.5 * number, 0.4, 0.7).bar(430, 540 - 14 * number, 6, 6).text(440, 540 - 14 * number, name, 7)
    pen.text(80, 400, "Figure 1. Visitors counted at the gate.", 9).paragraph(60, 380, 470, 14)
    add_page(pdf, pen.bytes())
    return [(80, 420, 510, 650)]


def plotted_lines_in_a_form(pdf: pikepdf.Pdf) -> list[Box]:
    """A plotting library's file set into a report: own form, clipped curves that leave the axes."""
    pen = Pen().put("1 g").bar(0, 0, 400, 260)
    for number in range(6):
        pen.stroke(0, 0.8).line(50 + 66 * number, 40, 50 + 66 * number, 36.5).text(46 + 66 * number, 24, str(number), 8)
        pen.line(50, 40 + 38 * number, 46.5, 40 + 38 * number).text(30, 38 + 38 * number, str(number * 2), 8)
    pen.put("q 50 40 330 200 re W n 0.12 0.47 0.71 RG 1.5 w")
    for phase in (0.0, 0.9):
        pen.path([(50 + 3.3 * k, 140 + 150 * math.sin(k / 9 + phase)) for k in range(140)])
    pen.put("Q").stroke(0, 0.8).bar(50, 40, 330, 200, "S").text(190, 8, "time in s", 9)
    pen.text(14, 110, "height in m", 9, turn=True)
    plot = form(pdf, pen.bytes(), [0, 0, 400, 260])
    page = Pen().paragraph(72, 770, 450, 12, 10).put("q 1 0 0 1 97 320 cm /P Do Q")
    page.text(97, 300, "Figure 2: Water level over time.", 9).paragraph(72, 280, 450, 12, 10)
    add_page(pdf, page.bytes(), xobjects={"P": plot})
    return [(100, 325, 480, 562)]


def flow_of_rounded_boxes(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(72, 770, 450, 10).stroke(0, 0.6)
    for number, name in enumerate(("collect", "clean", "count", "publish")):
        x = 90 + 110 * number
        pen.put("0.92 0.95 1 rg").round_box(x, 500, 80, 36).text(x + 22, 515, name, 9)
        if number:
            pen.put("0 g 0 G").arrow(x - 30, 518, x, 518)
    pen.put("0.92 0.95 1 rg").round_box(255, 430, 80, 36).text(270, 445, "discard", 9)
    pen.put("0 g 0 G").arrow(240, 500, 280, 466).paragraph(72, 400, 450, 16)
    add_page(pdf, pen.bytes())
    return [(90, 430, 500, 536)]


def chart_of_an_organisation(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 790, "Who we are", 18).paragraph(60, 770, 470, 6).stroke(0, 1)
    pen.bar(230, 620, 130, 32, "S").text(262, 632, "Director", 10).line(295, 620, 295, 596).line(125, 596, 465, 596)
    for number, name in enumerate(("Field work", "Laboratory", "Press")):
        x = 65 + 170 * number
        pen.line(x + 60, 596, x + 60, 572).bar(x, 540, 120, 32, "S").text(x + 30, 552, name, 10)
    pen.paragraph(60, 500, 470, 20)
    add_page(pdf, pen.bytes())
    return [(65, 540, 525, 652)]


def two_charts_side_by_side(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 8)
    _bars(pen, 85, 520, 180, 120, 6, 2)
    _bars(pen, 335, 520, 180, 120, 6, 3)
    pen.text(120, 655, "North bank", 9).text(370, 655, "South bank", 9).paragraph(60, 480, 470, 20)
    add_page(pdf, pen.bytes())
    return [(69, 506, 265, 663), (319, 506, 515, 663)]


def chart_beside_a_framed_photo(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 6).put("q 210 0 0 150 60 520 cm /Im Do Q").stroke(0.2, 1.5)
    pen.bar(60, 520, 210, 150, "S").put("1 0 0 RG 1 0 0 rg").arrow(100, 560, 160, 600, 8)
    _bars(pen, 330, 530, 200, 130, 7, 5)
    pen.paragraph(60, 490, 470, 18)
    add_page(pdf, pen.bytes(), xobjects={"Im": photo(pdf)})
    return [(314, 516, 530, 660)]


def pie_on_a_decorated_page(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().fill(0.96, 0.95, 0.9).bar(0, 0, 595, 842).fill(0.1, 0.3, 0.3).bar(0, 780, 595, 62)
    pen.bar(0, 0, 595, 24).text(40, 803, "Annual report", 20).paragraph(60, 750, 470, 8)
    start = 0.0
    for number, share in enumerate((0.4, 0.25, 0.2, 0.15)):
        pen.fill(0.2 * number, 0.4, 0.8 - 0.2 * number).slice(250, 500, 90, start, start + 360 * share)
        middle = math.radians(start + 180 * share)
        pen.text(250 + 100 * math.cos(middle) - 6, 500 + 100 * math.sin(middle) - 3, f"{share:.0%}", 8)
        pen.fill(0.2 * number, 0.4, 0.8 - 0.2 * number).bar(380, 530 - 16 * number, 8, 8)
        pen.text(393, 531 - 16 * number, f"group {number}", 8)
        start += 360 * share
    pen.paragraph(60, 360, 470, 18)
    add_page(pdf, pen.bytes())
    return [(145, 400, 425, 605)]


def scattered_points(pdf: pikepdf.Pdf) -> list[Box]:
    values = random.Random(11)
    pen = Pen().paragraph(60, 790, 470, 10).stroke(0, 0.75).bar(120, 430, 340, 210, "S")
    for number in range(6):
        pen.line(120 + 68 * number, 430, 120 + 68 * number, 434).text(116 + 68 * number, 418, str(number), 7)
    pen.fill(0.8, 0.3, 0.2)
    for _ in range(70):
        x = values.uniform(0, 1)
        pen.circle(130 + 320 * x, 440 + 180 * min(1, max(0, x + values.gauss(0, 0.12))), 2.2)
    pen.text(250, 404, "length in mm", 8).paragraph(60, 390, 470, 18)
    add_page(pdf, pen.bytes())
    return [(116, 403, 462, 640)]


def map_of_regions(pdf: pikepdf.Pdf) -> list[Box]:
    values = random.Random(5)
    pen = Pen().text(60, 800, "Where the reed grows", 14).stroke(0.4, 0.4)
    for row in range(9):
        for column in range(9):
            x, y = 130 + 38 * column, 330 + 42 * row
            ring = [
                (x + r * math.cos(t), y + r * math.sin(t))
                for t in [k * math.tau / 14 for k in range(14)]
                for r in [values.uniform(17, 23)]
            ]
            pen.fill(0.5 + 0.05 * (row % 5), 0.8, 0.6 - 0.05 * (column % 5)).path(ring, "h B")
    pen.text(240, 500, "Upper valley", 9).paragraph(60, 280, 470, 14)
    add_page(pdf, pen.bytes())
    return [(107, 307, 457, 689)]


def turned_page_with_crop_box(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen()
    _bars(pen, 150, 180, 420, 260, 10, 8)
    pen.text(280, 460, "Rain by month", 14).paragraph(150, 140, 420, 4)
    add_page(pdf, pen.bytes(), size=(842, 595), CropBox=[60, 40, 782, 555], Rotate=90)
    return [(134, 166, 570, 474)]


def lying_bars_of_a_survey(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 790, "Survey results", 16).paragraph(60, 770, 470, 5)
    for number, share in enumerate((82, 64, 47, 31, 12)):
        y = 640 - 26 * number
        pen.text(110, y + 4, ("Strongly agree", "Agree", "Neutral", "Disagree", "Never")[number], 9)
        pen.fill(0.2, 0.5, 0.4).bar(190, y, 2.8 * share, 16).text(196 + 2.8 * share, y + 4, f"{share} %", 9)
    pen.stroke(0.3, 0.75).line(190, 530, 190, 662).paragraph(60, 500, 470, 20)
    add_page(pdf, pen.bytes())
    return [(108, 530, 445, 662)]


def bars_of_shadings(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 8)
    for number, height in enumerate((60, 110, 150, 90, 130)):
        pen.put("q").bar(140 + 60 * number, 450, 40, height, "W n").put("/S1 sh Q")
        pen.text(150 + 60 * number, 438, f"Q{number + 1}", 8)
    pen.stroke(0, 1).line(130, 450, 430, 450).line(130, 450, 130, 620).paragraph(60, 410, 470, 16)
    add_page(pdf, pen.bytes(), shadings={"S1": axial((140, 450, 140, 600))})
    return [(130, 436, 430, 620)]


def curve_of_single_segments(pdf: pikepdf.Pdf) -> list[Box]:
    """Each segment stroked alone, as old plotting programs do, with dashes drawn as segments."""
    pen = Pen().paragraph(60, 790, 470, 8).stroke(0, 0.5)
    for a, b in ((120, 450), (120, 650)):
        pen.line(a, b, 480, b)
    for a in (120, 480):
        pen.line(a, 450, a, 650)
    heights = [470 + 150 * math.exp(-((k - 60) ** 2) / 700) for k in range(121)]
    for k in range(120):
        pen.line(120 + 3 * k, heights[k], 123 + 3 * k, heights[k + 1])
    for k in range(7):
        pen.text(116 + 60 * k, 438, str(k), 8)
    pen.text(270, 424, "wavelength", 9).paragraph(60, 400, 470, 16)
    add_page(pdf, pen.bytes())
    return [(116, 422, 484, 650)]


def schedule_of_bars(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 790, "Plan of work", 16).stroke(0.8, 0.5)
    for month in range(13):
        pen.line(180 + 26 * month, 520, 180 + 26 * month, 700)
    for month in range(12):
        pen.text(186 + 26 * month, 704, f"{month + 1}", 7)
    for number, (first, length) in enumerate(((0, 3), (1, 4), (4, 2), (5, 5), (8, 3), (10, 2))):
        pen.text(100, 678 - 28 * number, ("Survey", "Samples", "Analysis", "Writing", "Review", "Print")[number], 9)
        pen.fill(0.3, 0.5, 0.8).bar(180 + 26 * first, 674 - 28 * number, 26 * length, 14)
    pen.paragraph(60, 490, 470, 18)
    add_page(pdf, pen.bytes())
    return [(98, 520, 492, 711)]
