"""Any nesting of q, cm, Do and forms gives the boxes that PDFium gives for the same page."""

from __future__ import annotations

import io

import pikepdf
import pypdfium2
import pypdfium2.raw as raw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import form, page, picture, walk, xobjects
from pikepdf import Array

from asset_pipeline.extraction.pdf.geometry import UNIT_SQUARE, bounds

_NUMBER = st.sampled_from([-1.5, -1, -0.5, 0.25, 0.5, 1, 1.25, 2])
_SHIFT = st.integers(-40, 90)
_MATRIX = st.one_of(
    st.tuples(_NUMBER, st.just(0), st.just(0), _NUMBER, _SHIFT, _SHIFT),
    st.tuples(st.just(0), _NUMBER, _NUMBER, st.just(0), _SHIFT, _SHIFT),
    st.tuples(_NUMBER, _NUMBER, _NUMBER, _NUMBER, _SHIFT, _SHIFT).filter(
        lambda m: abs(m[0] * m[3] - m[1] * m[2]) > 0.1
    ),
)
_LEAF = st.just(("picture",))
_TREE = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.tuples(st.just("q"), _MATRIX, st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("form"), _MATRIX, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


def _write(pdf: pikepdf.Pdf, nodes: list, image: pikepdf.Object, named: dict[str, pikepdf.Object]) -> str:
    out = []
    for node in nodes:
        if node[0] == "picture":
            out.append("q 20 0 0 10 3 5 cm /Im Do Q")
        elif node[0] == "q":
            out.append(f"q {' '.join(map(str, node[1]))} cm {_write(pdf, node[2], image, named)} Q")
        else:
            inside: dict[str, pikepdf.Object] = {"Im": image}
            content = _write(pdf, node[2], image, inside)
            made = form(pdf, content, {"XObject": xobjects(**inside)}, BBox=Array([-9999, -9999, 9999, 9999]),
                        Matrix=Array(list(node[1])))  # fmt: skip
            name = f"F{len(named)}"
            named[name] = made
            out.append(f"/{name} Do")
    return " ".join(out)


def _pdfium_boxes(data: bytes) -> list[tuple[float, ...]]:
    document = pypdfium2.PdfDocument(data)
    sheet = document[0]
    try:
        found = []
        for each in sheet.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=30):
            matrix, around = each.get_matrix(), each.container
            while around is not None:  # an object's matrix ends at the form it lies in
                matrix, around = matrix.multiply(around.get_matrix()), around.container
            found.append(bounds([matrix.on_point(x, y) for x, y in UNIT_SQUARE]))
        return sorted(tuple(round(side, 2) for side in box) for box in found)
    finally:
        sheet.close()
        document.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(_TREE, min_size=1, max_size=4))
def test_boxes_equal_those_of_pdfium(nodes: list) -> None:
    with pikepdf.new() as pdf:
        image = picture(pdf)
        named: dict[str, pikepdf.Object] = {"Im": image}
        content = _write(pdf, nodes, image, named)
        page(pdf, content, {"XObject": xobjects(**named)})
        found = walk(pdf)
        buffer = io.BytesIO()
        pdf.save(buffer)
    ours = sorted(tuple(round(side, 2) for side in draw.bbox) for draw in found.draws)
    theirs = _pdfium_boxes(buffer.getvalue())
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, abs=0.05)
