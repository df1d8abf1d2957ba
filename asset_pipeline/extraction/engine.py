"""The engine interface and its registry: one way to read a document.

An engine turns a document into the rows of ``model`` and files in a folder. It runs inside a decoder
process, sees no store, ledger or network, and never raises for bad input: a bad picture is a
quarantined placement, a bad page has a reason, a bad document has an outcome. To add an engine, write
a module with a class that satisfies ``Engine`` and name it in ``ENGINES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol

from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.turns import Turns
from asset_pipeline.model import Extraction, Source
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import OFFICE, PDF


@dataclass(frozen=True, slots=True)
class Request:
    """What to read. ``first`` and ``last`` are pages counted from 1, inclusive; None means to the end.

    With ``turns``, those of them whose turn falls to this reader, where others read the rest at the same time.
    ``out`` exists and is empty; each file goes there as ``<sha256>.<extension>``. ``pixels`` asks for
    ``pixel_sha256`` of every picture, which costs a full decode. ``source_sha256`` and
    ``source_bytes`` come from admission, so that nobody hashes the document twice. ``withhold`` asks for the
    stored bytes of quarantined pictures (``Extraction.withheld``).
    """

    document: Path
    out: Path
    policy: Policy
    source_sha256: str
    source_bytes: int
    media_type: str | None = "application/pdf"
    first: int = 1
    last: int | None = None
    password: str | None = None
    figures: bool = True
    pixels: bool = False
    withhold: bool = True
    turns: Turns | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """What planning needs before any picture is read: ``outcome`` None means that it opens."""

    source: Source
    outcome: Reason | None


class Engine(Protocol):
    """One way to read documents. Instances are cheap and hold no state between calls."""

    name: str

    def version(self) -> str:
        """Engine name and the versions of every library that can change a byte, joined by ``+``."""
        ...

    def inspect(self, request: Request) -> Inspection:
        """Open the document and count its pages; reads no picture."""
        ...

    def extract(self, request: Request) -> Extraction:
        """Read the requested pages. ``collapsed`` is not derived here: see ``account``.

        The answer's ``extractor_version`` is ``extractor_version(self, request.policy)``, else it is not published.
        """
        ...


ENGINES: dict[str, str] = {
    "pdf": "asset_pipeline.extraction.pdf.engine:PdfEngine",
    "pypdf": "asset_pipeline.extraction.pypdf:PypdfEngine",
    "ooxml": "asset_pipeline.extraction.ooxml.engine:OoxmlEngine",
}

OFFICE_ENGINE = "ooxml"


def engine_for(media_type: str | None, chosen: str) -> str:
    """The engine that reads documents of ``media_type``: ``chosen`` reads PDF, office files have their own.

    Raises UsageError where ``chosen`` is the one of office files and the document a PDF: refused, it would
    say that PDF is no accepted type.
    """
    if media_type in OFFICE.values():
        return OFFICE_ENGINE
    if media_type == PDF and chosen == OFFICE_ENGINE:
        others = " or ".join(name for name in ENGINES if name != OFFICE_ENGINE)
        raise UsageError(
            f"The engine {chosen!r} reads office files and no PDF.",
            f"Choose {others} (--engine, or ASSET_PIPELINE_ENGINE); office files are read by {OFFICE_ENGINE} anyway.",
        )
    return chosen


def load_engine(name: str, engines: Mapping[str, str] | None = None) -> Engine:
    """The engine called ``name``; imports its libraries only now. Raises UsageError for an unknown name.

    ``engines`` (name to ``module:class``) is where it is looked up; default the registry.
    """
    known = ENGINES if engines is None else engines
    try:
        module, _, attribute = known[name].partition(":")
    except KeyError:
        raise UsageError(f"There is no engine {name!r}.", f"Choose one of: {', '.join(sorted(known))}.") from None
    engine: Engine = getattr(import_module(module), attribute)()
    return engine


def extractor_version(engine: Engine, policy: Policy) -> str:
    """Identity of a result (REQUIREMENTS R2.1): engine, libraries, digest of the extraction policy."""
    return made_by(version_of(engine), policy)


def made_by(version: str, policy: Policy) -> str:
    """``extractor_version`` of an engine whose own ``version`` is known."""
    return f"{version}+policy-{policy.extraction_digest[:16]}"


def version_of(engine: Engine) -> str:
    """The engine's own version, asked once a process: libraries tell theirs from files on disk."""
    return _version_of(type(engine))


@cache
def _version_of(kind: type[Engine]) -> str:
    return kind().version()
