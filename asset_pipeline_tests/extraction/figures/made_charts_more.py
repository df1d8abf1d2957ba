"""More pages with figures: tones, areas, circles, circuits, slides and pages of papers."""

from __future__ import annotations

import math
import random

import pikepdf

from asset_pipeline_tests.extraction.figures.drawing import Box, Pen, add_page


def field_of_tones(pdf: pikepdf.Pdf) -> list[Box]:
    values = random.Random(2)
    pen = Pen().paragraph(60, 790, 470, 8)
    for row in range(10):
        for column in range(14):
            tone = values.random()
            pen.fill(1 - tone, 1 - 0.5 * tone, 1 - 0.2 * tone).bar(150 + 22 * column, 440 + 18 * row, 22, 18)
    for row in range(10):
        pen.text(118, 445 + 18 * row, f"site {row}", 7)
    for column in range(14):
        pen.text(156 + 22 * column, 430, f"{column}", 7)
    pen.paragraph(60, 410, 470, 16)
    add_page(pdf, pen.bytes())
    return [(117, 428, 458, 620)]


def stacked_areas(pdf: pikepdf.Pdf) -> list[Box]:
    values = random.Random(4)
    pen = Pen().paragraph(60, 790, 470, 8)
    base = [450.0] * 25
    for layer in range(3):
        top = [low + 25 + 25 * values.random() for low in base]
        outline = [(120 + 14 * k, y) for k, y in enumerate(top)] + [(120 + 14 * k, base[k]) for k in range(24, -1, -1)]
        pen.fill(0.2 + 0.25 * layer, 0.5, 0.7 - 0.2 * layer).path(outline, "h f")
        pen.text(460, base[12] + 15, f"river {layer}", 8)
        base = top
    pen.stroke(0, 0.75).line(120, 450, 456, 450).line(120, 450, 120, 620)
    for k in range(5):
        pen.text(102, 448 + 40 * k, str(k * 10), 8).text(116 + 84 * k, 438, str(2000 + 5 * k), 8)
    pen.paragraph(60, 410, 470, 16)
    add_page(pdf, pen.bytes())
    return [(102, 437, 485, 620)]


def three_circles(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 8).stroke(0.2, 1)
    for x, y, name in ((240, 560, "birds"), (340, 560, "fish"), (290, 480, "plants")):
        pen.circle(x, y, 80, "S").text(x - 12, y, name, 10)
    pen.paragraph(60, 370, 470, 16)
    add_page(pdf, pen.bytes())
    return [(160, 400, 420, 640)]


def circuit(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10).stroke(0, 0.8)
    pen.line(150, 620, 220, 620).line(280, 620, 420, 620).line(150, 480, 420, 480).line(420, 620, 420, 570)
    pen.path([(220 + 5 * k, 620 + (6 if k % 2 else -6) * (0 < k < 12)) for k in range(13)])
    pen.line(400, 570, 440, 570).line(400, 562, 440, 562).line(420, 562, 420, 480)
    pen.line(150, 620, 150, 570).line(150, 530, 150, 480).circle(150, 550, 20, "S").text(146, 547, "V", 10)
    pen.path([(310 + 4 * k, 480 + (5 if k % 2 else -5)) for k in range(10)])
    pen.text(245, 632, "R1", 9).text(446, 563, "C1", 9).paragraph(60, 440, 470, 20)
    add_page(pdf, pen.bytes())
    return [(130, 474, 458, 640)]


def chart_on_a_slide(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().fill(0.1, 0.12, 0.2).bar(0, 0, 960, 540).fill(0.9, 0.5, 0.1).bar(0, 455, 960, 6)
    pen.put("1 g BT /F1 32 Tf 1 0 0 1 60 480 Tm (Three good years) Tj ET")
    for number, height in enumerate((120, 190, 260)):
        pen.fill(0.3, 0.7, 0.9).bar(160 + 130 * number, 100, 80, height)
        pen.put(f"1 g BT /F1 16 Tf 1 0 0 1 {180 + 130 * number} 76 Tm (202{number}) Tj ET")
    pen.put("1 G 1.5 w").line(130, 100, 540, 100)
    for number in range(4):
        pen.put(f"1 g BT /F1 18 Tf 1 0 0 1 620 {340 - 50 * number} Tm (A point worth making) Tj ET")
    add_page(pdf, pen.bytes(), size=(960, 540))
    return [(130, 74, 540, 360)]


def paper_in_two_columns(pdf: pikepdf.Pdf) -> list[Box]:
    """A column figure between text, a fraction, a footnote rule and running heads."""
    pen = Pen().stroke(0, 0.4).text(54, 805, "Journal of Reeds", 8).line(54, 800, 541, 800)
    pen.paragraph(54, 790, 235, 22).paragraph(306, 560, 235, 28).line(120, 500, 190, 500).text(140, 503, "a + b", 9)
    pen.text(145, 490, "c", 9).paragraph(54, 480, 235, 26).line(54, 130, 140, 130).paragraph(54, 125, 235, 3, 7)
    pen.bar(336, 640, 190, 130, "S")
    for number in range(5):
        pen.text(320, 638 + 31 * number, f"{number}", 7).text(334 + 46 * number, 629, f"{number}", 7)
    for phase in range(3):
        pen.path([(336 + 9.5 * k, 650 + 5 * phase + k * (3 + phase)) for k in range(20)])
        for k in range(0, 20, 3):
            pen.put("0 g").circle(336 + 9.5 * k, 650 + 5 * phase + k * (3 + phase), 2)
    pen.text(400, 618, "sample size", 8).text(312, 690, "error", 8, turn=True)
    pen.text(306, 596, "Fig. 3. Error falls with sample size in all", 8).text(306, 586, "three rivers.", 8)
    add_page(pdf, pen.bytes())
    return [(304, 616, 527, 770)]


def boxes_and_whiskers(pdf: pikepdf.Pdf) -> list[Box]:
    values = random.Random(9)
    pen = Pen().paragraph(60, 790, 470, 8).stroke(0, 0.75).line(120, 440, 480, 440).line(120, 440, 120, 640)
    for number in range(6):
        x, low = 150 + 56 * number, 470 + 50 * values.random()
        high = low + 30 + 40 * values.random()
        pen.fill(0.7, 0.8, 0.9).bar(x, low, 28, high - low, "B").line(x, low + 14, x + 28, low + 14)
        pen.line(x + 14, low, x + 14, low - 20).line(x + 14, high, x + 14, high + 24)
        pen.line(x + 8, low - 20, x + 20, low - 20).line(x + 8, high + 24, x + 20, high + 24)
        pen.text(x + 4, 428, f"site {number}", 7)
    for number in range(5):
        pen.line(116, 440 + 45 * number, 120, 440 + 45 * number).text(98, 438 + 45 * number, f"{number * 5}", 8)
    pen.paragraph(60, 400, 470, 16)
    add_page(pdf, pen.bytes())
    return [(97, 426, 480, 640)]


def small_charts_in_a_grid(pdf: pikepdf.Pdf) -> list[Box]:
    """Four panels that share their axes and stand close: one figure."""
    pen = Pen().paragraph(60, 790, 470, 6)
    for row in range(2):
        for column in range(2):
            x, y = 130 + 178 * column, 440 + 128 * row
            pen.stroke(0, 0.6).bar(x, y, 170, 120, "S")
            pen.path([(x + 5 * k, y + 60 + 45 * math.sin(k / (3 + row + column))) for k in range(34)])
    for k in range(3):
        pen.text(126 + 170 * k, 428, f"{k}", 8).text(112, 440 + 120 * k, f"{k}", 8)
    pen.paragraph(60, 400, 470, 16)
    add_page(pdf, pen.bytes())
    return [(112, 427, 478, 688)]


def emblem_above_a_chapter(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().stroke(0, 1).circle(297, 690, 60, "S").circle(297, 690, 46, "S")
    for k in range(12):
        t = k * math.tau / 12
        pen.fill(0.2, 0.4, 0.3).path(
            [
                (297 + 12 * math.cos(t - 0.3), 690 + 12 * math.sin(t - 0.3)),
                (297 + 40 * math.cos(t), 690 + 40 * math.sin(t)),
                (297 + 12 * math.cos(t + 0.3), 690 + 12 * math.sin(t + 0.3)),
            ],
            "h f",
        )
    pen.text(210, 590, "The first chapter", 22).paragraph(60, 560, 470, 30)
    add_page(pdf, pen.bytes())
    return [(237, 630, 357, 750)]
