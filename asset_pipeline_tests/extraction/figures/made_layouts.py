"""Pages without any figure: tables, forms, frames, ornaments, lettering, codes, drawings over photos."""

from __future__ import annotations

import random

import pikepdf

from asset_pipeline_tests.extraction.figures.drawing import Box, Pen, add_page, photo


def table_with_all_rules(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 6).stroke(0, 0.5)
    for row in range(13):
        pen.line(70, 640 - 20 * row, 520, 640 - 20 * row)
    for column in range(6):
        pen.line(70 + 90 * column, 640, 70 + 90 * column, 400)
    for row in range(12):
        for column in range(5):
            pen.text(76 + 90 * column, 626 - 20 * row, f"value {row * 5 + column}", 8)
    add_page(pdf, pen.bytes())
    return []


def table_with_stripes(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().fill(0.2, 0.3, 0.5).bar(60, 700, 470, 22)
    for row in range(14):
        pen.fill(*((0.93, 0.95, 0.98) if row % 2 else (1, 1, 1))).bar(60, 680 - 20 * row, 470, 20)
        for column in range(4):
            pen.text(68 + 118 * column, 686 - 20 * row, f"cell {row} {column}", 8)
    pen.paragraph(60, 380, 470, 14)
    add_page(pdf, pen.bytes())
    return []


def table_of_shaded_cells(pdf: pikepdf.Pdf) -> list[Box]:
    """A cell a rectangle, some of them higher or wider than others, as word processors paint them."""
    pen = Pen()
    widths = (120, 90, 90, 170)
    y = 720.0
    for row in range(10):
        height = 18 + 14 * (row % 3 == 0)
        x = 60.0
        for column, width in enumerate(widths):
            pen.fill(0.85 if row == 0 or column == 0 else 0.97, 0.9, 0.95).bar(x, y - height, width, height)
            pen.put("0 g").bar(x, y - 0.5, width, 0.5).bar(x, y - height, 0.5, height)
            pen.text(x + 4, y - 12, f"text {row}.{column}", 8)
            x += width
        y -= height
    pen.paragraph(60, 460, 470, 18)
    add_page(pdf, pen.bytes())
    return []


def table_of_a_book(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().paragraph(60, 790, 470, 10).text(60, 650, "Table 4. Nests by year.", 9).stroke(0, 1)
    pen.line(60, 640, 530, 640).line(60, 618, 530, 618).line(60, 480, 530, 480)
    for row in range(8):
        for column in range(5):
            pen.text(66 + 95 * column, 626 - 19 * row, f"{row * 7 + column}", 9)
    pen.paragraph(60, 460, 470, 18)
    add_page(pdf, pen.bytes())
    return []


def table_with_marks_in_cells(pdf: pikepdf.Pdf) -> list[Box]:
    """Ticks and half-filled circles in the cells of a comparison."""
    pen = Pen().stroke(0.6, 0.5)
    for row in range(11):
        pen.line(60, 700 - 24 * row, 530, 700 - 24 * row)
    for row in range(10):
        pen.text(66, 684 - 24 * row, f"Property number {row}", 9).text(190, 684 - 24 * row, "see note", 8)
        for column in range(3):
            x, y = 290 + 90 * column, 688 - 24 * row
            pen.put("0 0.5 0.2 rg 0 0.5 0.2 RG")
            if (row + column) % 3:
                pen.circle(x, y, 4).text(x + 10, y - 3, "yes", 8)
            else:
                pen.path([(x - 4, y), (x - 1, y - 4), (x + 5, y + 4)]).text(x + 10, y - 3, "in part", 8)
    pen.paragraph(60, 430, 470, 18)
    add_page(pdf, pen.bytes())
    return []


def form_to_fill_in(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 790, "Application", 18).stroke(0, 0.5)
    for number in range(8):
        y = 740 - 34 * number
        pen.text(60, y + 6, "Name of applicant", 8).bar(170, y, 200, 18, "S").line(400, y, 530, y)
    for number in range(6):
        pen.circle(70, 440 - 16 * number, 4, "S").text(80, 437 - 16 * number, "option", 8)
        pen.bar(200, 436 - 16 * number, 8, 8, "S").text(214, 437 - 16 * number, "tick here", 8)
    for number in range(16):
        pen.bar(60 + 16 * number, 300, 16, 18, "S")
    pen.text(60, 325, "Account number", 8).line(60, 200, 260, 200).text(60, 190, "Signature", 7)
    add_page(pdf, pen.bytes())
    return []


def paragraphs_in_boxes(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().put("0.9 0.95 1 rg 0.2 G 1 w").round_box(60, 620, 470, 150, 10).paragraph(75, 755, 440, 9)
    pen.put("1 1 0.9 rg").bar(60, 450, 225, 150, "B").paragraph(70, 590, 205, 10)
    pen.put("0.95 g").bar(305, 450, 225, 150).put("0.8 0.2 0.1 rg").bar(305, 450, 4, 150)
    pen.paragraph(318, 590, 205, 10)
    pen.paragraph(60, 430, 470, 20)
    add_page(pdf, pen.bytes())
    return []


def photo_with_arrows(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().put("q 360 0 0 260 110 420 cm /Im Do Q").stroke(0, 2).bar(110, 420, 360, 260, "S")
    pen.put("1 1 0 RG 1 1 0 rg 1.5 w")
    for number in range(5):
        pen.arrow(150 + 60 * number, 460, 180 + 50 * number, 560, 8).circle(150 + 60 * number, 455, 7)
    pen.text(110, 400, "Photo: the weir seen from the north", 8).paragraph(60, 380, 470, 16)
    add_page(pdf, pen.bytes(), xobjects={"Im": photo(pdf)})
    return []


def decorated_page(pdf: pikepdf.Pdf) -> list[Box]:
    """Background, waves that run off the page, a side bar, a footer with dots."""
    pen = Pen().fill(0.97, 0.97, 0.94).bar(-5, -5, 605, 852)
    pen.put("0.1 0.4 0.5 rg 0 842 m 0 760 l 150 720 300 820 595 770 c 595 842 l h f")
    pen.put("0.3 0.6 0.7 rg 0 842 m 0 780 l 180 750 320 830 595 790 c 595 842 l h f")
    pen.fill(0.1, 0.4, 0.5).bar(0, 0, 18, 842).stroke(0.6, 0.5).line(60, 60, 540, 60)
    for number in range(3):
        pen.put("0.1 0.4 0.5 rg").circle(520 + 8 * number, 50, 2)
    pen.paragraph(60, 690, 470, 40)
    add_page(pdf, pen.bytes())
    return []


def lettering_as_outlines(pdf: pikepdf.Pdf) -> list[Box]:
    """A headline and lines of text turned into paths, as designers do before printing."""
    shapes = random.Random(8)
    pen = Pen().put("0 g")
    for line in range(14):
        y, size = (700.0, 40.0) if line == 0 else (660.0 - 16 * line, 10.0)
        x = 70.0
        while x < 500:
            width = size * shapes.choice((0.3, 0.55, 0.6, 0.7))
            high = size * shapes.choice((0.52, 0.52, 0.74, 0.74))
            pen.put(
                f"{x:.2f} {y:.2f} m {x:.2f} {y + high:.2f} l {x + width:.2f} {y + high:.2f} "
                f"{x + width:.2f} {y + high / 2:.2f} {x + width / 2:.2f} {y + high / 2:.2f} c "
                f"{x + width:.2f} {y + high / 3:.2f} {x + width:.2f} {y:.2f} {x + width / 3:.2f} {y:.2f} c h f"
            )
            x += width + size * (0.1 if shapes.random() < 0.8 else 0.45)
    add_page(pdf, pen.bytes())
    return []


def codes_of_squares_and_bars(pdf: pikepdf.Pdf) -> list[Box]:
    bits = random.Random(6)
    pen = Pen().paragraph(60, 790, 470, 10).put("0 g")
    for row in range(29):
        for column in range(29):
            if bits.random() < 0.5:
                pen.bar(420 + 3 * column, 480 + 3 * row, 3, 3)
    x = 80.0
    for number in range(60):
        width = bits.choice((1, 1, 2, 3))
        low = 494 if number in (0, 1, 29, 30, 58, 59) else 500
        pen.bar(x, low, width, 560 - low)
        x += width + bits.choice((1, 2, 3))
    pen.text(100, 490, "4 006381 333931", 9).paragraph(60, 460, 470, 20)
    add_page(pdf, pen.bytes())
    return []


def small_emblem_and_bullets(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().put("0 0.3 0.6 rg")
    for number in range(6):
        pen.circle(70 + 4 * number, 805, 8 - number).path([(60, 795), (70, 815 - number), (80, 795)], "h f")
    pen.text(92, 800, "The Trust", 12).stroke(0.7, 0.5).line(60, 785, 535, 785)
    for number in range(9):
        pen.put("0 g").circle(66, 753 - 40 * number, 2).paragraph(76, 760 - 40 * number, 450, 3)
        pen.stroke(0, 0.6).line(76, 748 - 40 * number, 300, 748 - 40 * number)
    pen.stroke(0.7, 0.5).line(60, 60, 535, 60).text(60, 48, "Page 4", 8)
    add_page(pdf, pen.bytes())
    return []


def month_as_a_calendar(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().text(60, 560, "October", 24).stroke(0.3, 0.75)
    for row in range(6):
        pen.line(60, 520 - 90 * row, 780, 520 - 90 * row)
    for column in range(8):
        pen.line(60 + 720 / 7 * column, 520, 60 + 720 / 7 * column, 70)
    for day in range(31):
        pen.text(66 + 720 / 7 * (day % 7), 505 - 90 * (day // 7), str(day + 1), 10)
    add_page(pdf, pen.bytes(), size=(842, 595))
    return []


def cover_of_colour_blocks(pdf: pikepdf.Pdf) -> list[Box]:
    pen = Pen().fill(0.1, 0.2, 0.3).bar(0, 400, 595, 442).fill(0.9, 0.5, 0.2).bar(60, 330, 200, 140)
    pen.fill(0.3, 0.6, 0.5).bar(260, 330, 120, 70).put("1 g BT /F1 40 Tf 1 0 0 1 60 600 Tm (Annual report) Tj ET")
    pen.put("1 G 3 w").line(60, 580, 240, 580).text(60, 300, "Twelve months on the river", 14)
    add_page(pdf, pen.bytes())
    return []
