"""The filter chain of a picture's stream: names in full, parameters beside them, outer layers taken off.

A chain ends in a codec that makes a picture (DCT, JPX, CCITT, JBIG2) or in raw samples. Everything
before that is taken off here, bounded. Raw bytes come from pikepdf (decrypted, not decoded), so a
Crypt filter is already done and is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pikepdf

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.expand import EXPANDERS, Expanded, expand_lzw, inflates_beyond
from asset_pipeline.extraction.pdf.predictors import Predictor, read_predictor
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_encoded, check_filters

FULL_NAMES = {
    "AHx": "ASCIIHexDecode",
    "A85": "ASCII85Decode",
    "LZW": "LZWDecode",
    "Fl": "FlateDecode",
    "RL": "RunLengthDecode",
    "CCF": "CCITTFaxDecode",
    "DCT": "DCTDecode",
}
CODECS = frozenset({"DCTDecode", "JPXDecode", "CCITTFaxDecode", "JBIG2Decode"})
_LISTED = 64


@dataclass(frozen=True, slots=True)
class Layer:
    """One filter with its parameters (an empty mapping when absent or null)."""

    name: str
    parms: Any

    def number(self, key: str, default: int) -> int:
        """Integer parameter ``key``; ``default`` when absent or not a number."""
        value = self.parms.get(key) if self.parms is not None else None
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else default

    def truth(self, key: str, default: bool = False) -> bool:
        """Boolean parameter ``key``."""
        value = self.parms.get(key) if self.parms is not None else None
        return value if isinstance(value, bool) else default


@dataclass(frozen=True, slots=True)
class Stored:
    """A picture's data with the outer layers off. ``codec`` None: raw samples behind ``last`` (or none)."""

    data: bytes
    codec: Layer | None
    last: Layer | None
    predictor: Predictor | None


def filter_names(image: pikepdf.Object) -> list[str]:
    """Names of all filters in full, for the report; never raises."""
    try:
        return [layer.name for layer in _layers(image)]
    except (Refusal, pikepdf.PikepdfError, ValueError, TypeError):
        return []


def open_stream(image: pikepdf.Object, limits: Limits) -> Stored:
    """Gates on the chain and the stored bytes, then all layers off but the one that makes the picture."""
    if image.get("/F") is not None:
        raise Refusal(Reason.EXTERNAL_REFERENCE)
    names = image.get("/Filter")
    check_filters(len(names) if isinstance(names, pikepdf.Array) else 1, limits)
    layers = _layers(image)
    declared = image.get("/Length")
    if isinstance(declared, int):
        check_encoded(declared, limits)
    layers = [layer for layer in layers if layer.name != "Crypt"]
    for layer in layers:
        if layer.name not in CODECS and layer.name not in EXPANDERS and layer.name != "LZWDecode":
            raise Refusal(Reason.UNSUPPORTED_CODEC)
    if any(layer.name in CODECS for layer in layers[:-1]):
        raise Refusal(Reason.UNSUPPORTED_CODEC, "a codec inside the chain")
    try:
        data = image.read_raw_bytes()
    except pikepdf.PikepdfError:
        raise Refusal(Reason.TRUNCATED_STREAM) from None
    check_encoded(len(data), limits)
    if not data:
        raise Refusal(Reason.TRUNCATED_STREAM)
    for layer in layers[:-1]:
        data = _take_off(layer, data, limits)
    last = layers[-1] if layers else None
    if last is not None and last.name in CODECS:
        return Stored(data, last, None, None)
    return Stored(data, None, last, read_predictor(last.parms) if last and _predicts(last) else None)


def is_empty(stream: pikepdf.Stream) -> bool:
    """Whether the stream holds nothing, which is a fault in a picture alone."""
    try:
        return not stream.read_raw_bytes()
    except pikepdf.PikepdfError:
        return False


def expand_last(stored: Stored, most: int) -> Expanded:
    """The last layer of raw samples taken off, at most ``most`` bytes, predictor still on."""
    if stored.last is None:
        return Expanded(stored.data[:most])
    return _expand(stored.last, stored.data, most)


def expand_samples(stored: Stored, most: int, limits: Limits) -> Expanded:
    """As ``expand_last``. Raises Refusal for Flate data that goes on past what any picture may expand to.

    A surplus within that is harmless and common. It is counted only where there is one.
    """
    out = expand_last(stored, most)
    if out.surplus and inflates_beyond(stored.data, max(most, limits.expanded_bytes)):
        raise Refusal(Reason.EXPANDED_SIZE_EXCEEDED)
    return out


def _take_off(layer: Layer, data: bytes, limits: Limits) -> bytes:
    most = limits.expanded_bytes
    if layer.name == "FlateDecode" and inflates_beyond(data, most):
        raise Refusal(Reason.EXPANDED_SIZE_EXCEEDED)
    out = _expand(layer, data, most + 1)
    if len(out.data) > most:
        raise Refusal(Reason.EXPANDED_SIZE_EXCEEDED)
    if out.fault is not None and not out.data:
        raise Refusal(out.fault)
    # A fault behind good data is left to the next layer: it knows whether anything is missing.
    if _predicts(layer) and (predictor := read_predictor(layer.parms)) is not None:
        return predictor.undo(out.data)
    return out.data


def _expand(layer: Layer, data: bytes, most: int) -> Expanded:
    if layer.name == "LZWDecode":
        return expand_lzw(data, most, layer.number("/EarlyChange", 1))
    return EXPANDERS[layer.name](data, most)


def _predicts(layer: Layer) -> bool:
    return layer.name in ("FlateDecode", "LZWDecode")


def _layers(image: pikepdf.Object) -> list[Layer]:
    """Filters with their parameters: a name, an array, or nothing; parameters may be null or missing.

    At most ``_LISTED``: a chain that long is refused anyway, and its report need not be longer.
    """
    names = image.get("/Filter")
    parms = image.get("/DecodeParms", image.get("/DP"))
    if names is None:
        return []
    if isinstance(names, pikepdf.Name):
        if isinstance(parms, pikepdf.Array):
            parms = parms[0] if len(parms) else None
        return [Layer(_full(names), parms if isinstance(parms, pikepdf.Dictionary) else None)]
    if not isinstance(names, pikepdf.Array):
        raise Refusal(Reason.MALFORMED_STREAM, "filter")
    given: list[Any] = [parms] if len(names) == 1 else []
    if isinstance(parms, pikepdf.Array):
        given = [parms[index] for index in range(min(len(parms), _LISTED))]
    layers = []
    for index in range(min(len(names), _LISTED)):
        name = names[index]
        if not isinstance(name, pikepdf.Name):
            raise Refusal(Reason.MALFORMED_STREAM, "filter")
        parm = given[index] if index < len(given) else None
        layers.append(Layer(_full(name), parm if isinstance(parm, pikepdf.Dictionary) else None))
    return layers


def _full(name: pikepdf.Object) -> str:
    short = str(name)[1:]
    return FULL_NAMES.get(short, short)
