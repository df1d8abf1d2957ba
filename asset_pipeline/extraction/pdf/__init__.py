"""The default engine: our own content-stream walker over pikepdf, with PDFium for what needs decoding."""
