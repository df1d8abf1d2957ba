"""Decoder processes: the decoder is the enemy's computer.

Documents are read only in here, each in a process of its own that is forked from a warm zygote, has
limits, and is killed at its deadline. Nothing a decoder says is believed before ``answers`` checked
it. What is read belongs in the engines; which page ranges and how often, in ``work`` and ``report``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asset_pipeline.extraction.sandbox.lost import DecoderLost
    from asset_pipeline.extraction.sandbox.pool import DecoderPool

__all__ = ["DecoderLost", "DecoderPool"]


def __getattr__(name: str) -> object:
    """The two names at need: the zygote is in this package too, and has no use for the pool's imports."""
    if name == "DecoderLost":
        from asset_pipeline.extraction.sandbox.lost import DecoderLost

        return DecoderLost
    if name == "DecoderPool":
        from asset_pipeline.extraction.sandbox.pool import DecoderPool

        return DecoderPool
    raise AttributeError(name)
