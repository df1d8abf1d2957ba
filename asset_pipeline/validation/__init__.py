"""Is it sound? Signatures and limits, checked from headers before any raster is allocated."""
