"""What becomes of each hostile file, judged by hand: the one right reason, and where it belongs.

``document``: refused as a whole; ``page``: the page says why it was not counted or not read to its end;
``picture``: the one picture is quarantined; ``fine``: legitimately read, with so many pictures archived.
Where this differs from what a name suggests, the reason stands beside.
"""

from __future__ import annotations

from typing import NamedTuple


class Expected(NamedTuple):
    """``level`` is document, page, picture or fine; ``archived`` counts what a fine document gives."""

    level: str
    reason: str | None = None
    archived: int = 0


def document(reason: str) -> Expected:
    return Expected("document", reason)


def page(reason: str) -> Expected:
    return Expected("page", reason)


def picture(reason: str) -> Expected:
    return Expected("picture", reason)


def fine(archived: int) -> Expected:
    return Expected("fine", None, archived)


PIXELS, FILTERS = picture("pixel_budget_exceeded"), picture("filter_budget_exceeded")
LOOP, DEEP = document("structure_loop"), document("structure_too_deep")
BROKEN = document("malformed_document")

PDF = {
    "pdf_1bit_index_expand": PIXELS,
    "pdf_1e5_pages": document("page_budget_exceeded"),
    "pdf_1e6_objects": document("object_budget_exceeded"),
    "pdf_5e4_xobject_names_one_image": fine(0),  # no page draws any of the names
    "pdf_asciihex_flate_lie_dims": PIXELS,
    "pdf_ccitt_rows_1e9": PIXELS,
    "pdf_colorspace_recursive": picture("structure_loop"),
    "pdf_content_1e7_ops": page("content_budget_exceeded"),
    "pdf_content_stream_flate_1gb": page("content_budget_exceeded"),
    "pdf_count_lie_1e9": fine(1),  # there is one page, whatever its tree says
    "pdf_dct_lying_sof": PIXELS,
    "pdf_encrypted_empty_pw": fine(1),  # the empty password opens it to anybody
    "pdf_encrypted_unknown_pw": document("encrypted"),
    "pdf_filter_chain_1e5_names": FILTERS,
    "pdf_filter_chain_50": FILTERS,
    "pdf_filter_indirect_self": picture("malformed_stream"),  # a reference to itself is null: raw data, too short
    "pdf_flate_1gb": PIXELS,  # refused by its declared size, before anything expands
    "pdf_flate_flate_1gb": PIXELS,
    "pdf_flate_x3_100gb": PIXELS,
    "pdf_form_laughs_10x10": page("placement_budget_exceeded"),
    "pdf_form_mutual_recursion": page("structure_loop"),
    "pdf_form_recursion": page("structure_loop"),
    "pdf_header_at_2000": document("signature_mismatch"),
    "pdf_html_polyglot": fine(1),  # the header stands in the first 1,024 bytes; the page is not HTML to us
    "pdf_icc_n_lie": picture("unsupported_colour_space"),
    "pdf_image_external_file": picture("external_reference"),
    "pdf_inline_image_no_ei": fine(0),  # its samples are all there; it is one point wide, so decorative
    "pdf_inline_images_5e4": page("placement_budget_exceeded"),
    "pdf_jbig2_60000_page": PIXELS,
    "pdf_jbig2_64k_page": PIXELS,
    "pdf_jpx_2g": PIXELS,
    "pdf_jpx_garbage": picture("invalid_dimensions"),
    "pdf_js_launch_embedded": fine(1),  # actions are never run, embedded files never unpacked
    "pdf_length_indirect_self": fine(0),  # the content stream is empty but for q Q
    "pdf_lzw_bomb": PIXELS,
    "pdf_name_nul_newline": fine(1),
    "pdf_name_traversal": fine(1),
    "pdf_nested_arrays_1e5": DEEP,
    "pdf_nested_dicts_resources_5e4": DEEP,
    "pdf_objstm_extends_loop": BROKEN,  # the loop is in a hint that nobody must follow; the catalog has no pages
    "pdf_pagetree_deep_2e4": DEEP,
    "pdf_pagetree_laughs_10x10": document("page_budget_exceeded"),  # ten milliards of pages, by its own count
    "pdf_pagetree_parent_loop": fine(0),  # upwards alone; its one page draws nothing it has resources for
    "pdf_pagetree_self_loop": LOOP,
    "pdf_predictor_columns_2g": picture("malformed_stream"),
    "pdf_runlength_bomb": PIXELS,
    "pdf_size_lie_no_root": BROKEN,
    "pdf_smask_self": picture("structure_loop"),
    "pdf_startxref_zero": fine(1),  # repaired
    "pdf_truncated": document("truncated_document"),
    "pdf_two_incremental_updates_hide": fine(0),  # the newest revision draws nothing
    "pdf_xmp_billion_laughs": fine(1),  # nobody reads it
    "pdf_xref_prev_self": fine(1),  # repaired
    "pdf_xref_stream_prev_self": fine(1),
    "pdf_xref_stream_w_huge": document("object_budget_exceeded"),  # its index claims two milliards of objects
    "pdf_zip_polyglot": fine(1),  # what comes behind the end of a document is not read
    "exe_as_pdf": document("signature_mismatch"),
    "ps_as_pdf": document("signature_mismatch"),
}
"""Documents, by name without ending."""

MISMATCH, METADATA = picture("signature_mismatch"), picture("metadata_too_large")
FRAMES, BROKEN_STREAM = picture("frame_budget_exceeded"), picture("malformed_stream")
TRAILING, TRUNCATED = picture("trailing_data"), picture("truncated_stream")

RASTERS = {
    "apng_100k_frames.png": (MISMATCH, FRAMES),
    "bmp_rle_30000.bmp": (MISMATCH, PIXELS),
    "empty.png": (TRUNCATED, TRUNCATED),
    "eps_as_png.png": (MISMATCH, MISMATCH),
    "gif_100k_frames.gif": (MISMATCH, FRAMES),
    "gif_13000_canvas_2k_frames.gif": (MISMATCH, PIXELS),
    "gif_as_png.png": (MISMATCH, MISMATCH),
    "gif_js_polyglot.gif": (MISMATCH, TRAILING),
    "html_as_jpg.jpg": (MISMATCH, MISMATCH),
    "j2k_16384_components.j2k": (picture("unsupported_codec"), MISMATCH),  # a part must be a file, not a bare stream
    "jp2_1e6_tiles.jp2": (PIXELS, PIXELS),
    "jp2_siz_2g.jp2": (PIXELS, PIXELS),
    "jpeg_app1_segments_16mb.jpg": (METADATA, METADATA),
    # The generator's flat gray scan is one byte short: that a strict decode finds, whatever its metadata say.
    "jpeg_exif_count_4g.jpg": (BROKEN_STREAM, BROKEN_STREAM),
    "jpeg_exif_ifd_loop.jpg": (BROKEN_STREAM, BROKEN_STREAM),
    "jpeg_icc_bomb_16mb.jpg": (METADATA, METADATA),
    "jpeg_icc_lying_tags.jpg": (BROKEN_STREAM, BROKEN_STREAM),
    "jpeg_lying_sof_13300.jpg": (PIXELS, PIXELS),
    "jpeg_lying_sof_65500.jpg": (PIXELS, PIXELS),
    "jpeg_progressive_10k_scans.jpg": (PIXELS, PIXELS),  # 64 million pixels come before its scans
    "jpeg_truncated.jpg": (TRUNCATED, TRUNCATED),
    "jpeg_xmp_billion_laughs.jpg": (BROKEN_STREAM, BROKEN_STREAM),
    "jpeg_zip_polyglot.jpg": (TRAILING, TRAILING),
    "png_iccp_bomb.png": (MISMATCH, METADATA),
    "png_idat_bomb.png": (MISMATCH, BROKEN_STREAM),
    "png_ihdr_50000.png": (MISMATCH, PIXELS),
    "png_many_text_chunks.png": (MISMATCH, METADATA),
    "png_under_2x_limit_rgba.png": (MISMATCH, PIXELS),
    "png_zip_polyglot.png": (MISMATCH, TRAILING),
    "png_ztxt_bomb.png": (MISMATCH, METADATA),
    "psd_30000.psd": (MISMATCH, MISMATCH),
    "svg_as_png.png": (MISMATCH, MISMATCH),
    "tiff_100k_ifds.tif": (MISMATCH, FRAMES),
    "tiff_deflate_bomb_60000.tif": (MISMATCH, PIXELS),
    "tiff_ifd_loop.tif": (MISMATCH, picture("structure_loop")),
    "tiff_strip_count_4g.tif": (MISMATCH, BROKEN_STREAM),
    "webp_100k_frames.webp": (MISMATCH, FRAMES),
}
"""Bare rasters, once wrapped in a PDF (where all but JPEG 2000 is said to be a JPEG), and in a docx."""


def expected_of(name: str) -> Expected:
    """What becomes of the file called ``name``, a wrapped raster being ``<raster>.pdf`` or ``<raster>.docx``."""
    stem, _, kind = name.rpartition(".")
    if stem in RASTERS:
        return RASTERS[stem][kind == "docx"]
    if name in RASTERS:
        return document("empty_document" if name == "empty.png" else "media_type_not_allowed")
    return PDF[stem]
