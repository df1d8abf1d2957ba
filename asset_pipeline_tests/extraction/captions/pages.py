"""Pages as people lay them out, with the caption of each picture as a reader would name it.

``PAGES`` maps a page's name to a function that writes it and returns the captions of its pictures, in the
order in which they are drawn; None for a picture without one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

Captions = list[str | None]

BODY = [
    "The survey began in early spring and went on until the nights were too long for boats. In each of the",
    "twelve reaches the crew took three samples, and each was read twice by people who did not know whose it",
    "was. Where two readings were further apart than a tenth, a third was made, and the median is given here.",
    "Water was high all through May. The gauges at the mill stood still for two days, which is why the series",
    "has a gap; it is shown as one, and nothing was put in its place. By June the bar had moved to the north.",
]
NARROW = [
    "The survey began in early spring and",
    "went on until the nights were too long",
    "for boats. In each of the twelve reaches",
    "the crew took three samples, and each",
    "was read twice by people who did not",
    "know whose it was. Where two readings",
    "were further apart than a tenth, a third",
    "was made, and the median is given here.",
]


@dataclass
class Paper:
    """A page being written; measures in points, origin at the bottom left."""

    pdf: pikepdf.Pdf
    width: float = 595
    height: float = 842
    content: list[str] = field(default_factory=list)
    pictures: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, Any] = field(default_factory=dict)

    def picture(self, x: float, y: float, width: float, height: float, turn: str | None = None) -> None:
        """A gray picture of its own in this box."""
        tone = 40 + 12 * len(self.pictures)
        stream = self.pdf.make_stream(bytes((tone + step) % 256 for step in range(256)))
        keys = {"Type": Name.XObject, "Subtype": Name.Image, "Width": 16, "Height": 16, "BitsPerComponent": 8}
        for key, value in (keys | {"ColorSpace": Name.DeviceGray}).items():
            stream["/" + key] = value
        name = f"/P{len(self.pictures)}"
        self.pictures[name] = stream
        self.content.append(f"q {turn or f'{width} 0 0 {height} {x} {y}'} cm {name} Do Q\n")

    def text(
        self, x: float, y: float, *lines: str, size: float = 10, font: str = "R", leading: float = 1.2, turn: str = ""
    ) -> None:
        """Lines from the baseline ``y`` down; ``turn`` is the upper part of a text matrix."""
        matrix = f"{turn or '1 0 0 1'} {x} {y}"
        body = " T* ".join(f"({_escape(line)}) Tj" for line in lines)
        self.content.append(f"BT /{font} {size} Tf {size * leading} TL {matrix} Tm {body} ET\n")

    def centred(self, middle: float, y: float, *lines: str, size: float = 9, font: str = "R") -> None:
        """Lines centred by the widths that Helvetica has on average."""
        for number, line in enumerate(lines):
            self.text(middle - len(line) * size * 0.23, y - number * size * 1.2, line, size=size, font=font)

    def body(self, x: float, y: float, lines: list[str] = BODY, size: float = 10) -> None:
        """A paragraph."""
        self.text(x, y, *lines, size=size)

    def finish(self) -> None:
        """Make it a page."""
        page = self.pdf.add_blank_page(page_size=(self.width, self.height))
        fonts = {"/R": "Helvetica", "/B": "Helvetica-Bold", "/I": "Times-Italic", "/S": "Times-Roman"}
        page.Resources = Dictionary(
            XObject=Dictionary(self.pictures),
            Font=Dictionary(
                {
                    key: Dictionary(
                        Type=Name.Font, Subtype=Name.Type1, BaseFont=Name("/" + name), Encoding=Name.WinAnsiEncoding
                    )
                    for key, name in fonts.items()
                }
            ),
        )
        page.Contents = self.pdf.make_stream("".join(self.content).encode("cp1252"))
        for key, value in self.entries.items():
            page["/" + key] = Array(value) if isinstance(value, list) else value


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def caption_below(paper: Paper) -> Captions:
    paper.body(60, 780)
    paper.picture(60, 480, 475, 220)
    paper.text(60, 466, "Figure 1. The lower reach at half ebb, seen from the east bank on the", size=8.5)
    paper.text(60, 455.5, "second day of the survey; the gauge house is on the right.", size=8.5)
    paper.body(60, 425)
    return [
        "Figure 1. The lower reach at half ebb, seen from the east bank on the second day of the survey; "
        "the gauge house is on the right."
    ]


def two_columns(paper: Paper) -> Captions:
    paper.picture(60, 600, 225, 170)
    paper.text(60, 588, "Fig. 2: Sampling stations.", size=8)
    paper.body(60, 560, NARROW)
    paper.body(310, 762, NARROW)
    paper.text(310, 666, "Figure 2 shows the stations; the northern", "ones were given up in July.")
    paper.picture(310, 430, 225, 180)
    paper.text(310, 418, "Fig. 3: The same, from the air.", size=8)
    paper.body(310, 390, NARROW)
    return ["Fig. 2: Sampling stations.", "Fig. 3: The same, from the air."]


def captions_above(paper: Paper) -> Captions:
    paper.text(60, 780, "Figure 4. Depth by station.", size=9, font="B")
    paper.picture(60, 600, 475, 170)
    paper.text(60, 582, "Figure 5. Width by station.", size=9, font="B")
    paper.picture(60, 402, 475, 170)
    paper.body(60, 370)
    return ["Figure 4. Depth by station.", "Figure 5. Width by station."]


def side_by_side(paper: Paper) -> Captions:
    paper.body(60, 780)
    paper.picture(60, 520, 230, 170)
    paper.picture(305, 520, 230, 170)
    paper.text(60, 508, "Figure 6: North quay, morning.", size=8)
    paper.text(305, 508, "Figure 7: South quay, evening.", size=8)
    paper.body(60, 470)
    return ["Figure 6: North quay, morning.", "Figure 7: South quay, evening."]


def beside_the_picture(paper: Paper) -> Captions:
    paper.picture(60, 540, 300, 220)
    paper.text(372, 750, "Photo: the ferry at the", "outer mole, an hour", "before the storm.", size=8.5, font="I")
    paper.body(60, 500)
    return ["Photo: the ferry at the outer mole, an hour before the storm."]


def german_report(paper: Paper) -> Captions:
    paper.body(60, 780)
    paper.picture(60, 500, 300, 200)
    paper.text(60, 487, "Abb. 3: Blick auf den Hafen bei Ebbe (Aufnahme 1998).", size=8.5)
    paper.picture(60, 250, 300, 190)
    paper.text(60, 237, "Abbildung 4 – Querschnitt der Düne", size=8.5)
    return ["Abb. 3: Blick auf den Hafen bei Ebbe (Aufnahme 1998).", "Abbildung 4 – Querschnitt der Düne"]


def no_caption(paper: Paper) -> Captions:
    paper.body(60, 780)
    paper.picture(60, 480, 475, 220)
    paper.body(60, 462)
    return [None]


def a_table_below(paper: Paper) -> Captions:
    paper.picture(60, 560, 475, 200)
    paper.text(60, 546, "Table 2. Counts by reach and month", size=9, font="B")
    paper.text(60, 530, "Reach 1     14     22     31", "Reach 2      9     17     25", size=9)
    return [None]


def turned_figure(paper: Paper) -> Captions:
    paper.picture(0, 0, 0, 0, turn="0 600 -400 0 470 120")
    paper.text(490, 120, "Figure 8. The whole bay, turned to fit the page.", size=9, turn="0 1 -1 0")
    return ["Figure 8. The whole bay, turned to fit the page."]


def turned_page(paper: Paper) -> Captions:
    paper.picture(0, 0, 0, 0, turn="0 600 -400 0 470 120")
    paper.text(490, 120, "Figure 9. The same bay on a page that the viewer turns.", size=9, turn="0 1 -1 0")
    paper.entries["Rotate"] = 90
    return ["Figure 9. The same bay on a page that the viewer turns."]


def grid_of_four(paper: Paper) -> Captions:
    captions: Captions = []
    for number, letter in enumerate("abcd"):
        x, y = 60 + 245 * (number % 2), 600 - 230 * (number // 2)
        paper.picture(x, y, 230, 170)
        paper.text(x, y - 12, f"Fig. 10{letter} Week {number + 1} of the count", size=8)
        captions.append(f"Fig. 10{letter} Week {number + 1} of the count")
    paper.body(60, 320)
    return captions


def source_only(paper: Paper) -> Captions:
    paper.text(60, 785, "Rainfall by county", size=14, font="B")
    paper.picture(60, 540, 475, 230)
    paper.text(60, 528, "Source: National Weather Office, 2019.", size=7.5)
    paper.body(60, 490)
    return ["Source: National Weather Office, 2019."]


def caption_and_source(paper: Paper) -> Captions:
    paper.picture(60, 540, 475, 230)
    paper.text(60, 527, "Figure 11. Rainfall by county.", size=8.5)
    paper.text(60, 515, "Source: National Weather Office, 2019.", size=8.5)
    paper.body(60, 480)
    return ["Figure 11. Rainfall by county."]


def centred_caption(paper: Paper) -> Captions:
    paper.picture(200, 560, 195, 195)
    paper.centred(
        297, 545, "Plate IV. A specimen from the collection of the harbour museum, drawn", "in the year of its finding."
    )
    paper.body(60, 500)
    return ["Plate IV. A specimen from the collection of the harbour museum, drawn in the year of its finding."]


def logo_and_photo(paper: Paper) -> Captions:
    paper.picture(60, 785, 40, 40)
    paper.text(110, 800, "Harbour Trust, annual report", size=9)
    paper.picture(60, 480, 475, 270)
    paper.text(60, 466, "Image 12: The new lock gates.", size=8.5)
    return [None, "Image 12: The new lock gates."]


def mention_right_below(paper: Paper) -> Captions:
    paper.picture(60, 560, 475, 200)
    paper.text(
        60, 545, "Figure 4 shows the depth at each of the stations, and Figure 5 the width, as they were", *BODY[1:]
    )
    return [None]


def numbered_label(paper: Paper) -> Captions:
    paper.picture(60, 560, 475, 200)
    paper.text(60, 550, "Site 3.", size=7.5, font="B")
    paper.text(92, 550, "Cinder Quay, from the fixed point.", size=7.5)
    paper.body(60, 520)
    return ["Site 3. Cinder Quay, from the fixed point."]


def text_in_between(paper: Paper) -> Captions:
    paper.picture(60, 640, 475, 130)
    paper.text(60, 625, BODY[0], size=10)
    paper.text(60, 607, "Figure 13. This one belongs to the picture below.", size=9)
    paper.picture(60, 440, 475, 155)
    return [None, "Figure 13. This one belongs to the picture below."]


def stacked_with_even_gaps(paper: Paper) -> Captions:
    captions: Captions = []
    for number in range(3):
        y = 620 - number * 200
        paper.picture(60, y, 475, 165)
        paper.text(60, y - 20, f"Figure {14 + number}. Reach {number + 1}", size=9)
        captions.append(f"Figure {14 + number}. Reach {number + 1}")
    return captions


def set_solid_between_two(paper: Paper) -> Captions:
    """Pictures as lines of text, as word processors place them: nothing but the caption's own line lies between."""
    paper.picture(72, 500, 220, 160)
    paper.text(72, 488, "Figure 1: The upper of two pictures.", size=12)
    paper.picture(72, 359, 170, 126)
    return ["Figure 1: The upper of two pictures.", None]


def one_caption_for_two(paper: Paper) -> Captions:
    paper.picture(60, 560, 230, 170)
    paper.picture(305, 560, 230, 170)
    paper.text(60, 547, "Plates 2 and 3. The bar gauge at dusk and at noon.", size=8)
    paper.body(60, 510)
    return ["Plates 2 and 3. The bar gauge at dusk and at noon.", None]


def letter_by_letter(paper: Paper) -> Captions:
    paper.picture(60, 560, 475, 200)
    pieces = "".join(f"({letter}) -15 " if letter != " " else "-290 " for letter in "Figure 17. Kerned by hand")
    paper.content.append(f"BT /S 9 Tf 60 546 Td [{pieces}] TJ ET\n")
    paper.body(60, 515)
    return ["Figure 17. Kerned by hand"]


def hanging_label(paper: Paper) -> Captions:
    paper.picture(60, 560, 475, 200)
    paper.text(60, 546, "Exhibit 4", size=9, font="B")
    paper.text(108, 546, "Spending by fund, in thousands; what is not", "shown here is less than a hundredth.", size=9)
    paper.body(60, 505)
    return ["Exhibit 4 Spending by fund, in thousands; what is not shown here is less than a hundredth."]


def credit_along_the_side(paper: Paper) -> Captions:
    paper.picture(60, 560, 450, 200)
    paper.text(520, 562, "Photo: Jane Roe / Harbour Trust", size=6.5, turn="0 1 -1 0")
    paper.body(60, 530)
    return ["Photo: Jane Roe / Harbour Trust"]


def words_parted_at_line_ends(paper: Paper) -> Captions:
    paper.picture(60, 560, 200, 200)
    paper.text(60, 546, "Figure 18. Sediment in the measure-", "ment tubes after one hour.", size=9)
    return ["Figure 18. Sediment in the measurement tubes after one hour."]


def slide(paper: Paper) -> Captions:
    paper.width, paper.height = 720, 405
    paper.text(40, 360, "Where the money goes", size=24, font="B")
    paper.picture(380, 90, 300, 225)
    paper.text(40, 300, "Half to the dikes", "A third to people", "The rest is kept", size=16)
    paper.text(380, 74, "Chart 2: Spending by fund", size=10)
    return ["Chart 2: Spending by fund"]


def one_line_and_a_paragraph(paper: Paper) -> Captions:
    paper.picture(60, 480, 475, 220)
    paper.text(60, 466, "Figure 19: The gauge house from the water.")
    paper.body(60, 449)
    paper.body(60, 370)
    return ["Figure 19: The gauge house from the water."]


def heading_that_begins_like_a_label(paper: Paper) -> Captions:
    paper.picture(60, 480, 475, 220)
    paper.text(60, 464, "PHOTOGRAPHIC RECORD", size=12, font="B")
    paper.body(60, 440)
    return [None]


def numbered_below_a_margin(paper: Paper) -> Captions:
    paper.body(60, 780)
    paper.picture(60, 480, 475, 200)
    paper.text(60, 420, "Figure 20: Soundings, plotted with the margins that the program leaves.")
    paper.body(60, 380)
    return ["Figure 20: Soundings, plotted with the margins that the program leaves."]


PAGES: dict[str, Callable[[Paper], Captions]] = {
    page.__name__: page
    for page in (
        caption_below, two_columns, captions_above, side_by_side, beside_the_picture, german_report, no_caption,
        a_table_below, turned_figure, turned_page, grid_of_four, source_only, caption_and_source, centred_caption,
        logo_and_photo, mention_right_below, numbered_label, text_in_between, stacked_with_even_gaps,
        one_caption_for_two, letter_by_letter, hanging_label, credit_along_the_side, words_parted_at_line_ends, slide,
        one_line_and_a_paragraph, heading_that_begins_like_a_label, numbered_below_a_margin, set_solid_between_two,
    )
}  # fmt: skip
