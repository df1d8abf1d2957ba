"""Office documents: docx, pptx and xlsx, read as packages of parts by our own readers.

What belongs here is how these files say where a picture is; what its bytes are worth is judged in
``validation``, and pixels are made with the same functions as for PDF pages.
"""
