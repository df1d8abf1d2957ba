"""What the assets have in common: names, group, owner.

The modules that declare assets, sensors and schedules do without ``from __future__ import annotations``: Dagster reads
the annotations of what it decorates, and takes them as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

GROUP = "monthly_archive"
OWNERS = ["team:media-archive"]

RULES = "extraction_policy"
SOURCES = "source_documents"
IMAGES = "validated_images"
MANIFESTS = "manifests"
GALLERY = "image_gallery"
CATALOGUE = "image_catalogue"


@contextmanager
def without_warning(kind: type[Warning]) -> Iterator[None]:
    """Use a part of Dagster that is not final without being told so at every start. The versions are pinned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kind)
        yield
